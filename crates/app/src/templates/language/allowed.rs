//! Kinds of values that are allowed at a place in a template.

/// Kinds of values that an expression may have at its place in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// A value only.
    Value,
    /// A value or `null`: conditions, `and`, `or`, `not`, `bool`, `==`, `!=`, `in`, `not in`, and tests, except for
    /// `defined` and `undefined` (`Missing`) and for `lt`, `le`, `gt`, `ge` and their aliases (`Value`).
    Null,
    /// A value, `null` or a missing variable: bound to a name, kept in a list or map, with a default, or in
    /// `is defined` and `is undefined`.
    Missing,
}
