//! Why a text could not be rendered with its model.

use serde::{Deserialize, Serialize};

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
