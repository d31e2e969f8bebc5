//! The filters of templates. minijinja's own filters run only if their work is counted. Filters that could create a
//! large value in one step are replaced by ours.

mod builtin;
mod dates;
mod numbers;
mod operators;
mod plurals;
mod regional;
mod sequences;
pub(super) mod texts;

use minijinja::{Environment, Value};

use super::language::Hint;
pub(super) use regional::Regional;

/// Ours: name, what it takes.
const OWN: [(&str, Hint); 14] = [
    ("escape", Hint::Any),
    ("e", Hint::Any),
    ("join", Hint::List),
    ("sum", Hint::List),
    ("replace", Hint::Any),
    ("tojson", Hint::Any),
    ("nl2br", Hint::Any),
    ("number", Hint::Number),
    ("currency", Hint::Number),
    ("percent", Hint::Number),
    ("plural", Hint::Number),
    ("date", Hint::Date),
    ("time", Hint::Date),
    ("datetime", Hint::Date),
];

/// Input kind of a filter; `None` if there is no such filter.
pub(super) fn takes(name: &str) -> Option<Hint> {
    let own = OWN.iter().find(|(own, _)| *own == name).map(|(_, hint)| *hint);
    own.or_else(|| builtin::takes(name))
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OWN.iter().map(|(name, _)| *name).chain(builtin::names())
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
