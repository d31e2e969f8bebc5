//! Limit on the messages in memory. One server may have as many messages as there is room left for all others; a
//! tenth of the limit is kept free for servers that have few. Other messages wait in the store and are claimed,
//! oldest first, as soon as there is room. Until a server's waiting messages are all claimed, its new messages stay in
//! the store too, so that they do not overtake older ones.

use std::collections::{BTreeSet, HashMap};

use postroad_model::ServerId;

use super::Schedule;

/// One part in this many of the limit is kept free for servers with few messages in memory.
const RESERVE_DIVISOR: usize = 10;
/// A server has few messages if it has fewer than the limit divided by this.
const FEW_MESSAGES_DIVISOR: usize = 2_000;

#[derive(Debug)]
pub(super) struct MemoryLimit {
    max: usize,
    total: usize,
    counts_by_server: HashMap<ServerId, usize>,
    /// Servers that get no more from the store, until a quarter of their share is free again.
    full: BTreeSet<ServerId>,
    intake: IntakeLimits,
    /// Whether `intake` has changed since it was last taken.
    has_changed: bool,
}

/// Servers whose new messages stay in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IntakeLimits {
    /// Whether new messages of all servers stay in the store.
    all_servers: bool,
    servers: BTreeSet<ServerId>,
}

impl IntakeLimits {
    pub(crate) fn has_room(&self, server: ServerId) -> bool {
        !self.all_servers && !self.servers.contains(&server)
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.all_servers && self.servers.is_empty()
    }
}

impl MemoryLimit {
    pub(super) fn new(max: usize) -> Self {
        let (counts_by_server, full, intake) = (HashMap::new(), BTreeSet::new(), IntakeLimits::default());
        Self { max: max.max(1), total: 0, counts_by_server, full, intake, has_changed: false }
    }

    pub(super) fn add(&mut self, server: ServerId) {
        self.total += 1;
        let count = self.counts_by_server.entry(server).or_default();
        *count += 1;
        let count = *count;
        let free = self.free();
        if count >= self.share() && self.full.insert(server) {
            self.has_changed |= self.intake.servers.insert(server);
        }
        if free == 0 && !self.intake.all_servers {
            self.intake.all_servers = true;
            self.has_changed = true;
        }
    }

    pub(super) fn remove(&mut self, server: ServerId) {
        self.total -= 1;
        let Some(count) = self.counts_by_server.get_mut(&server) else { return };
        *count -= 1;
        if *count == 0 {
            self.counts_by_server.remove(&server);
        }
        if self.has_room_again(server) {
            self.full.remove(&server);
        }
    }

    fn free(&self) -> usize {
        self.max.saturating_sub(self.total)
    }

    /// Messages that a server may have now.
    fn share(&self) -> usize {
        let free = self.free();
        let few = (self.max / FEW_MESSAGES_DIVISOR).max(1);
        free.saturating_sub(self.max / RESERVE_DIVISOR).max(few.min(free))
    }

    /// Whether a quarter of the server's share is free.
    fn has_room_again(&self, server: ServerId) -> bool {
        self.counts_by_server.get(&server).is_none_or(|count| count * 4 <= self.share() * 3)
    }

    /// Servers that are still full. Their share may have grown, because messages of other servers have left.
    fn full_servers(&mut self) -> Vec<ServerId> {
        let full = std::mem::take(&mut self.full);
        self.full = full.into_iter().filter(|server| !self.has_room_again(*server)).collect();
        self.full.iter().copied().collect()
    }

    /// With more lanes than this, lanes without messages are dropped early.
    pub(super) fn idle_lanes_max(&self) -> usize {
        self.max / 10
    }

    /// Everything that was due has been claimed from the store, except for messages of `skipped` servers.
    fn caught_up(&mut self, skipped: &[ServerId]) {
        let before = self.intake.clone();
        self.intake.all_servers = self.total >= self.max;
        let full = &self.full;
        self.intake.servers.retain(|server| full.contains(server) || skipped.contains(server));
        self.has_changed |= before != self.intake;
    }
}

impl Schedule {
    /// Messages in memory, wherever they wait.
    pub(crate) fn entries(&self) -> usize {
        self.memory.total
    }

    /// Messages that may be taken from the store.
    pub(crate) fn room_left(&self) -> usize {
        self.memory.max.saturating_sub(self.memory.total)
    }

    /// Servers that have as many messages in memory as they may.
    pub(crate) fn full_servers(&mut self) -> Vec<ServerId> {
        self.memory.full_servers()
    }

    /// Call this when the store had no more due messages, except for the servers that were `skipped`.
    pub(crate) fn store_caught_up(&mut self, skipped: &[ServerId]) {
        self.memory.caught_up(skipped);
    }

    /// The limits for new messages, if they have changed since the last call.
    pub(crate) fn take_intake_limits(&mut self) -> Option<IntakeLimits> {
        std::mem::take(&mut self.memory.has_changed).then(|| self.memory.intake.clone())
    }

    /// One more entry of this lane.
    pub(super) fn count_in(&mut self, lane: usize, server: ServerId) {
        self.lanes[lane].entries += 1;
        self.memory.add(server);
    }

    /// One entry of this lane less.
    pub(super) fn count_out(&mut self, lane: usize, server: ServerId) {
        self.lanes[lane].entries -= 1;
        self.memory.remove(server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEDY: ServerId = ServerId(1);
    const MODEST: ServerId = ServerId(2);

    fn add_while_room(room: &mut MemoryLimit, server: ServerId) -> usize {
        let mut taken = 0;
        while room.intake.has_room(server) {
            room.add(server);
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_server_leaves_as_much_room_as_it_takes() {
        let mut room = MemoryLimit::new(1_000);
        assert_eq!(add_while_room(&mut room, GREEDY), 450);
        assert_eq!(room.full, [GREEDY].into());
        assert_eq!(add_while_room(&mut room, MODEST), 225);
        assert!(room.intake.has_room(ServerId(3)));
        for server in 3.. {
            if add_while_room(&mut room, ServerId(server)) == 0 {
                break;
            }
        }
        assert_eq!(room.total, 1_000);
        assert!(room.intake.all_servers);
    }

    #[test]
    fn new_messages_do_not_overtake_older_ones_in_the_store() {
        let mut room = MemoryLimit::new(1_000);
        add_while_room(&mut room, GREEDY);
        for _ in 0..64 {
            room.remove(GREEDY);
            assert!(room.full.contains(&GREEDY), "with {} messages", room.total);
        }
        room.remove(GREEDY);
        assert!(room.full.is_empty(), "with {} messages", room.total);
        assert!(!room.intake.has_room(GREEDY), "older messages may be in the store");
        room.caught_up(&[GREEDY]);
        assert!(!room.intake.has_room(GREEDY), "the claim skipped this server");
        room.has_changed = false;
        room.caught_up(&[]);
        assert!(room.intake.has_room(GREEDY) && room.has_changed);
        for _ in 0..385 {
            room.remove(GREEDY);
        }
        assert!(room.counts_by_server.is_empty() && room.total == 0);
    }

    #[test]
    fn a_full_memory_takes_new_messages_of_no_server_until_the_store_has_caught_up() {
        let mut room = MemoryLimit::new(4);
        for server in 1..5 {
            room.add(ServerId(server));
        }
        assert!(!room.intake.has_room(ServerId(9)));
        room.caught_up(&[]);
        assert!(!room.intake.has_room(ServerId(9)));
        room.remove(ServerId(1));
        room.remove(ServerId(2));
        assert!(!room.intake.has_room(ServerId(9)));
        room.caught_up(&[]);
        assert!(room.intake.has_room(ServerId(9)) && room.intake.has_room(ServerId(1)));
    }

    #[test]
    fn the_last_tenth_of_the_memory_is_for_servers_with_few_messages() {
        let mut room = MemoryLimit::new(10_000);
        let mut server = 1;
        while room.free() > 1_000 {
            assert!(add_while_room(&mut room, ServerId(server)) > 0);
            server += 1;
        }
        assert_eq!(add_while_room(&mut room, ServerId(server)), 5, "a server that comes late gets a few");
        assert!(room.intake.has_room(ServerId(server + 1)));
    }

    #[test]
    fn a_full_server_has_room_again_when_the_messages_of_other_servers_are_gone() {
        let mut room = MemoryLimit::new(100);
        add_while_room(&mut room, GREEDY);
        while room.intake.has_room(MODEST) {
            room.add(MODEST);
        }
        assert_eq!(room.full_servers(), [GREEDY, MODEST]);
        while room.counts_by_server.contains_key(&GREEDY) {
            room.remove(GREEDY);
        }
        assert!(room.full_servers().is_empty(), "{room:?}");
    }
}
