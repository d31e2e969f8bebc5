//! Last DNS answers about mail hosts and addresses, kept beyond their TTL. They are used while the name servers of a
//! domain fail or do not answer (RFC 8767).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::proto::rr::RecordType;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::lookup_permits::Question;
use super::question::{Answer, LookupFailure, Outcome};

/// Longest use of an old answer; RFC 8767 5 suggests one to three days.
const AGE_MAX: Duration = Duration::from_hours(24);
/// TTL that callers get for an old answer, so that the question is asked again soon (RFC 8767 4).
const OLD_ANSWER_TTL: Duration = Duration::from_secs(30);
/// Answers are kept in two generations of this size; when the younger is full, the older is dropped.
const GENERATION_ANSWERS_MAX: usize = 16_384;
/// Larger answers are not kept.
const RECORDS_MAX: usize = 32;

/// Records of a name, or the fact that it had none of this type.
#[derive(Debug, Clone)]
struct KnownAnswer {
    answer: Option<Arc<Answer>>,
    learned_at: Instant,
}

#[derive(Debug, Default)]
pub(super) struct LastKnown {
    generations: Mutex<[HashMap<Question, KnownAnswer>; 2]>,
}

impl LastKnown {
    /// Remembers an answer. Forgets the previous one if the name no longer exists or the answer is too large; failures
    /// change nothing.
    pub(super) fn note(&self, question: &Question, outcome: &Outcome) {
        if !is_kept_type(question.1) {
            return;
        }
        let answer = match outcome {
            Ok(answer) if answer.records.len() <= RECORDS_MAX => Some(Some(Arc::clone(answer))),
            Err(LookupFailure::NoData) => Some(None),
            Ok(_) | Err(LookupFailure::NoSuchName) => None,
            Err(LookupFailure::Temporary(_) | LookupFailure::Busy) => return,
        };
        let mut generations = self.generations.lock();
        generations[1].remove(question);
        let Some(answer) = answer else {
            generations[0].remove(question);
            return;
        };
        if generations[0].len() >= GENERATION_ANSWERS_MAX {
            generations.swap(0, 1);
            generations[0].clear();
        }
        generations[0].insert(question.clone(), KnownAnswer { answer, learned_at: Instant::now() });
    }

    /// Last answer, if it is not too old.
    pub(super) fn find(&self, question: &Question) -> Option<Outcome> {
        if !is_kept_type(question.1) {
            return None;
        }
        let generations = self.generations.lock();
        let known = generations.iter().find_map(|generation| generation.get(question))?;
        if known.learned_at.elapsed() >= AGE_MAX {
            return None;
        }
        Some(match &known.answer {
            Some(answer) => Ok(Arc::new(Answer {
                records: answer.records.clone(),
                ttl: OLD_ANSWER_TTL,
                owner: answer.owner.clone(),
                is_secure: answer.is_secure,
            })),
            None => Err(LookupFailure::NoData),
        })
    }
}

/// Whether answers of this type are kept. Of other types, such as TXT and TLSA, callers need the current records.
fn is_kept_type(record_type: RecordType) -> bool {
    matches!(record_type, RecordType::MX | RecordType::A | RecordType::AAAA)
}

#[cfg(test)]
mod tests {
    use hickory_resolver::proto::rr::rdata::A;
    use hickory_resolver::proto::rr::{Name, RData};

    use super::*;

    fn question(number: usize) -> Question {
        (Name::from_ascii(format!("n{number}.example.")).unwrap(), RecordType::A)
    }

    fn answer(records: usize) -> Arc<Answer> {
        let records = vec![RData::A(A::new(192, 0, 2, 1)); records];
        Arc::new(Answer { records, ttl: Duration::from_hours(1), owner: Name::root(), is_secure: false })
    }

    fn failure() -> Outcome {
        Err(LookupFailure::Temporary("SERVFAIL".to_owned()))
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_answer_survives_failures_for_a_day() {
        let known = LastKnown::default();
        known.note(&question(1), &Ok(answer(1)));
        known.note(&question(1), &failure());
        let found = known.find(&question(1)).unwrap().unwrap();
        assert_eq!((found.records.len(), found.ttl), (1, OLD_ANSWER_TTL));
        tokio::time::advance(AGE_MAX).await;
        assert!(known.find(&question(1)).is_none());
    }

    #[tokio::test]
    async fn a_name_that_does_not_exist_any_more_is_forgotten_and_large_answers_are_not_kept() {
        let known = LastKnown::default();
        known.note(&question(1), &Ok(answer(1)));
        known.note(&question(1), &Err(LookupFailure::NoSuchName));
        assert!(known.find(&question(1)).is_none());
        known.note(&question(2), &Ok(answer(RECORDS_MAX + 1)));
        assert!(known.find(&question(2)).is_none());
        known.note(&question(3), &Err(LookupFailure::NoData));
        assert_eq!(known.find(&question(3)).unwrap().unwrap_err(), LookupFailure::NoData);
    }

    #[tokio::test]
    async fn the_number_of_kept_answers_is_bounded() {
        let known = LastKnown::default();
        (0..3 * GENERATION_ANSWERS_MAX).for_each(|number| known.note(&question(number), &Ok(answer(1))));
        let kept: usize = known.generations.lock().iter().map(HashMap::len).sum();
        assert!(
            kept <= 2 * GENERATION_ANSWERS_MAX
                && known.find(&question(3 * GENERATION_ANSWERS_MAX - 1)).is_some()
        );
    }
}
