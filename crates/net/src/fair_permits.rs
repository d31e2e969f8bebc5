//! Permits shared by sending servers, and by destinations: neither the work of one server nor the work for one slow
//! destination can hold all permits. Waiting work is served round robin: by server, and within a server by destination.
//! Shares depend on the permits that are free; in `limits::FairPool` each tenant has a fixed share.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use postroad_model::ServerId;
use tokio::sync::oneshot;

/// Server whose mail the work is for; `None` for the service itself.
pub(crate) type Tenant = Option<ServerId>;

/// Part of the permits that one server or destination may have: `own_part` for every `free_part` that stay
/// free for others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    own_part: usize,
    free_part: usize,
}

impl Share {
    pub(crate) const THIRD: Self = Self { own_part: 1, free_part: 2 };
    pub(crate) const HALF: Self = Self { own_part: 1, free_part: 1 };
    pub(crate) const FOUR_FIFTHS: Self = Self { own_part: 4, free_part: 1 };

    /// Whether a holder of `own` permits may have one more of the `free` ones.
    fn has_room(self, own: usize, free: usize) -> bool {
        free > 0 && (own == 0 || own * self.free_part < free * self.own_part)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PermitLimits {
    /// Number of permits.
    pub(crate) running_max: usize,
    /// Maximum number of pieces of waiting work; further work is refused.
    pub(crate) waiting_max: usize,
    /// Share of a server, in permits and in waiting work.
    pub(crate) of_server: Share,
    /// Share of a destination, in permits and in waiting work.
    pub(crate) of_destination: Share,
}

#[derive(Debug)]
pub(crate) struct FairPermits<D: Clone + Eq + Hash> {
    limits: PermitLimits,
    state: Mutex<State<D>>,
}

#[derive(Debug)]
struct State<D: Clone + Eq + Hash> {
    running: Counts<D>,
    waiting: Counts<D>,
    /// Servers with waiting work; each is in the ring.
    queues: HashMap<Tenant, ServerQueue<D>>,
    ring: VecDeque<Tenant>,
    /// Approximate number of queued senders whose work gave up.
    abandoned: usize,
}

/// Waiting work of one server. Each destination is in the ring.
#[derive(Debug)]
struct ServerQueue<D: Clone + Eq + Hash> {
    by_destination: HashMap<D, VecDeque<PermitSender<D>>>,
    ring: VecDeque<D>,
}

/// Hands a permit to the work that waits for it.
type PermitSender<D> = oneshot::Sender<Permit<D>>;

#[derive(Debug)]
struct Counts<D> {
    total: usize,
    of_servers: HashMap<Tenant, usize>,
    of_destinations: HashMap<D, usize>,
}

/// Permit; dropping it frees it.
#[derive(Debug)]
pub(crate) struct Permit<D: Clone + Eq + Hash> {
    permits: Arc<FairPermits<D>>,
    tenant: Tenant,
    destination: D,
}

/// Waiting work; counted until this value is dropped.
struct WaitingEntry<'a, D: Clone + Eq + Hash> {
    permits: &'a FairPermits<D>,
    tenant: Tenant,
    destination: D,
    was_served: bool,
}

impl<D: Clone + Eq + Hash> FairPermits<D> {
    pub(crate) fn new(limits: PermitLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::new(State::new()) })
    }

    /// Takes a permit if one is free now.
    pub(crate) fn try_take(self: &Arc<Self>, tenant: Tenant, destination: &D) -> Option<Permit<D>> {
        let mut state = self.state.lock();
        if !state.running.has_room(tenant, destination, self.limits.running_max, self.limits) {
            return None;
        }
        Some(self.issue(&mut state, tenant, destination.clone()))
    }

    /// Waits for a permit; `None` if too much work of this server or for this destination waits already.
    pub(crate) async fn take(self: &Arc<Self>, tenant: Tenant, destination: &D) -> Option<Permit<D>> {
        let (mut waiting, receiver) = {
            let mut state = self.state.lock();
            if state.running.has_room(tenant, destination, self.limits.running_max, self.limits) {
                return Some(self.issue(&mut state, tenant, destination.clone()));
            }
            if !state.waiting.has_room(tenant, destination, self.limits.waiting_max, self.limits) {
                return None;
            }
            state.waiting.add(tenant, destination.clone());
            let receiver = state.enqueue(tenant, destination.clone());
            (
                WaitingEntry { permits: self, tenant, destination: destination.clone(), was_served: false },
                receiver,
            )
        };
        let permit = receiver.await.ok();
        waiting.was_served = true;
        permit
    }

    /// Whether work of this server waits for a permit, or its next piece of work would have to.
    pub(crate) fn is_contended(&self, tenant: Tenant) -> bool {
        let state = self.state.lock();
        let own = state.running.of_servers.get(&tenant).copied().unwrap_or(0);
        let free = self.limits.running_max - state.running.total;
        !self.limits.of_server.has_room(own, free) || state.waiting.of_servers.contains_key(&tenant)
    }

    fn issue(self: &Arc<Self>, state: &mut State<D>, tenant: Tenant, destination: D) -> Permit<D> {
        state.running.add(tenant, destination.clone());
        Permit { permits: Arc::clone(self), tenant, destination }
    }

    fn release(self: &Arc<Self>, tenant: Tenant, destination: &D) {
        let mut unwanted = None;
        {
            let mut state = self.state.lock();
            state.running.remove(tenant, destination);
            while unwanted.is_none()
                && let Some((tenant, destination, sender)) = state.next(self.limits)
            {
                let permit = self.issue(&mut state, tenant, destination);
                // The work may have given up. Dropping its permit takes the lock, so the permit is dropped after the
                // lock is released.
                unwanted = sender.send(permit).err();
            }
        }
        drop(unwanted);
    }
}

impl<D: Clone + Eq + Hash> State<D> {
    fn new() -> Self {
        Self {
            running: Counts::new(),
            waiting: Counts::new(),
            queues: HashMap::new(),
            ring: VecDeque::new(),
            abandoned: 0,
        }
    }

    fn enqueue(&mut self, tenant: Tenant, destination: D) -> oneshot::Receiver<Permit<D>> {
        let (sender, receiver) = oneshot::channel();
        let queue = self.queues.entry(tenant).or_insert_with(|| {
            self.ring.push_back(tenant);
            ServerQueue { by_destination: HashMap::new(), ring: VecDeque::new() }
        });
        let senders = queue.by_destination.entry(destination.clone()).or_insert_with(|| {
            queue.ring.push_back(destination);
            VecDeque::new()
        });
        senders.push_back(sender);
        receiver
    }

    /// Next waiting work, of a server and for a destination that may have one more.
    fn next(&mut self, limits: PermitLimits) -> Option<(Tenant, D, PermitSender<D>)> {
        let free = limits.running_max - self.running.total;
        let tries = if free == 0 { 0 } else { self.ring.len() };
        for _ in 0..tries {
            let tenant = self.ring.pop_front()?;
            let own = self.running.of_servers.get(&tenant).copied().unwrap_or(0);
            let queue = self.queues.get_mut(&tenant)?;
            let mut found = None;
            if limits.of_server.has_room(own, free) {
                let running = &self.running.of_destinations;
                let has_room = |destination: &D| {
                    limits.of_destination.has_room(running.get(destination).copied().unwrap_or(0), free)
                };
                found = queue.next(has_room, &mut self.abandoned);
            }
            if queue.ring.is_empty() {
                self.queues.remove(&tenant);
            } else {
                self.ring.push_back(tenant);
            }
            if let Some((destination, sender)) = found {
                return Some((tenant, destination, sender));
            }
        }
        None
    }

    /// Drops the senders of work that gave up.
    fn sweep(&mut self) {
        self.abandoned = 0;
        self.queues.retain(|_, queue| {
            queue.by_destination.retain(|_, senders| {
                senders.retain(|sender| !sender.is_closed());
                !senders.is_empty()
            });
            queue.ring.retain(|destination| queue.by_destination.contains_key(destination));
            !queue.ring.is_empty()
        });
        self.ring.retain(|tenant| self.queues.contains_key(tenant));
    }
}

impl<D: Clone + Eq + Hash> ServerQueue<D> {
    fn next(&mut self, has_room: impl Fn(&D) -> bool, abandoned: &mut usize) -> Option<(D, PermitSender<D>)> {
        for _ in 0..self.ring.len() {
            let destination = self.ring.pop_front()?;
            if !has_room(&destination) {
                self.ring.push_back(destination);
                continue;
            }
            let senders = self.by_destination.get_mut(&destination)?;
            let sender = loop {
                match senders.pop_front() {
                    Some(sender) if sender.is_closed() => *abandoned = abandoned.saturating_sub(1),
                    sender => break sender,
                }
            };
            if senders.is_empty() {
                self.by_destination.remove(&destination);
            } else {
                self.ring.push_back(destination.clone());
            }
            if let Some(sender) = sender {
                return Some((destination, sender));
            }
        }
        None
    }
}

impl<D: Clone + Eq + Hash> Counts<D> {
    fn new() -> Self {
        Self { total: 0, of_servers: HashMap::new(), of_destinations: HashMap::new() }
    }

    fn has_room(&self, tenant: Tenant, destination: &D, max: usize, limits: PermitLimits) -> bool {
        let free = max - self.total;
        let own = self.of_servers.get(&tenant).copied().unwrap_or(0);
        let of_destination = self.of_destinations.get(destination).copied().unwrap_or(0);
        limits.of_server.has_room(own, free) && limits.of_destination.has_room(of_destination, free)
    }

    fn add(&mut self, tenant: Tenant, destination: D) {
        self.total += 1;
        *self.of_servers.entry(tenant).or_default() += 1;
        *self.of_destinations.entry(destination).or_default() += 1;
    }

    fn remove(&mut self, tenant: Tenant, destination: &D) {
        self.total -= 1;
        decrement(&mut self.of_servers, &tenant);
        decrement(&mut self.of_destinations, destination);
    }
}

fn decrement<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl<D: Clone + Eq + Hash> Drop for Permit<D> {
    fn drop(&mut self) {
        self.permits.release(self.tenant, &self.destination);
    }
}

impl<D: Clone + Eq + Hash> Drop for WaitingEntry<'_, D> {
    fn drop(&mut self) {
        let mut state = self.permits.state.lock();
        state.waiting.remove(self.tenant, &self.destination);
        if !self.was_served {
            state.abandoned += 1;
            if state.abandoned > self.permits.limits.waiting_max {
                state.sweep();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const FIRST: Tenant = Some(ServerId(1));
    const SECOND: Tenant = Some(ServerId(2));

    fn permits(running_max: usize, waiting_max: usize) -> Arc<FairPermits<u32>> {
        let (of_server, of_destination) = (Share::HALF, Share::THIRD);
        FairPermits::new(PermitLimits { running_max, waiting_max, of_server, of_destination })
    }

    /// Takes all permits that the server can get, each for a different destination, from `first` on.
    fn take_all(permits: &Arc<FairPermits<u32>>, tenant: Tenant, first: u32) -> Vec<Permit<u32>> {
        (first..).map_while(|destination| permits.try_take(tenant, &destination)).collect()
    }

    #[tokio::test]
    async fn one_server_leaves_room_for_others_and_waits_once_it_holds_its_share() {
        let permits = permits(8, 64);
        // Each server gets half of the permits that the servers before it left.
        let mut first = take_all(&permits, FIRST, 100);
        assert_eq!(first.len(), 4);
        let second = take_all(&permits, SECOND, 200);
        assert_eq!(second.len(), 2);
        let third = take_all(&permits, Some(ServerId(3)), 300);
        assert_eq!(third.len(), 1);
        let mut waiting_first = Box::pin(permits.take(FIRST, &400));
        let mut waiting_fourth = Box::pin(permits.take(Some(ServerId(4)), &401));
        assert!((&mut waiting_first).now_or_never().is_none());
        let fourth = (&mut waiting_fourth).now_or_never();
        assert!(fourth.is_some_and(|permit| permit.is_some()), "there is one left for another server");
        first.clear();
        assert!((&mut waiting_first).now_or_never().is_some_and(|permit| permit.is_some()));
        drop((waiting_first, waiting_fourth, second, third));
        let state = permits.state.lock();
        assert_eq!((state.running.total, state.waiting.total), (0, 0));
        assert!(state.running.of_servers.is_empty() && state.running.of_destinations.is_empty());
        assert!(state.queues.is_empty() && state.ring.is_empty());
    }

    #[tokio::test]
    async fn one_destination_leaves_room_for_others_of_the_same_server() {
        let permits = permits(9, 64);
        let slow: Vec<_> = std::iter::from_fn(|| permits.try_take(FIRST, &7)).collect();
        assert_eq!(slow.len(), 3);
        let other = permits.try_take(FIRST, &8);
        assert!(other.is_some());
        assert!(permits.try_take(SECOND, &7).is_none(), "the destination is slow for everybody");
        assert!(permits.try_take(SECOND, &9).is_some());
    }

    #[tokio::test]
    async fn servers_and_destinations_that_wait_take_turns_and_those_that_gave_up_are_passed_over() {
        let permits = permits(2, 64);
        let taken = [
            permits.try_take(Some(ServerId(9)), &1).unwrap(),
            permits.try_take(Some(ServerId(8)), &2).unwrap(),
        ];
        let mut of_first: Vec<_> = (0..5).map(|_| Box::pin(permits.take(FIRST, &3))).collect();
        assert!(of_first.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        let mut of_second = Box::pin(permits.take(SECOND, &4));
        assert!((&mut of_second).now_or_never().is_none());
        let mut elsewhere = Box::pin(permits.take(FIRST, &5));
        assert!((&mut elsewhere).now_or_never().is_none());
        drop(of_first.remove(0));
        drop(taken);
        let mut got = of_first.iter_mut().filter_map(FutureExt::now_or_never).collect::<Vec<_>>();
        let got_second = (&mut of_second).now_or_never();
        assert_eq!((got.len(), got_second.is_some()), (1, true));
        got.clear();
        let next = (&mut elsewhere).now_or_never();
        assert!(next.is_some(), "the other destination has its turn before the four that still wait");
    }

    #[tokio::test]
    async fn waiting_work_of_one_server_leaves_room_for_others() {
        let permits = permits(1, 8);
        let _permit = permits.try_take(None, &0).unwrap();
        let destinations: Vec<u32> = (1..21).collect();
        let mut waiting: Vec<_> =
            destinations.iter().map(|destination| Box::pin(permits.take(FIRST, destination))).collect();
        let refused = waiting.iter_mut().filter_map(FutureExt::now_or_never).count();
        assert_eq!(refused, 16, "one server may have four of the eight pieces of waiting work");
        let mut other = Box::pin(permits.take(SECOND, &50));
        assert!((&mut other).now_or_never().is_none(), "it waits for its turn");
    }

    #[tokio::test]
    async fn work_that_gives_up_leaves_nothing_behind() {
        let permits = permits(1, 8);
        let _permit = permits.try_take(None, &0).unwrap();
        for destination in 1..100 {
            let mut waiting = Box::pin(permits.take(FIRST, &destination));
            assert!((&mut waiting).now_or_never().is_none());
        }
        let queued = permits.state.lock().queues.values().map(|queue| queue.ring.len()).sum::<usize>();
        assert!(queued <= 9, "{queued}");
    }
}
