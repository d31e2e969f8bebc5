//! Errors of filters and operators.

use minijinja::{Error, ErrorKind};

/// Error with a message for the author of the template, such as about a value of the wrong kind.
pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}
