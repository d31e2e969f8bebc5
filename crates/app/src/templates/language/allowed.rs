//! Kinds of values that are allowed at a place in a template.

/// Kinds of values that an expression may have at its place in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// A value only.
    ValueOnly,
    /// A value or `null`: conditions, `and`, `or`, `not`, `bool`, `==`, `!=`, `in`, `not in`, and tests, except for
    /// `defined` and `undefined` (`OrMissing`) and for `lt`, `le`, `gt`, `ge` and their aliases (`ValueOnly`).
    OrNull,
    /// A value, `null` or a missing variable: bound to a name, kept in a list or map, with a default, or in
    /// `is defined` and `is undefined`.
    OrMissing,
}
