//! Recent refusals without an acceptance in between. The caller decides how many parts of a site or provider, and mail
//! of how many servers, must be refused before all of it is slowed or stopped.

use std::collections::HashSet;
use std::time::Duration;

use postroad_model::{ServerId, Timestamp};

const KEPT_MAX: usize = 16;
const KEPT_FOR: Duration = Duration::from_mins(10);

#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Part, server and time of each refusal, oldest first.
    seen: Vec<(u64, ServerId, Timestamp)>,
}

impl Evidence {
    /// Adds a refusal of a server's mail. `part` is a recipient domain of a site, or a site of a provider.
    pub fn add(&mut self, part: u64, server: ServerId, now: Timestamp) {
        self.seen.retain(|(_, _, at)| now.since(*at) < KEPT_FOR);
        self.seen.retain(|(other, of, _)| (*other, *of) != (part, server));
        if self.seen.len() >= KEPT_MAX {
            self.seen.remove(0);
        }
        self.seen.push((part, server, now));
    }

    pub fn clear(&mut self) {
        self.seen.clear();
    }

    pub fn parts(&self) -> usize {
        self.seen.iter().map(|(part, _, _)| part).collect::<HashSet<_>>().len()
    }

    pub fn servers(&self) -> usize {
        self.seen.iter().map(|(_, server, _)| server).collect::<HashSet<_>>().len()
    }
}
