//! Concurrency limit of DNS look-ups, so that slow names never delay fast ones. A look-up without an answer
//! after a moment moves to the permits for slow names. If none is free, it is started again: once soon, then
//! when a permit is free. Servers share the permits for slow names (`slow_permits.rs`). Names without an answer
//! in time start there the next time.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::proto::rr::{Name, RecordType};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::slow_permits::{Asker, SlowPermits};

/// Concurrent look-ups. Each one over UDP has its own socket.
pub const DNS_SOCKETS_MAX: usize = QUICK_MAX + SLOW_MAX;
const QUICK_MAX: usize = 640;
/// Permits for slow names; one server gets at most half of them.
const SLOW_MAX: usize = 512;
/// Look-ups that wait for a slow permit; further ones are refused. One server gets at most half of them.
const SLOW_WAITING_MAX: usize = 2_048;
/// Time for an answer before a look-up counts as slow.
pub(super) const QUICK_TIME: Duration = Duration::from_millis(500);
/// The same while all permits are in use.
const QUICK_TIME_IN_A_CROWD: Duration = Duration::from_millis(150);
/// Pause before a slow look-up without a permit is tried again: many name servers have found the answer by
/// then.
const SECOND_TRY_AFTER: Duration = Duration::from_secs(1);
/// Look-ups without an answer are remembered in two generations of this size.
const UNANSWERED_MAX: usize = 8_192;

pub(super) type Question = (Name, RecordType);

#[derive(Debug)]
pub(super) struct Questions {
    quick: Semaphore,
    slow: Arc<SlowPermits>,
    unanswered: Mutex<[HashSet<Question>; 2]>,
}

/// Why there is no result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unasked {
    /// No answer in time.
    Late,
    /// No query was sent: no permit got free in time, or too many wait for one.
    Busy,
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            quick: Semaphore::new(QUICK_MAX),
            slow: SlowPermits::new(SLOW_MAX, SLOW_WAITING_MAX),
            unanswered: Mutex::default(),
        }
    }
}

impl Questions {
    /// Runs `asking`, which may be started three times. `patience` limits the answer, and again the wait for a
    /// permit.
    pub(super) async fn ask<T, F: Future<Output = T>>(
        &self,
        question: &Question,
        asker: Asker,
        patience: Duration,
        asking: impl Fn() -> F,
    ) -> Result<T, Unasked> {
        let late = |_| Unasked::Late;
        let busy = |_| Unasked::Busy;
        let tries = if self.is_unanswered(question) { 0 } else { 2 };
        for number in 0..tries {
            if number > 0 {
                tokio::time::sleep(SECOND_TRY_AFTER).await;
            }
            let place = timeout_at(Instant::now() + patience, self.quick.acquire()).await.map_err(busy)?;
            let begun = Instant::now();
            let is_crowd = self.quick.available_permits() == 0;
            let quick_time = if is_crowd { QUICK_TIME_IN_A_CROWD } else { QUICK_TIME };
            let mut answer = pin!(asking());
            if let Ok(outcome) = timeout_at(begun + quick_time, &mut answer).await {
                return Ok(outcome);
            }
            if let Some(_slow_place) = self.slow.try_take(asker) {
                drop(place);
                return timeout_at(begun + patience, answer).await.map_err(late);
            }
        }
        let place = timeout_at(Instant::now() + patience, self.slow.take(asker)).await.map_err(busy)?;
        let _place = place.ok_or(Unasked::Busy)?;
        timeout_at(Instant::now() + patience, asking()).await.map_err(late)
    }

    /// Remembers whether the look-up was answered in time.
    pub(super) fn note(&self, question: &Question, is_answered: bool) {
        let mut generations = self.unanswered.lock();
        if is_answered {
            for questions in generations.iter_mut() {
                questions.remove(question);
            }
            return;
        }
        if generations[0].len() >= UNANSWERED_MAX {
            generations.swap(0, 1);
            generations[0].clear();
        }
        generations[0].insert(question.clone());
    }

    fn is_unanswered(&self, question: &Question) -> bool {
        let generations = self.unanswered.lock();
        generations.iter().any(|questions| questions.contains(question))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use postroad_model::ServerId;

    use super::super::slow_permits::SlowPermit;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(24);
    const SERVER: Asker = Some(ServerId(1));

    fn name(number: usize) -> Question {
        (Name::from_ascii(format!("n{number}.example.")).unwrap(), RecordType::A)
    }

    /// Takes all permits for slow names, for as many servers.
    fn all_slow(questions: &Questions) -> Vec<SlowPermit> {
        (100..).map_while(|server| questions.slow.try_take(Some(ServerId(server)))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn dead_names_of_one_server_do_not_keep_a_slow_name_of_another_waiting() {
        let questions = Arc::new(Questions::default());
        let mut silent = tokio::task::JoinSet::new();
        for number in 0..3_000 {
            let questions = Arc::clone(&questions);
            questions.note(&name(number), false);
            silent.spawn(async move {
                questions.ask(&name(number), SERVER, PATIENCE, pending::<()>).await.is_ok()
            });
        }
        tokio::task::yield_now().await;
        // It takes two seconds to answer, so it needs a slow permit, which the others want too.
        let answer = || tokio::time::sleep(Duration::from_secs(2));
        let begun = Instant::now();
        let other = Some(ServerId(2));
        assert_eq!(questions.ask(&name(9_999), other, PATIENCE, answer).await, Ok(()));
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        silent.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn three_thousand_names_without_an_answer_hold_up_a_new_one_for_less_than_two_seconds() {
        let questions = Arc::new(Questions::default());
        let mut silent = tokio::task::JoinSet::new();
        for number in 0..3_000 {
            let questions = Arc::clone(&questions);
            silent.spawn(async move {
                let asked = questions.ask(&name(number), SERVER, PATIENCE, pending::<()>).await;
                questions.note(&name(number), false);
                asked
            });
        }
        tokio::task::yield_now().await;
        let begun = Instant::now();
        assert_eq!(questions.ask(&name(9_999), SERVER, PATIENCE, || ready(7)).await, Ok(7));
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        let mut unasked = (0, 0);
        while let Some(ended) = silent.join_next().await {
            match ended.unwrap() {
                Err(Unasked::Late) => unasked.0 += 1,
                Err(Unasked::Busy) => unasked.1 += 1,
                Ok(()) => panic!("nobody answered"),
            }
        }
        assert!(unasked.0 >= SLOW_MAX / 2 && unasked.1 > 0, "{unasked:?}");
        assert_eq!(questions.quick.available_permits(), QUICK_MAX);
        assert_eq!(all_slow(&questions).len(), SLOW_MAX, "all places are free again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_had_no_answer_waits_among_its_like_until_it_is_answered() {
        let questions = Questions::default();
        let all = all_slow(&questions);
        questions.note(&name(1), false);
        assert_eq!(questions.ask(&name(1), SERVER, PATIENCE, || ready(())).await, Err(Unasked::Busy));
        let other_type = (name(1).0, RecordType::AAAA);
        assert_eq!(questions.ask(&other_type, SERVER, PATIENCE, || ready(())).await, Ok(()));
        assert_eq!(questions.ask(&name(2), SERVER, PATIENCE, || ready(())).await, Ok(()));
        drop(all);
        assert_eq!(questions.ask(&name(1), SERVER, PATIENCE, || ready(())).await, Ok(()));
        questions.note(&name(1), true);
        let _all = all_slow(&questions);
        assert_eq!(questions.ask(&name(1), SERVER, PATIENCE, || ready(())).await, Ok(()));
    }

    #[test]
    fn as_many_names_are_remembered_as_there_is_room_for() {
        let questions = Questions::default();
        (0..5 * UNANSWERED_MAX).for_each(|number| questions.note(&name(number), false));
        assert!(questions.is_unanswered(&name(5 * UNANSWERED_MAX - 1)) && !questions.is_unanswered(&name(0)));
        let known: usize = questions.unanswered.lock().iter().map(HashSet::len).sum();
        assert!(known <= 2 * UNANSWERED_MAX);
    }
}
