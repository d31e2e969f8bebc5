//! Concurrency limit of DNS look-ups, so that slow names delay fast ones little. A look-up without an answer after a
//! moment takes a permit for slow names instead. If none is free, the look-up is stopped and started again: once after
//! a second, then when a permit for slow names is free. Servers and zones have shares of all permits
//! (`fair_permits.rs`). After a look-up without an answer in time, the name's next one starts with a permit for slow
//! names.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::proto::rr::{Name, RecordType};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::fair_permits::{FairPermits, PermitLimits, Share, Tenant};

/// Maximum number of concurrent look-ups. Each one over UDP has its own socket.
pub const DNS_SOCKETS_MAX: usize = QUICK_MAX + SLOW_MAX;
const QUICK_MAX: usize = 640;
/// Permits for quick names. They are free again within a moment, so one server may have most of them.
const QUICK_LIMITS: PermitLimits = PermitLimits {
    running_max: QUICK_MAX,
    waiting_max: 16_384,
    of_server: Share::FOUR_FIFTHS,
    of_destination: Share::THIRD,
};
const SLOW_MAX: usize = 512;
const SLOW_LIMITS: PermitLimits = PermitLimits {
    running_max: SLOW_MAX,
    waiting_max: 2_048,
    of_server: Share::HALF,
    of_destination: Share::THIRD,
};
/// Time for an answer before a look-up counts as slow.
pub(super) const QUICK_TIME: Duration = Duration::from_millis(500);
/// Time for an answer before a look-up counts as slow, while look-ups for the same sending server wait for permits.
const QUICK_TIME_IF_CONTENDED: Duration = Duration::from_millis(150);
/// Pause before a slow look-up without a permit is tried again: many name servers have cached the answer by then.
const SECOND_TRY_AFTER: Duration = Duration::from_secs(1);
/// Look-ups without an answer are remembered in two generations of this size; when the younger is full, the older is
/// dropped.
const GENERATION_UNANSWERED_MAX: usize = 8_192;

pub(super) type Question = (Name, RecordType);

#[derive(Debug)]
pub(super) struct LookupPermits {
    /// Permits for quick names. The destinations of all permits are zones.
    quick: Arc<FairPermits<Name>>,
    slow: Arc<FairPermits<Name>>,
    unanswered: Mutex<[HashSet<Question>; 2]>,
}

/// Why there is no result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// No answer in time.
    Late,
    /// No permit became free in time, or too many look-ups wait for one. A query may have been sent, but its answer was
    /// awaited only briefly.
    Busy,
}

impl Default for LookupPermits {
    fn default() -> Self {
        Self {
            quick: FairPermits::new(QUICK_LIMITS),
            slow: FairPermits::new(SLOW_LIMITS),
            unanswered: Mutex::default(),
        }
    }
}

impl LookupPermits {
    /// Runs `lookup`, which may be started up to three times. `time_max` is the timeout of each answer, and of each
    /// wait for a permit.
    pub(super) async fn run_lookup<T, F: Future<Output = T>>(
        &self,
        question: &Question,
        tenant: Tenant,
        time_max: Duration,
        lookup: impl Fn() -> F,
    ) -> Result<T, NoAnswer> {
        let late = |_| NoAnswer::Late;
        let busy = |_| NoAnswer::Busy;
        let zone = zone_of(&question.0);
        let tries = if self.is_unanswered(question) { 0 } else { 2 };
        for number in 0..tries {
            if number > 0 {
                tokio::time::sleep(SECOND_TRY_AFTER).await;
            }
            let permit = timeout_at(Instant::now() + time_max, self.quick.take(tenant, &zone)).await;
            let permit = permit.map_err(busy)?.ok_or(NoAnswer::Busy)?;
            let begun = Instant::now();
            let is_contended = self.quick.is_contended(tenant);
            let quick_time = if is_contended { QUICK_TIME_IF_CONTENDED } else { QUICK_TIME };
            let mut answer = pin!(lookup());
            if let Ok(outcome) = timeout_at(begun + quick_time, &mut answer).await {
                return Ok(outcome);
            }
            if let Some(_slow_permit) = self.slow.try_take(tenant, &zone) {
                drop(permit);
                return timeout_at(begun + time_max, answer).await.map_err(late);
            }
        }
        let permit = timeout_at(Instant::now() + time_max, self.slow.take(tenant, &zone)).await;
        let _permit = permit.map_err(busy)?.ok_or(NoAnswer::Busy)?;
        timeout_at(Instant::now() + time_max, lookup()).await.map_err(late)
    }

    /// Whether look-ups for this sending server have to wait for permits.
    pub(super) fn is_contended(&self, tenant: Tenant) -> bool {
        self.quick.is_contended(tenant) || self.slow.is_contended(tenant)
    }

    /// Remembers whether the look-up was answered in time.
    pub(super) fn note_result(&self, question: &Question, is_answered: bool) {
        let mut generations = self.unanswered.lock();
        if is_answered {
            for generation in generations.iter_mut() {
                generation.remove(question);
            }
            return;
        }
        if generations[0].len() >= GENERATION_UNANSWERED_MAX {
            generations.swap(0, 1);
            generations[0].clear();
        }
        generations[0].insert(question.clone());
    }

    fn is_unanswered(&self, question: &Question) -> bool {
        let generations = self.unanswered.lock();
        generations.iter().any(|generation| generation.contains(question))
    }
}

/// The zone of a name, guessed from the name: its registered domain.
fn zone_of(name: &Name) -> Name {
    let mut ends = name.iter().rev();
    let is_short = |label: Option<&[u8]>, max: usize| label.is_some_and(|label| label.len() <= max);
    // Names like `co.uk` have many owners.
    let is_shared = is_short(ends.next(), 2) && is_short(ends.next(), 3);
    name.trim_to(if is_shared { 3 } else { 2 })
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use postroad_model::ServerId;

    use super::*;
    use crate::fair_permits::Permit;

    const TIME_MAX: Duration = Duration::from_secs(24);
    const SERVER: Tenant = Some(ServerId(1));

    fn question(number: usize) -> Question {
        (Name::from_ascii(format!("n{number}.example.")).unwrap(), RecordType::A)
    }

    /// Takes all permits, each for a different server and zone.
    fn take_all(permits: &Arc<FairPermits<Name>>) -> Vec<Permit<Name>> {
        let one =
            |number: i64| permits.try_take(Some(ServerId(number)), &question(100_000 + number as usize).0);
        (100..).map_while(one).collect()
    }

    fn take_all_slow(lookup_permits: &LookupPermits) -> Vec<Permit<Name>> {
        take_all(&lookup_permits.slow)
    }

    #[tokio::test(start_paused = true)]
    async fn dead_names_of_one_server_do_not_keep_a_slow_name_of_another_waiting() {
        let lookup_permits = Arc::new(LookupPermits::default());
        let mut silent = tokio::task::JoinSet::new();
        for number in 0..3_000 {
            let lookup_permits = Arc::clone(&lookup_permits);
            lookup_permits.note_result(&question(number), false);
            silent.spawn(async move {
                lookup_permits.run_lookup(&question(number), SERVER, TIME_MAX, pending::<()>).await.is_ok()
            });
        }
        tokio::task::yield_now().await;
        // The answer takes two seconds, so the look-up needs a slow permit, for which the silent names wait too.
        let answer = || tokio::time::sleep(Duration::from_secs(2));
        let begun = Instant::now();
        let other = Some(ServerId(2));
        assert_eq!(lookup_permits.run_lookup(&question(9_999), other, TIME_MAX, answer).await, Ok(()));
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        silent.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn three_thousand_names_without_an_answer_hold_up_a_new_one_for_less_than_two_seconds() {
        let lookup_permits = Arc::new(LookupPermits::default());
        let mut silent = tokio::task::JoinSet::new();
        for number in 0..3_000 {
            let lookup_permits = Arc::clone(&lookup_permits);
            silent.spawn(async move {
                let answer =
                    lookup_permits.run_lookup(&question(number), SERVER, TIME_MAX, pending::<()>).await;
                lookup_permits.note_result(&question(number), false);
                answer
            });
        }
        tokio::task::yield_now().await;
        let begun = Instant::now();
        assert_eq!(lookup_permits.run_lookup(&question(9_999), SERVER, TIME_MAX, || ready(7)).await, Ok(7));
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        let (mut late, mut busy) = (0, 0);
        while let Some(ended) = silent.join_next().await {
            match ended.unwrap() {
                Err(NoAnswer::Late) => late += 1,
                Err(NoAnswer::Busy) => busy += 1,
                Ok(()) => panic!("nobody answered"),
            }
        }
        assert!(late >= SLOW_MAX / 2 && busy > 0, "{late} late, {busy} busy");
        assert_eq!(take_all(&lookup_permits.quick).len(), QUICK_MAX);
        assert_eq!(take_all_slow(&lookup_permits).len(), SLOW_MAX, "all permits are free again");
    }

    /// Starts look-ups that nobody answers.
    fn start_unanswered(
        lookup_permits: &Arc<LookupPermits>,
        server: i64,
        names: impl Iterator<Item = String>,
    ) -> tokio::task::JoinSet<()> {
        let mut silent = tokio::task::JoinSet::new();
        for name in names {
            let lookup_permits = Arc::clone(lookup_permits);
            silent.spawn(async move {
                let question = (Name::from_ascii(name).unwrap(), RecordType::A);
                let _ = lookup_permits
                    .run_lookup(&question, Some(ServerId(server)), TIME_MAX, pending::<()>)
                    .await;
            });
        }
        silent
    }

    #[tokio::test(start_paused = true)]
    async fn new_names_of_one_server_do_not_wait_for_unanswered_names_of_another_server() {
        let lookup_permits = Arc::new(LookupPermits::default());
        let names = (0..10_000).map(|number| format!("n{number}.example."));
        let mut silent = start_unanswered(&lookup_permits, 1, names);
        tokio::task::yield_now().await;
        let begun = Instant::now();
        for number in 20_000..20_100 {
            assert_eq!(
                lookup_permits.run_lookup(&question(number), Some(ServerId(2)), TIME_MAX, || ready(7)).await,
                Ok(7)
            );
        }
        assert!(begun.elapsed() < Duration::from_millis(10), "{:?}", begun.elapsed());
        silent.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn new_names_do_not_wait_for_those_of_a_slow_zone_of_the_same_server() {
        let lookup_permits = Arc::new(LookupPermits::default());
        let names = (0..3_000).map(|number| format!("host{number}.slow.example."));
        let mut silent = start_unanswered(&lookup_permits, 1, names);
        tokio::task::yield_now().await;
        let begun = Instant::now();
        for number in 0..100 {
            assert_eq!(
                lookup_permits.run_lookup(&question(number), SERVER, TIME_MAX, || ready(7)).await,
                Ok(7)
            );
        }
        assert!(begun.elapsed() < Duration::from_millis(10), "{:?}", begun.elapsed());
        silent.shutdown().await;
    }

    #[test]
    fn the_zone_of_a_name_is_its_registered_domain() {
        for (name, zone) in [
            ("mx.mail.example.com.", "example.com."),
            ("example.com.", "example.com."),
            ("com.", "com."),
            (".", "."),
            ("mx.example.co.uk.", "example.co.uk."),
            ("mx.example.com.br.", "example.com.br."),
            ("_mta-sts.example.de.", "example.de."),
        ] {
            assert_eq!(zone_of(&Name::from_ascii(name).unwrap()).to_ascii(), zone, "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_unanswered_question_needs_a_slow_permit_until_it_is_answered() {
        let lookup_permits = LookupPermits::default();
        let all = take_all_slow(&lookup_permits);
        lookup_permits.note_result(&question(1), false);
        assert_eq!(
            lookup_permits.run_lookup(&question(1), SERVER, TIME_MAX, || ready(())).await,
            Err(NoAnswer::Busy)
        );
        let other_type = (question(1).0, RecordType::AAAA);
        assert_eq!(lookup_permits.run_lookup(&other_type, SERVER, TIME_MAX, || ready(())).await, Ok(()));
        assert_eq!(lookup_permits.run_lookup(&question(2), SERVER, TIME_MAX, || ready(())).await, Ok(()));
        drop(all);
        assert_eq!(lookup_permits.run_lookup(&question(1), SERVER, TIME_MAX, || ready(())).await, Ok(()));
        lookup_permits.note_result(&question(1), true);
        let _all = take_all_slow(&lookup_permits);
        assert_eq!(lookup_permits.run_lookup(&question(1), SERVER, TIME_MAX, || ready(())).await, Ok(()));
    }

    #[test]
    fn the_number_of_remembered_questions_is_bounded() {
        let lookup_permits = LookupPermits::default();
        (0..5 * GENERATION_UNANSWERED_MAX)
            .for_each(|number| lookup_permits.note_result(&question(number), false));
        assert!(
            lookup_permits.is_unanswered(&question(5 * GENERATION_UNANSWERED_MAX - 1))
                && !lookup_permits.is_unanswered(&question(0))
        );
        let known: usize = lookup_permits.unanswered.lock().iter().map(HashSet::len).sum();
        assert!(known <= 2 * GENERATION_UNANSWERED_MAX);
    }
}
