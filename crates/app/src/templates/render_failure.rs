//! Rendering error of a template, with part and line.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RenderFailure {
    /// The model has no such variable.
    VariableMissing {
        variable: String,
        part: String,
        line: usize,
        column: usize,
        /// The most similar name in the model.
        nearest: Option<String>,
        /// The complete error message.
        message: String,
    },
    /// Any other error, such as a value that is not a number, or too much work.
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
