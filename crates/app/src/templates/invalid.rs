//! Errors of filters and operators.

use minijinja::{Error, ErrorKind};

/// A value that something cannot be done with.
pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}
