//! Origin of a server's value: operator or account.

/// Origin of a ceiling, a suspension or a gate of a server. An account cannot lift one that the operator set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetBy {
    Operator,
    Account,
}

impl SetBy {
    /// Reads a column value.
    pub(crate) fn from_stored(text: Option<&str>) -> Self {
        if text.is_some() { Self::Account } else { Self::Operator }
    }

    /// Column value; `NULL` is the operator.
    pub(crate) fn stored(self) -> Option<&'static str> {
        (self == Self::Account).then_some("account")
    }
}
