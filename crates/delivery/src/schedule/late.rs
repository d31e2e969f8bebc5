//! Messages that a receiver's trouble has kept waiting for long: nobody refused them, so they were not told anything yet. Now
//! they are, with the cause; and those that are too old are given up.

use std::time::Duration;

use postroad_model::Timestamp;

use super::block::{Block, Why};
use super::{Entry, LaneKey, Schedule};

/// Shorter waits are not reported.
const LATE_AFTER: Duration = Duration::from_mins(5);

/// A message that has waited for long.
#[derive(Debug)]
pub(crate) struct Late {
    pub(crate) lane: LaneKey,
    pub(crate) entry: Entry,
    pub(crate) block: Block,
}

impl Entry {
    fn is_late(&self, now: Timestamp) -> bool {
        self.tell_at.unwrap_or_else(|| self.due_at.plus(LATE_AFTER)) <= now
    }
}

impl Schedule {
    /// Takes out those that wait for a site or a domain that takes nothing, at most so many. What an operator keeps back, and what
    /// only waits for its turn, stays untouched.
    pub(crate) fn take_late(&mut self, limit: usize, now: Timestamp) -> Vec<Late> {
        let mut late = Vec::new();
        let has_work = |queue: &super::Queue| queue.waiting.waiting() > 0 && !queue.route.is_exempt;
        let queues: Vec<usize> =
            self.queues.iter().filter(|(_, queue)| has_work(queue)).map(|(id, _)| id).collect();
        for queue in queues {
            if late.len() >= limit {
                break;
            }
            let of_site = self.receivers_trouble(queue, now);
            if of_site.is_none() && self.troubled_lanes == 0 {
                continue;
            }
            let lanes = &self.lanes;
            let is_meant = |lane: usize, entry: &Entry| {
                entry.is_late(now) && (of_site.is_some() || lanes[lane].trouble.is_standing())
            };
            let taken = self.queues[queue].waiting.take_if(limit - late.len(), is_meant);
            for (lane_id, entry) in taken {
                let lane = &mut self.lanes[lane_id];
                lane.entries -= 1;
                let of_domain =
                    || Block { until: lane.trouble.blocked_until(now), why: lane.trouble_cause(now) };
                let block = of_site.clone().unwrap_or_else(of_domain);
                late.push(Late { lane: lane.key.clone(), entry, block });
            }
        }
        late
    }

    /// Block by the receiver that affects all addresses of a pool.
    fn receivers_trouble(&mut self, queue: usize, now: Timestamp) -> Option<Block> {
        let mut trouble = None;
        for path_id in self.queues[queue].paths.clone() {
            if self.paths[path_id].retired {
                continue;
            }
            let block = self.path_block(path_id, now)?;
            let is_receivers =
                matches!(block.why, Why::BackOff { .. } | Why::NoConnection { .. } | Why::Standstill { .. });
            if !is_receivers {
                return None;
            }
            trouble.get_or_insert(block);
        }
        trouble
    }
}
