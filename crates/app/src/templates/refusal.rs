//! Refusals of operations on templates.

use postroad_store::StoreError;

use super::language::TemplateProblem;
use super::render_failure::RenderFailure;
use crate::{FieldProblem, Refusal};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateRefusal {
    /// Invalid fields, all of them at once.
    Validation(Vec<FieldProblem>),
    /// Errors in the texts.
    Invalid(Vec<TemplateProblem>),
    NotFound,
    VersionNotFound,
    /// The template has no published version.
    NotPublished,
    /// No other version was published before.
    NothingToRollBackTo,
    AliasTaken,
    /// The template's newest version, which is not the version that the change was made for.
    OtherVersion(i64),
    /// A layout that templates use cannot be deleted.
    InUse,
    TooMany,
    Render(RenderFailure),
    Store(Refusal),
}

/// For operations on one template: `NotFound` means the template.
impl From<StoreError> for TemplateRefusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            StoreError::Conflict => Self::AliasTaken,
            StoreError::InUse => Self::InUse,
            StoreError::MissingReference => Self::layout_not_found(),
            other => Self::Store(other.into()),
        }
    }
}

impl TemplateRefusal {
    pub(super) fn layout_not_found() -> Self {
        let message = "There is no such layout on this server";
        Self::Validation(vec![FieldProblem::new("/layout", message)])
    }
}

impl From<Refusal> for TemplateRefusal {
    fn from(refusal: Refusal) -> Self {
        Self::Store(refusal)
    }
}
