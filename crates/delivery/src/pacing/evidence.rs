//! Recent refusals without an acceptance in between. The caller decides how many parts of a site or provider, and mail
//! of how many servers, must be refused before all of it is slowed or stopped.

use std::collections::HashSet;
use std::time::Duration;

use postroad_model::{ServerId, Timestamp};

const REFUSALS_MAX: usize = 16;
const AGE_MAX: Duration = Duration::from_mins(10);

#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Part, server and time of each refusal, oldest first.
    refusals: Vec<(u64, ServerId, Timestamp)>,
}

impl Evidence {
    /// Adds a refusal of a server's mail. `part` is a recipient domain of a site, or a site of a provider.
    pub fn add(&mut self, part: u64, server: ServerId, now: Timestamp) {
        self.refusals.retain(|(_, _, at)| now.since(*at) < AGE_MAX);
        self.refusals.retain(|(other_part, other_server, _)| (*other_part, *other_server) != (part, server));
        if self.refusals.len() >= REFUSALS_MAX {
            self.refusals.remove(0);
        }
        self.refusals.push((part, server, now));
    }

    pub fn clear(&mut self) {
        self.refusals.clear();
    }

    /// Number of parts that refused.
    pub fn part_count(&self) -> usize {
        self.refusals.iter().map(|(part, _, _)| part).collect::<HashSet<_>>().len()
    }

    /// Number of servers whose mail was refused.
    pub fn server_count(&self) -> usize {
        self.refusals.iter().map(|(_, server, _)| server).collect::<HashSet<_>>().len()
    }
}
