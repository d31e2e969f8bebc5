//! Why something was not done with a template.

use postroad_store::StoreError;

use super::language::TemplateProblem;
use super::render_failure::RenderFailure;
use crate::{FieldProblem, Refusal};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateRefusal {
    /// Fields that are wrong, all of them at once.
    Validation(Vec<FieldProblem>),
    /// Mistakes in the texts.
    Invalid(Vec<TemplateProblem>),
    NotFound,
    VersionNotFound,
    /// It has no version that mails could be made of.
    NotPublished,
    /// No version was published before the one that is.
    NothingToRollBackTo,
    AliasTaken,
    /// A layout that templates have around them.
    InUse,
    TooMany,
    Render(RenderFailure),
    Store(Refusal),
}

/// Verbs about one template say `NotFound` when it is not there.
impl From<StoreError> for TemplateRefusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            StoreError::Conflict => Self::AliasTaken,
            StoreError::InUse => Self::InUse,
            other => Self::Store(other.into()),
        }
    }
}

impl From<Refusal> for TemplateRefusal {
    fn from(refusal: Refusal) -> Self {
        Self::Store(refusal)
    }
}
