//! Corrects the times in the schedule when the clock goes back, so that pauses do not last until the old time is
//! reached again.

use std::cmp::Reverse;
use std::time::Duration;

use postroad_model::Timestamp;

use super::lane::LaneRoute;
use super::wakes::Wake;
use super::{Entry, Schedule};

impl Schedule {
    /// Moves all waiting times by `by` into the past. Returns the messages that are not due yet, to be released to the
    /// store, which knows when they should be due.
    pub(crate) fn clock_went_back(&mut self, by: Duration, now: Timestamp) -> Vec<Entry> {
        self.shift_back(by);
        self.wakes.clear();
        self.wake_again(now);
        self.take_due_after(now)
    }

    /// Takes the messages that are due after `moment` out of the schedule.
    pub(crate) fn take_due_after(&mut self, moment: Timestamp) -> Vec<Entry> {
        let due_later = self.timeline.take_after(moment);
        for (lane, entry) in &due_later {
            self.count_out(*lane, entry.server_id);
        }
        due_later.into_iter().map(|(_, entry)| entry).collect()
    }

    fn shift_back(&mut self, by: Duration) {
        for (_, lane) in &mut self.lanes {
            lane.wake_at = None;
            if let LaneRoute::Known { until, .. } | LaneRoute::Failed { until, .. } = &mut lane.route {
                *until = until.minus(by);
            }
        }
        for (_, path) in &mut self.paths {
            path.back_off.shift_back(by);
            path.reached_at = path.reached_at.map(|at| at.minus(by));
            path.taken_at = path.taken_at.map(|at| at.minus(by));
            path.last_request_at = path.last_request_at.map(|at| at.minus(by));
            path.lacks_room_since = path.lacks_room_since.map(|at| at.minus(by));
        }
        for (_, source_site) in &mut self.source_sites {
            source_site.connection_limit.shift_back(by);
            source_site.rate.shift_back(by);
            source_site.standstill.shift_back(by);
        }
        for (_, lane) in &mut self.lanes {
            lane.trouble.shift_back(by);
            lane.accepted_from = lane.accepted_from.map(|(source, at)| (source, at.minus(by)));
        }
        for source_provider in self.source_providers.values_mut() {
            source_provider.rate.shift_back(by);
            source_provider.standstill.shift_back(by);
            source_provider.taken_at = source_provider.taken_at.map(|at| at.minus(by));
            for pace in [&mut source_provider.limit, &mut source_provider.openings].into_iter().flatten() {
                pace.shift_back(by);
            }
        }
        for server_gate in self.servers.values_mut() {
            server_gate.shift_back(by);
        }
        self.accounts.shift_back(by);
        for (_, queue) in &mut self.queues {
            queue.wake_at = None;
        }
        self.gates.shift_back(by);
        self.shift_attempts_back(by);
    }

    /// Schedules wake-ups again that were meant for the old time.
    fn wake_again(&mut self, now: Timestamp) {
        let failed = |(id, lane): (usize, &super::lane::Lane)| match lane.route {
            LaneRoute::Failed { until, .. } => Some(Reverse((until, Wake::Lane(id)))),
            _ => None,
        };
        let lanes: Vec<_> = self.lanes.iter().filter_map(failed).collect();
        self.wakes.extend(lanes);
        self.gates_wake_at = None;
        self.wake_at_end_of_gates(now);
        self.mark_overdue_attempts_silent(now);
        self.readmit_all(now);
    }
}

#[cfg(test)]
mod tests {
    use postroad_model::{DomainName, MessageId, ServerId};

    use super::*;
    use crate::schedule::Action;
    use crate::schedule::warm_up::WarmUpPlan;

    const CORRECT_NOW: Timestamp = Timestamp::from_micros(1_794_700_800_000_000);
    const DAY: Duration = Duration::from_hours(24);

    fn entry(message: i64, due_at: Timestamp) -> Entry {
        Entry {
            server_id: ServerId(1),
            message_id: MessageId(message),
            due_at,
            expires_at: None,
            attempts: 0,
            chosen_pool: None,
            source: None,
            greylisting: None,
            delay_notice_at: None,
            was_tried_before_claim: false,
            was_aborted: false,
            is_begun: false,
            loaded_message: None,
        }
    }

    fn count_look_ups(schedule: &mut Schedule) -> usize {
        let is_resolve = |action: &Action| matches!(action, Action::Resolve { .. });
        schedule.take_actions().iter().filter(|action| is_resolve(action)).count()
    }

    #[test]
    fn pauses_that_began_while_the_clock_was_a_day_ahead_end_in_time() {
        let ahead = CORRECT_NOW.plus(DAY);
        let mut schedule =
            Schedule::new(vec![Duration::from_mins(1)], "mx.test".into(), WarmUpPlan::default(), 10, 1_000);
        let domain = |name: &str| DomainName::parse(name).unwrap();
        schedule.add(domain("silent.example"), false, entry(1, ahead), ahead);
        let Some(Action::Resolve { lane, .. }) = schedule.take_actions().pop() else { panic!("no lookup") };
        schedule.on_unresolved(lane, ahead.plus(Duration::from_mins(1)), "no answer".into(), false, ahead);
        schedule.add(domain("later.example"), false, entry(2, ahead.plus(Duration::from_mins(5))), ahead);

        let to_release = schedule.clock_went_back(DAY, CORRECT_NOW);
        assert_eq!(to_release.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), [MessageId(2)]);
        assert_eq!(schedule.entry_count(), 1, "released entries are not counted any more");
        assert_eq!(count_look_ups(&mut schedule), 0);
        schedule.tick(CORRECT_NOW.plus(Duration::from_secs(61)));
        assert_eq!(count_look_ups(&mut schedule), 1, "the DNS is asked again after a minute");
    }

    #[test]
    fn fresh_message_accepted_while_the_clock_was_ahead_does_not_wait() {
        let mut schedule =
            Schedule::new(vec![Duration::from_mins(1)], "mx.test".into(), WarmUpPlan::default(), 10, 1_000);
        let domain = DomainName::parse("new.example").unwrap();
        schedule.add_due(domain, false, entry(1, CORRECT_NOW.plus(DAY)), CORRECT_NOW);
        assert_eq!(count_look_ups(&mut schedule), 1);
    }
}
