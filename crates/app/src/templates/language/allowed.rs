//! What the place of an expression in a template allows.

/// What the place of an expression allows it to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// A value only.
    Value,
    /// A value or `null`: conditions, `==`, `in` and tests.
    Null,
    /// Also a missing variable: it is bound to a name, kept in a list, or has a default.
    Missing,
}
