//! The filters `join` and `sum`, and the filter for slices such as `items[:3]`.
#![expect(clippy::needless_pass_by_value, reason = "minijinja gives filters their arguments by value")]

use std::borrow::Cow;
use std::fmt::Write as _;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};

use super::kind_of;
use super::operators::{calculate, too_long};
use super::texts::{as_markup, write_escaped};
use crate::templates::invalid::invalid;
use crate::templates::language::SLICE;
use crate::templates::work::{BoundedText, Context, is_absent, require, value_text};

pub(super) fn register(environment: &mut Environment<'static>) {
    environment.add_filter("join", join);
    environment.add_filter("sum", sum);
    environment.add_filter(SLICE, slice);
}

fn join(state: &State<'_, '_>, list: &Value, between: Option<&Value>) -> Result<Value, Error> {
    require(list)?;
    let context = Context::of(state)?;
    let mut text = BoundedText::default();
    // In HTML, one safe entry makes the result safe: safe entries are kept, and all others are escaped.
    let is_html = matches!(state.auto_escape(), AutoEscape::Html);
    let entries: Vec<Value> = list.try_iter()?.collect();
    let is_safe = is_html && entries.iter().any(Value::is_safe);
    let between = match between {
        None => Cow::default(),
        Some(between) if is_safe => as_markup(state, between)?,
        Some(between) => value_text(between)?,
    };
    for (at, entry) in entries.iter().enumerate() {
        context.charge(1)?;
        let entry_text = value_text(entry)?;
        let done = text.write_str(if at == 0 { "" } else { &between }).and_then(|()| {
            if is_safe && !entry.is_safe() {
                write_escaped(&mut text, &entry_text)
            } else {
                text.write_str(&entry_text)
            }
        });
        done.map_err(|_| too_long())?;
    }
    let text = text.finish(&context)?;
    Ok(if is_safe { Value::from_safe_string(text) } else { Value::from(text) })
}

/// `rows|sum(attribute="price")`. Adds numbers; `true` counts as 1. A row without the attribute is an error: a mail
/// with a wrong sum is worse than no mail.
fn sum(
    state: &State<'_, '_>,
    list: &Value,
    attribute: Option<&str>,
    start: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    require(list)?;
    let context = Context::of(state)?;
    let attribute = attribute.or(kwargs.get("attribute")?);
    let start = start.or(kwargs.get("start")?);
    kwargs.assert_all_used()?;
    let mut total = number(&start.unwrap_or_else(|| Value::from(0)))?;
    for entry in list.try_iter()? {
        context.charge(1)?;
        let entry = match attribute {
            Some(path) => at_path(&context, entry, path)?,
            None => entry,
        };
        if is_absent(&entry) {
            return Err(match attribute {
                Some(path) => invalid(format!(
                    "`sum`: an entry has no `{path}`; sum only those that have it: `selectattr(\"{path}\")|sum(attribute=\"{path}\")`"
                )),
                None => ErrorKind::UndefinedError.into(),
            });
        }
        total = calculate(&total, "+", &number(&entry)?)?;
    }
    Ok(total)
}

fn number(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Number => Ok(value.clone()),
        ValueKind::Bool => Ok(Value::from(i64::from(value.is_true()))),
        _ => Err(invalid(format!("`sum` adds numbers, not a {}", kind_of(value)))),
    }
}

/// The part of a value at a path such as `user.orders.0.price`; undefined if a step of the path is missing.
fn at_path(context: &Context, value: Value, path: &str) -> Result<Value, Error> {
    path.split('.').try_fold(value, |value, step| {
        context.charge(1)?;
        if value.is_undefined() {
            return Ok(value);
        }
        match step.parse::<usize>() {
            Ok(index) => value.get_item_by_index(index),
            Err(_) => value.get_attr(step),
        }
    })
}

/// Slices as Python does, but only forwards.
fn slice(
    state: &State<'_, '_>,
    value: &Value,
    start: &Value,
    stop: &Value,
    step: &Value,
) -> Result<Value, Error> {
    require(value)?;
    let context = Context::of(state)?;
    context.charge_value(value)?;
    let optional_number = |value: &Value| {
        if value.is_none() {
            return Ok(None);
        }
        value.as_i64().map(Some).ok_or_else(|| invalid("a slice takes whole numbers"))
    };
    let step = optional_number(step)?.unwrap_or(1);
    let step = usize::try_from(step).ok().filter(|step| *step > 0);
    let step = step.ok_or_else(|| invalid("a slice goes forwards; use `reverse` first"))?;
    let length = value.len().ok_or_else(|| invalid(format!("a {} cannot be cut", kind_of(value))))?;
    let offset_of = |index: Option<i64>, default: usize| match index {
        None => default,
        Some(index) if index < 0 => length.saturating_sub(index.unsigned_abs() as usize),
        Some(index) => (index as usize).min(length),
    };
    let (start, stop) = (offset_of(optional_number(start)?, 0), offset_of(optional_number(stop)?, length));
    let count = stop.saturating_sub(start);
    match value.as_str() {
        Some(text) => Ok(Value::from(text.chars().skip(start).take(count).step_by(step).collect::<String>())),
        None => Ok(Value::from(value.try_iter()?.skip(start).take(count).step_by(step).collect::<Vec<_>>())),
    }
}
