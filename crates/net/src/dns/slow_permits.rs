//! Permits for look-ups without an answer so far, shared by servers. A server may have as many running, and as
//! many waiting, as are left for the others; waiting look-ups take turns by server.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use postroad_model::ServerId;
use tokio::sync::oneshot;

/// Server whose mail a look-up is for; `None` for the service itself.
pub(super) type Asker = Option<ServerId>;

#[derive(Debug)]
pub(super) struct SlowPermits {
    running_max: usize,
    waiting_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: Counts,
    waiting: Counts,
    /// Waiting look-ups by server; a server with an entry is in the ring.
    queues: HashMap<Asker, VecDeque<oneshot::Sender<SlowPermit>>>,
    ring: VecDeque<Asker>,
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    of: HashMap<Asker, usize>,
}

impl Counts {
    /// Whether this server may have one more: as many as it has must stay free for others.
    fn has_room(&self, asker: Asker, max: usize) -> bool {
        let own = self.of.get(&asker).copied().unwrap_or(0);
        self.total < max && own < (max - self.total).max(1)
    }

    fn add(&mut self, asker: Asker) {
        self.total += 1;
        *self.of.entry(asker).or_default() += 1;
    }

    fn remove(&mut self, asker: Asker) {
        self.total -= 1;
        if let Some(own) = self.of.get_mut(&asker) {
            *own -= 1;
            if *own == 0 {
                self.of.remove(&asker);
            }
        }
    }
}

/// Permit; dropping it frees it.
#[derive(Debug)]
pub(super) struct SlowPermit {
    permits: Arc<SlowPermits>,
    asker: Asker,
}

/// Counts one waiting look-up until it is dropped.
struct Waiting<'a> {
    permits: &'a SlowPermits,
    asker: Asker,
}

impl SlowPermits {
    pub(super) fn new(running_max: usize, waiting_max: usize) -> Arc<Self> {
        Arc::new(Self { running_max, waiting_max, state: Mutex::default() })
    }

    /// Takes a permit if one is free now.
    pub(super) fn try_take(self: &Arc<Self>, asker: Asker) -> Option<SlowPermit> {
        let mut state = self.state.lock();
        if !state.running.has_room(asker, self.running_max) {
            return None;
        }
        state.running.add(asker);
        Some(SlowPermit { permits: Arc::clone(self), asker })
    }

    /// Waits for its turn; `None` if too many of this server wait already.
    pub(super) async fn take(self: &Arc<Self>, asker: Asker) -> Option<SlowPermit> {
        if let Some(permit) = self.try_take(asker) {
            return Some(permit);
        }
        let (_waiting, turn) = {
            let mut state = self.state.lock();
            if !state.waiting.has_room(asker, self.waiting_max) {
                return None;
            }
            state.waiting.add(asker);
            (Waiting { permits: self, asker }, state.line_up(asker, self.waiting_max))
        };
        turn.await.ok()
    }

    fn release(self: &Arc<Self>, asker: Asker) {
        let mut unwanted = Vec::new();
        {
            let mut state = self.state.lock();
            state.running.remove(asker);
            while let Some((asker, turn)) = state.next(self.running_max) {
                state.running.add(asker);
                // Dropping a permit takes the lock, so permits for look-ups that gave up are dropped after it
                // is released.
                unwanted.extend(turn.send(SlowPermit { permits: Arc::clone(self), asker }).err());
                if !unwanted.is_empty() {
                    break;
                }
            }
        }
        drop(unwanted);
    }
}

impl State {
    fn line_up(&mut self, asker: Asker, waiting_max: usize) -> oneshot::Receiver<SlowPermit> {
        let (turn, waiting) = oneshot::channel();
        let queue = self.queues.entry(asker).or_insert_with(|| {
            self.ring.push_back(asker);
            VecDeque::new()
        });
        if queue.len() >= waiting_max {
            // Look-ups that gave up no longer count.
            queue.retain(|turn| !turn.is_closed());
        }
        queue.push_back(turn);
        waiting
    }

    /// Next waiting look-up among the servers that may have one more.
    fn next(&mut self, running_max: usize) -> Option<(Asker, oneshot::Sender<SlowPermit>)> {
        for _ in 0..self.ring.len() {
            let asker = self.ring.pop_front()?;
            if !self.running.has_room(asker, running_max) {
                self.ring.push_back(asker);
                continue;
            }
            let queue = self.queues.get_mut(&asker)?;
            let turn = loop {
                match queue.pop_front() {
                    Some(turn) if turn.is_closed() => {}
                    turn => break turn,
                }
            };
            if queue.is_empty() {
                self.queues.remove(&asker);
            } else {
                self.ring.push_back(asker);
            }
            if let Some(turn) = turn {
                return Some((asker, turn));
            }
        }
        None
    }
}

impl Drop for SlowPermit {
    fn drop(&mut self) {
        self.permits.release(self.asker);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.permits.state.lock().waiting.remove(self.asker);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn take_all(permits: &Arc<SlowPermits>, asker: Asker) -> Vec<SlowPermit> {
        std::iter::from_fn(|| permits.try_take(asker)).collect()
    }

    #[tokio::test]
    async fn one_server_leaves_room_for_the_next_and_gets_no_more_while_others_wait() {
        let permits = SlowPermits::new(8, 64);
        let mut first = take_all(&permits, Some(ServerId(1)));
        assert_eq!(first.len(), 4);
        let second = take_all(&permits, Some(ServerId(2)));
        assert_eq!(second.len(), 2);
        let third = take_all(&permits, Some(ServerId(3)));
        assert_eq!(third.len(), 1);
        let mut waiting_first = Box::pin(permits.take(Some(ServerId(1))));
        let mut waiting_fourth = Box::pin(permits.take(Some(ServerId(4))));
        assert!((&mut waiting_first).now_or_never().is_none());
        let fourth = (&mut waiting_fourth).now_or_never();
        assert!(fourth.is_some_and(|permit| permit.is_some()), "there is one left for another server");
        first.clear();
        assert!((&mut waiting_first).now_or_never().is_some_and(|permit| permit.is_some()));
        drop((waiting_first, waiting_fourth, second, third));
        let state = permits.state.lock();
        assert_eq!((state.running.total, state.waiting.total), (0, 0));
        assert!(state.running.of.is_empty() && state.queues.is_empty() && state.ring.is_empty());
    }

    #[tokio::test]
    async fn servers_that_wait_take_turns_and_those_that_gave_up_are_passed_over() {
        let permits = SlowPermits::new(2, 64);
        let held =
            [permits.try_take(Some(ServerId(9))).unwrap(), permits.try_take(Some(ServerId(8))).unwrap()];
        let mut of_first: Vec<_> = (0..5).map(|_| Box::pin(permits.take(Some(ServerId(1))))).collect();
        assert!(of_first.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        let mut of_second = Box::pin(permits.take(Some(ServerId(2))));
        assert!((&mut of_second).now_or_never().is_none());
        drop(of_first.remove(0));
        drop(held);
        let got_first = of_first.iter_mut().filter_map(FutureExt::now_or_never).collect::<Vec<_>>();
        let got_second = (&mut of_second).now_or_never();
        assert_eq!((got_first.len(), got_second.is_some()), (1, true));
    }

    #[tokio::test]
    async fn what_one_server_has_waiting_leaves_room_for_others() {
        let permits = SlowPermits::new(1, 8);
        let _held = permits.try_take(None).unwrap();
        let mut waiting: Vec<_> = (0..20).map(|_| Box::pin(permits.take(Some(ServerId(1))))).collect();
        let refused = waiting.iter_mut().filter_map(FutureExt::now_or_never).count();
        assert_eq!(refused, 16);
        let mut other = Box::pin(permits.take(Some(ServerId(2))));
        assert!((&mut other).now_or_never().is_none(), "it waits for its turn");
    }
}
