//! Kinds of values that are allowed at a place in a template.

/// Kinds of values that an expression may have at its place in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// A value only.
    Value,
    /// A value or `null`: conditions, `==`, `in` and tests.
    Null,
    /// A value, `null` or a missing variable: where it is bound to a name, kept in a list, or has a default.
    Missing,
}
