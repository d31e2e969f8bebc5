//! The answer to a batch: a result for each of its messages, in their order.

use postroad_model::BatchId;
use postroad_store::LimitUse;
use serde::{Deserialize, Serialize};

use super::answer::AcceptedMessage;
use super::idempotency::ReplayableAnswer;
use crate::{FieldProblem, Refusal};

/// Maximum number of problems listed in one answer. Beyond it, every refused message still names its first problem.
const PROBLEMS_MAX: usize = 1_000;

/// The answer to a batch that was not rejected as a whole. If a message was accepted, repetitions of the request get
/// the same answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchAnswer {
    pub batch_id: BatchId,
    pub results: Vec<BatchResult>,
    pub test_mode: bool,
    pub warnings: Vec<String>,
    /// Whether this is the answer to an earlier request with the same idempotency key.
    #[serde(skip)]
    pub replayed: bool,
    /// The limits against which the messages counted.
    #[serde(skip)]
    pub limits: Vec<LimitUse>,
}

/// Result of one message of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BatchResult {
    Accepted {
        /// The Message-ID header without angle brackets.
        message_id: String,
        messages: Vec<AcceptedMessage>,
    },
    Refused(Refusal),
    /// The message passed its checks, but was not accepted because another message of its atomic batch was refused.
    NotSent,
}

impl ReplayableAnswer for BatchAnswer {
    fn mark_replayed(&mut self) {
        self.replayed = true;
    }
}

/// Keeps the lists of problems of a whole batch within their limit.
#[derive(Debug)]
pub(super) struct ProblemBudget {
    left: usize,
}

impl Default for ProblemBudget {
    fn default() -> Self {
        Self { left: PROBLEMS_MAX }
    }
}

impl ProblemBudget {
    /// The refusal of the message at `index`: its pointers are relative to the batch, and problems beyond the limit are
    /// counted instead of listed.
    pub(super) fn refusal_at(&mut self, index: usize, refusal: Refusal) -> Refusal {
        let Refusal::Validation(mut problems) = refusal else { return refusal };
        let kept = self.left.clamp(1, problems.len().max(1));
        let more = problems.len().saturating_sub(kept);
        problems.truncate(kept);
        problems.shrink_to_fit();
        self.left = self.left.saturating_sub(problems.len());
        for problem in &mut problems {
            problem.pointer.insert_str(0, &format!("/messages/{index}"));
        }
        if more > 0 {
            problems.push(FieldProblem::new(format!("/messages/{index}"), format!("and {more} more")));
        }
        Refusal::Validation(problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refused_message_names_a_problem_and_the_total_of_problems_is_bounded() {
        let mut budget = ProblemBudget::default();
        let mut listed = 0;
        for index in 0..500 {
            let problems =
                (0..50).map(|at| FieldProblem::new(format!("/to/{at}"), "is no address")).collect();
            let Refusal::Validation(problems) = budget.refusal_at(index, Refusal::Validation(problems))
            else {
                panic!("a validation refusal stays one")
            };
            assert_eq!(problems[0].pointer, format!("/messages/{index}/to/0"));
            listed += problems.len();
            let last = &problems[problems.len() - 1];
            assert!(index < 20 || last.message == "and 49 more", "{index}: {}", last.message);
        }
        assert!(listed <= PROBLEMS_MAX + 2 * 500, "{listed}");
        assert_eq!(budget.refusal_at(3, Refusal::NoContent), Refusal::NoContent);
    }
}
