//! Why something was not done with a template.

use postroad_store::StoreError;
use serde::{Deserialize, Serialize};

use super::language::TemplateProblem;
use crate::{FieldProblem, Refusal};

/// A text that could not be rendered with the model it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RenderFailure {
    /// The model has no such variable.
    VariableMissing {
        variable: String,
        part: String,
        line: usize,
        column: usize,
        /// The nearest name that the model has.
        nearest: Option<String>,
        /// A sentence with all of it.
        message: String,
    },
    /// Anything else, such as a number that was expected and is none, or too much work.
    Failed { part: String, line: usize, message: String },
}

impl RenderFailure {
    pub fn code(&self) -> &'static str {
        match self {
            Self::VariableMissing { .. } => "TemplateVariableMissing",
            Self::Failed { .. } => "TemplateRenderingFailed",
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::VariableMissing { message, .. } | Self::Failed { message, .. } => message,
        }
    }
}

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
