//! minijinja's own filters and tests. Filters that read whole arguments cost work in proportion to the size of the
//! arguments.

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value, filters, functions, tests};

use crate::templates::invalid::invalid;
use crate::templates::language::InputKind;
use crate::templates::work::{Context, is_absent, require};

/// Largest number that `batch` and `slice` take: they can pad short rows, so the number determines the size of the
/// result.
const ROW_LENGTH_MAX: i64 = 1_000;
/// Longest list that `range` may create.
const RANGE_MAX: usize = 10_000;

/// Kind of the first argument that a filter takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArgumentKind {
    /// A text or a number. A list would be written out as a text, which can take arbitrarily long.
    Text,
    Number,
    List,
    Map,
    Any,
}

/// Name of a filter, kind of its first argument, and its function.
type FilterEntry = (&'static str, ArgumentKind, fn() -> Value);

const FILTERS: [FilterEntry; 38] = [
    ("safe", ArgumentKind::Text, || Value::from_function(filters::safe)),
    ("lower", ArgumentKind::Text, || Value::from_function(filters::lower)),
    ("upper", ArgumentKind::Text, || Value::from_function(filters::upper)),
    ("title", ArgumentKind::Text, || Value::from_function(filters::title)),
    ("capitalize", ArgumentKind::Text, || Value::from_function(filters::capitalize)),
    ("trim", ArgumentKind::Text, || Value::from_function(filters::trim)),
    ("string", ArgumentKind::Text, || Value::from_function(filters::string)),
    ("split", ArgumentKind::Text, || Value::from_function(filters::split)),
    ("lines", ArgumentKind::Text, || Value::from_function(filters::lines)),
    ("urlencode", ArgumentKind::Text, || Value::from_function(filters::urlencode)),
    ("round", ArgumentKind::Number, || Value::from_function(filters::round)),
    ("abs", ArgumentKind::Number, || Value::from_function(filters::abs)),
    ("int", ArgumentKind::Text, || Value::from_function(filters::int)),
    ("float", ArgumentKind::Text, || Value::from_function(filters::float)),
    ("bool", ArgumentKind::Any, || Value::from_function(filters::bool)),
    ("default", ArgumentKind::Any, || Value::from_function(filters::default)),
    ("d", ArgumentKind::Any, || Value::from_function(filters::default)),
    ("length", ArgumentKind::Any, || Value::from_function(filters::length)),
    ("count", ArgumentKind::Any, || Value::from_function(filters::length)),
    ("first", ArgumentKind::List, || Value::from_function(filters::first)),
    ("last", ArgumentKind::List, || Value::from_function(filters::last)),
    ("min", ArgumentKind::List, || Value::from_function(filters::min)),
    ("max", ArgumentKind::List, || Value::from_function(filters::max)),
    ("sort", ArgumentKind::List, || Value::from_function(filters::sort)),
    ("reverse", ArgumentKind::List, || Value::from_function(filters::reverse)),
    ("unique", ArgumentKind::List, || Value::from_function(filters::unique)),
    ("list", ArgumentKind::Any, || Value::from_function(filters::list)),
    ("batch", ArgumentKind::List, || Value::from_function(filters::batch)),
    ("slice", ArgumentKind::List, || Value::from_function(filters::slice)),
    ("groupby", ArgumentKind::List, || Value::from_function(filters::groupby)),
    ("map", ArgumentKind::List, || Value::from_function(filters::map)),
    ("select", ArgumentKind::List, || Value::from_function(filters::select)),
    ("reject", ArgumentKind::List, || Value::from_function(filters::reject)),
    ("selectattr", ArgumentKind::List, || Value::from_function(filters::selectattr)),
    ("rejectattr", ArgumentKind::List, || Value::from_function(filters::rejectattr)),
    ("items", ArgumentKind::Map, || Value::from_function(filters::items)),
    ("dictsort", ArgumentKind::Map, || Value::from_function(filters::dictsort)),
    ("attr", ArgumentKind::Map, || Value::from_function(filters::attr)),
];

pub(super) fn input_kind(name: &str) -> Option<InputKind> {
    let (_, kind, _) = FILTERS.iter().find(|(known, _, _)| *known == name)?;
    Some(match kind {
        ArgumentKind::Number => InputKind::Number,
        ArgumentKind::List => InputKind::List,
        ArgumentKind::Map => InputKind::Map,
        ArgumentKind::Text | ArgumentKind::Any => InputKind::Any,
    })
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FILTERS.iter().map(|(name, _, _)| *name)
}

pub(super) fn register(environment: &mut Environment<'static>) {
    for (name, kind, function) in FILTERS {
        let function = function();
        environment.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            call(state, name, kind, &function, &args.into_values())
        });
    }
    environment.add_function("range", range);
    environment.add_test("defined", |value: &Value| !is_absent(value));
    environment.add_test("undefined", is_absent);
    environment.add_test("none", tests::is_none);
    environment.add_test("true", tests::is_true);
    environment.add_test("false", tests::is_false);
    environment.add_test("boolean", tests::is_boolean);
    environment.add_test("odd", tests::is_odd);
    environment.add_test("even", tests::is_even);
    environment.add_test("divisibleby", tests::is_divisibleby);
    environment.add_test("number", tests::is_number);
    environment.add_test("integer", tests::is_integer);
    environment.add_test("int", tests::is_integer);
    environment.add_test("float", tests::is_float);
    environment.add_test("string", tests::is_string);
    environment.add_test("sequence", tests::is_sequence);
    environment.add_test("iterable", tests::is_iterable);
    environment.add_test("mapping", tests::is_mapping);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("lower", tests::is_lower);
    environment.add_test("upper", tests::is_upper);
    environment.add_test("safe", tests::is_safe);
    // Needed by `select` and similar filters.
    environment.add_test("eq", tests::is_eq);
    environment.add_test("ne", tests::is_ne);
    environment.add_test("lt", tests::is_lt);
    environment.add_test("le", tests::is_le);
    environment.add_test("gt", tests::is_gt);
    environment.add_test("ge", tests::is_ge);
}

fn call(
    state: &mut State<'_, '_>,
    name: &str,
    kind: ArgumentKind,
    function: &Value,
    args: &[Value],
) -> Result<Value, Error> {
    let context = Context::of(state)?;
    let first = args.first().ok_or_else(|| invalid(format!("`{name}` needs a value")))?;
    match name {
        "default" | "d" if first.is_none() => {
            return Ok(args.get(1).cloned().unwrap_or_else(|| Value::from("")));
        }
        "default" | "d" => {}
        "bool" if first.is_none() => {}
        _ => require(first)?,
    }
    let is_composite = matches!(
        first.kind(),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map | ValueKind::Plain | ValueKind::Bytes
    );
    if matches!(kind, ArgumentKind::Text | ArgumentKind::Number) && is_composite {
        return Err(invalid(format!("`{name}` takes a text or a number, not a {}", super::kind_of(first))));
    }
    // The excepted filters do not read whole arguments.
    if !matches!(name, "default" | "d" | "length" | "count" | "first" | "attr") {
        args.iter().try_for_each(|arg| context.charge_value(arg))?;
    }
    if matches!(name, "batch" | "slice")
        && args.get(1).and_then(Value::as_i64).is_none_or(|n| n > ROW_LENGTH_MAX)
    {
        return Err(invalid(format!("`{name}` takes a number up to {ROW_LENGTH_MAX}")));
    }
    if name == "round" && args.get(1).and_then(Value::as_i64).is_some_and(|digits| digits.abs() > 20) {
        return Err(invalid("`round` takes at most 20 digits"));
    }
    let result = function.call(state, args)?;
    // A lazy value would be computed each time it is read.
    if result.kind() == ValueKind::Iterable {
        let entries: Vec<Value> = result.try_iter()?.collect();
        context.charge(entries.len() as u64)?;
        return Ok(Value::from(entries));
    }
    Ok(result)
}

fn range(
    state: &State<'_, '_>,
    lower: isize,
    upper: Option<isize>,
    step: Option<isize>,
) -> Result<Value, Error> {
    let range = functions::range(lower, upper, step)?;
    let count = range.len().unwrap_or(usize::MAX);
    if count > RANGE_MAX {
        return Err(invalid(format!("`range` makes at most {RANGE_MAX} numbers")));
    }
    Context::of(state)?.charge(count as u64)?;
    Ok(Value::from(range.try_iter()?.collect::<Vec<_>>()))
}
