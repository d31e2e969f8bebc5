//! The filters `escape`, `replace`, `tojson` and `nl2br`.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io;

use minijinja::{AutoEscape, Environment, Error, State, Value};

use super::operators::too_long;
use crate::templates::invalid::invalid;
use crate::templates::work::{BoundedOutput, BoundedText, Context, TEXT_BYTES_MAX, require, value_text};

pub(super) fn register(environment: &mut Environment<'static>) {
    environment.add_filter("escape", escape);
    environment.add_filter("e", escape);
    environment.add_filter("replace", replace);
    environment.add_filter("tojson", to_json);
    environment.add_filter("nl2br", nl2br);
}

/// Escapes a text for HTML, including attribute values.
pub(in crate::templates) fn write_escaped(out: &mut impl fmt::Write, text: &str) -> fmt::Result {
    let mut copied_to = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            _ => continue,
        };
        out.write_str(&text[copied_to..at])?;
        out.write_str(escaped)?;
        copied_to = at + 1;
    }
    out.write_str(&text[copied_to..])
}

/// Escapes a text once, even where automatic escaping is off.
fn escape(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    let context = Context::of(state)?;
    if value.is_safe() {
        return Ok(value.clone());
    }
    let mut out = BoundedText::default();
    write_escaped(&mut out, &value_text(value)?).map_err(|_| too_long())?;
    Ok(Value::from_safe_string(out.finish(&context)?))
}

/// A value to insert into a safe text: escaped in HTML, unless the value is safe itself.
pub(super) fn as_markup<'v>(state: &State<'_, '_>, value: &'v Value) -> Result<Cow<'v, str>, Error> {
    let text = value_text(value)?;
    if value.is_safe() || !matches!(state.auto_escape(), AutoEscape::Html) {
        return Ok(text);
    }
    let context = Context::of(state)?;
    let mut out = BoundedText::default();
    write_escaped(&mut out, &text).map_err(|_| too_long())?;
    Ok(out.finish(&context)?.into())
}

fn replace(state: &State<'_, '_>, value: &Value, from: &str, to: &Value) -> Result<Value, Error> {
    require(value)?;
    let context = Context::of(state)?;
    let text = value.as_str().ok_or_else(|| invalid("`replace` takes a text"))?;
    let to = if value.is_safe() { as_markup(state, to)? } else { value_text(to)? };
    context.charge_text(text.len())?;
    if from.is_empty() {
        return Ok(value.clone());
    }
    let mut out = BoundedText::default();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        write!(out, "{}{to}", &rest[..at]).map_err(|_| too_long())?;
        rest = &rest[at + from.len()..];
    }
    out.write_str(rest).map_err(|_| too_long())?;
    let out = out.finish(&context)?;
    Ok(if value.is_safe() { Value::from_safe_string(out) } else { Value::from(out) })
}

/// JSON that is safe in the text of HTML, in scripts, and in attributes with single quotes.
fn to_json(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    require(value)?;
    let context = Context::of(state)?;
    context.charge_value(value)?;
    let mut out = BoundedOutput { bytes: Vec::new(), bytes_max: TEXT_BYTES_MAX };
    serde_json::to_writer(&mut out as &mut dyn io::Write, value).map_err(|_| too_long())?;
    let text = String::from_utf8(out.bytes).expect("JSON is text");
    let text =
        text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026").replace('\'', "\\u0027");
    Ok(Value::from_safe_string(text))
}

/// Escapes a text and writes a `<br>` between its lines.
fn nl2br(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    require(value)?;
    let context = Context::of(state)?;
    let text = value.as_str().ok_or_else(|| invalid("`nl2br` takes a text"))?;
    // Plain text keeps its line breaks.
    if !matches!(state.auto_escape(), AutoEscape::Html) {
        return Ok(value.clone());
    }
    context.charge_text(text.len())?;
    let mut out = BoundedText::default();
    for (at, line) in text.lines().enumerate() {
        let between = if at == 0 { "" } else { "<br>\n" };
        let done = out
            .write_str(between)
            .and_then(|()| if value.is_safe() { out.write_str(line) } else { write_escaped(&mut out, line) });
        done.map_err(|_| too_long())?;
    }
    Ok(Value::from_safe_string(out.finish(&context)?))
}
