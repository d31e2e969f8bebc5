//! The filters of templates. minijinja's own filters are charged for the arguments that they read as a whole. Filters
//! that could create a large value in one step are replaced by ours.

mod builtin;
mod dates;
mod locale_format;
mod numbers;
mod operators;
mod plurals;
mod sequences;
pub(super) mod texts;

use minijinja::{Environment, Value};

use super::language::InputKind;
pub(super) use locale_format::LocaleFormat;

/// Our own filters: name, and kind of input.
const OWN_FILTERS: [(&str, InputKind); 14] = [
    ("escape", InputKind::Any),
    ("e", InputKind::Any),
    ("join", InputKind::List),
    ("sum", InputKind::List),
    ("replace", InputKind::Any),
    ("tojson", InputKind::Any),
    ("nl2br", InputKind::Any),
    ("number", InputKind::Number),
    ("currency", InputKind::Number),
    ("percent", InputKind::Number),
    ("plural", InputKind::Number),
    ("date", InputKind::Date),
    ("time", InputKind::Date),
    ("datetime", InputKind::Date),
];

/// Input kind of a filter; `None` if there is no such filter.
pub(super) fn input_kind(name: &str) -> Option<InputKind> {
    let own = OWN_FILTERS.iter().find(|(own, _)| *own == name).map(|(_, hint)| *hint);
    own.or_else(|| builtin::input_kind(name))
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OWN_FILTERS.iter().map(|(name, _)| *name).chain(builtin::names())
}

pub(super) fn register(environment: &mut Environment<'static>) {
    builtin::register(environment);
    operators::register(environment);
    sequences::register(environment);
    texts::register(environment);
    numbers::register(environment);
    plurals::register(environment);
    dates::register(environment);
}

/// Name of a value's kind in error messages.
fn kind_of(value: &Value) -> String {
    value.kind().to_string()
}
