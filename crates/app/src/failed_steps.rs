//! Steps of periodic background work. A step that fails does not keep the other steps from running.

use postroad_store::StoreError;

/// The steps of a round that failed. They are repeated in the next round.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", steps.join(", "))]
pub struct FailedSteps {
    pub steps: Vec<&'static str>,
    /// Error of the first step that failed.
    pub error: StoreError,
}

/// Failures of one round.
#[derive(Debug, Default)]
pub(crate) struct Round {
    failed: Option<FailedSteps>,
}

impl Round {
    /// Records whether a step failed. Returns the value of its result; `None` if the step failed.
    pub(crate) fn record<T>(&mut self, step: &'static str, result: Result<T, StoreError>) -> Option<T> {
        match (result, &mut self.failed) {
            (Ok(done), _) => return Some(done),
            (Err(_), Some(failed)) => failed.steps.push(step),
            (Err(error), failed) => *failed = Some(FailedSteps { steps: vec![step], error }),
        }
        None
    }

    pub(crate) fn end(self) -> Result<(), FailedSteps> {
        self.failed.map_or(Ok(()), Err)
    }
}
