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

    pub(crate) fn is_unlimited(&self) -> bool {
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

    /// Number of messages that a server may have now.
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
    /// Number of messages in memory, wherever they wait.
    pub(crate) fn entry_count(&self) -> usize {
        self.memory.total
    }

    /// Number of messages that may be taken from the store.
    pub(crate) fn room_left(&self) -> usize {
        self.memory.max.saturating_sub(self.memory.total)
    }

    /// Servers that have as many messages in memory as they may.
    pub(crate) fn full_servers(&mut self) -> Vec<ServerId> {
        self.memory.full_servers()
    }

    /// Call this when the store had no more due messages, except for the servers that were `skipped`.
    pub(crate) fn on_caught_up_with_store(&mut self, skipped: &[ServerId]) {
        self.memory.caught_up(skipped);
    }

    /// The limits for new messages, if they have changed since the last call.
    pub(crate) fn take_intake_limits(&mut self) -> Option<IntakeLimits> {
        std::mem::take(&mut self.memory.has_changed).then(|| self.memory.intake.clone())
    }

    /// One more entry of this lane.
    pub(super) fn count_in(&mut self, lane: usize, server: ServerId) {
        self.lanes[lane].entry_count += 1;
        self.memory.add(server);
    }

    /// One entry of this lane less.
    pub(super) fn count_out(&mut self, lane: usize, server: ServerId) {
        self.lanes[lane].entry_count -= 1;
        self.memory.remove(server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEDY: ServerId = ServerId(1);
    const MODEST: ServerId = ServerId(2);

    fn add_while_room(memory: &mut MemoryLimit, server: ServerId) -> usize {
        let mut taken = 0;
        while memory.intake.has_room(server) {
            memory.add(server);
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_server_leaves_as_much_room_as_it_takes() {
        let mut memory = MemoryLimit::new(1_000);
        // Half of the 900 messages that are not reserved; then half of what the first server left.
        assert_eq!(add_while_room(&mut memory, GREEDY), 450);
        assert_eq!(memory.full, [GREEDY].into());
        assert_eq!(add_while_room(&mut memory, MODEST), 225);
        assert!(memory.intake.has_room(ServerId(3)));
        for server in 3.. {
            if add_while_room(&mut memory, ServerId(server)) == 0 {
                break;
            }
        }
        assert_eq!(memory.total, 1_000);
        assert!(memory.intake.all_servers);
    }

    #[test]
    fn new_messages_do_not_overtake_older_ones_in_the_store() {
        let mut memory = MemoryLimit::new(1_000);
        add_while_room(&mut memory, GREEDY);
        for _ in 0..64 {
            memory.remove(GREEDY);
            assert!(memory.full.contains(&GREEDY), "with {} messages", memory.total);
        }
        memory.remove(GREEDY);
        assert!(memory.full.is_empty(), "with {} messages", memory.total);
        assert!(!memory.intake.has_room(GREEDY), "older messages may be in the store");
        memory.caught_up(&[GREEDY]);
        assert!(!memory.intake.has_room(GREEDY), "the claim skipped this server");
        memory.has_changed = false;
        memory.caught_up(&[]);
        assert!(memory.intake.has_room(GREEDY) && memory.has_changed);
        for _ in 0..385 {
            memory.remove(GREEDY);
        }
        assert!(memory.counts_by_server.is_empty() && memory.total == 0);
    }

    #[test]
    fn a_full_memory_takes_no_new_messages_until_all_due_ones_in_the_store_are_claimed() {
        let mut memory = MemoryLimit::new(4);
        for server in 1..5 {
            memory.add(ServerId(server));
        }
        assert!(!memory.intake.has_room(ServerId(9)));
        memory.caught_up(&[]);
        assert!(!memory.intake.has_room(ServerId(9)));
        memory.remove(ServerId(1));
        memory.remove(ServerId(2));
        assert!(!memory.intake.has_room(ServerId(9)));
        memory.caught_up(&[]);
        assert!(memory.intake.has_room(ServerId(9)) && memory.intake.has_room(ServerId(1)));
    }

    #[test]
    fn the_last_tenth_of_the_memory_is_for_servers_with_few_messages() {
        let mut memory = MemoryLimit::new(10_000);
        let mut server = 1;
        while memory.free() > 1_000 {
            assert!(add_while_room(&mut memory, ServerId(server)) > 0);
            server += 1;
        }
        assert_eq!(add_while_room(&mut memory, ServerId(server)), 5, "a server that comes late gets a few");
        assert!(memory.intake.has_room(ServerId(server + 1)));
    }

    #[test]
    fn a_full_server_has_room_again_when_the_messages_of_other_servers_are_gone() {
        let mut memory = MemoryLimit::new(100);
        add_while_room(&mut memory, GREEDY);
        while memory.intake.has_room(MODEST) {
            memory.add(MODEST);
        }
        assert_eq!(memory.full_servers(), [GREEDY, MODEST]);
        while memory.counts_by_server.contains_key(&GREEDY) {
            memory.remove(GREEDY);
        }
        assert!(memory.full_servers().is_empty(), "{memory:?}");
    }
}
