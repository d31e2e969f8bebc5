//! Who makes a change: the operator or the account.

/// Who makes a change. An account cannot lift a ceiling, suspension or gate of the operator.
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
