//! `join`, and slices such as `items[:3]`.

use std::fmt::Write as _;

use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};

use super::kind_of;
use super::operators::too_long;
use super::texts::write_escaped;
use crate::templates::invalid::invalid;
use crate::templates::language::SLICE;
use crate::templates::work::{BoundedText, Context, written};

pub(super) fn register(environment: &mut Environment<'static>) {
    environment.add_filter("join", join);
    environment.add_filter(SLICE, slice);
}

fn join(state: &State<'_, '_>, list: &Value, between: Option<&str>) -> Result<Value, Error> {
    if list.is_undefined() {
        return Err(ErrorKind::UndefinedError.into());
    }
    let context = Context::of(state)?;
    let mut text = BoundedText::default();
    // As one text with markup in it would be: entries that are safe stay, others are escaped.
    let is_html = matches!(state.auto_escape(), AutoEscape::Html);
    let entries: Vec<Value> = list.try_iter()?.collect();
    let is_safe = is_html && entries.iter().any(Value::is_safe);
    for (at, entry) in entries.iter().enumerate() {
        context.charge(1)?;
        let entry_text = written(entry)?;
        let between = if at == 0 { "" } else { between.unwrap_or_default() };
        let done = write!(text, "{between}").and_then(|()| {
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

/// As Python cuts, forwards.
fn slice(
    state: &State<'_, '_>,
    value: &Value,
    start: &Value,
    stop: &Value,
    step: &Value,
) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(ErrorKind::UndefinedError.into());
    }
    let context = Context::of(state)?;
    context.charge_value(value)?;
    let number = |value: &Value| {
        if value.is_none() {
            return Ok(None);
        }
        value.as_i64().map(Some).ok_or_else(|| invalid("a slice takes whole numbers"))
    };
    let step = number(step)?.unwrap_or(1);
    let step = usize::try_from(step).ok().filter(|step| *step > 0);
    let step = step.ok_or_else(|| invalid("a slice goes forwards; use `reverse` first"))?;
    let length = value.len().ok_or_else(|| invalid(format!("a {} cannot be cut", kind_of(value))))?;
    let at = |place: Option<i64>, otherwise: usize| match place {
        None => otherwise,
        Some(place) if place < 0 => length.saturating_sub(place.unsigned_abs() as usize),
        Some(place) => (place as usize).min(length),
    };
    let (start, stop) = (at(number(start)?, 0), at(number(stop)?, length));
    let count = stop.saturating_sub(start);
    match value.as_str() {
        Some(text) => Ok(Value::from(text.chars().skip(start).take(count).step_by(step).collect::<String>())),
        None => Ok(Value::from(value.try_iter()?.skip(start).take(count).step_by(step).collect::<Vec<_>>())),
    }
}
