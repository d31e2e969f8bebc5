//! Filters that replace operators when a template is translated: `~ + - * / // % ** == != < <= > >= in`, `not in`.
//! Operators that can do much work are charged for that work. Of two more filters, one fails if a variable is missing,
//! the other if the list of a loop is `null`.

use std::cmp::Ordering;
use std::fmt::Write as _;

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::kind_of;
use crate::templates::invalid::invalid;
use crate::templates::language::{ENTRIES, OPERATOR, REQUIRED};
use crate::templates::missing_variables::MissingLookup;
use crate::templates::work::{BoundedText, Context, TEXT_BYTES_MAX, is_absent, value_text};

pub(super) fn register(environment: &mut Environment<'static>) {
    environment.add_filter(OPERATOR, operate);
    environment.add_filter(ENTRIES, entries);
    environment.add_filter(REQUIRED, required);
}

/// Fails with the number of the look-up if its value is missing, or is `null` and `takes_null` is not set.
fn required(value: &Value, lookup: usize, takes_null: bool) -> Result<Value, Error> {
    if value.is_undefined() || (value.is_none() && !takes_null) {
        return Err(Error::from(ErrorKind::UndefinedError).with_source(MissingLookup(lookup)));
    }
    Ok(value.clone())
}

/// Refuses `null` as the list of a loop: minijinja would treat it as an empty list.
fn entries(list: &Value) -> Result<Value, Error> {
    if list.is_none() { Err(ErrorKind::UndefinedError.into()) } else { Ok(list.clone()) }
}

fn operate(state: &State<'_, '_>, left: &Value, sign: &str, right: &Value) -> Result<Value, Error> {
    let takes_null = matches!(sign, "==" | "!=" | "in" | "not in");
    if [left, right].into_iter().any(|value| if takes_null { value.is_undefined() } else { is_absent(value) })
    {
        return Err(ErrorKind::UndefinedError.into());
    }
    let context = Context::of(state)?;
    match sign {
        "~" => concat(&context, left, right),
        "+" if left.as_str().is_some() && right.as_str().is_some() => concat(&context, left, right),
        "+" | "-" | "*" | "/" | "//" | "%" | "**" => calculate(left, sign, right),
        "in" => Ok(Value::from(contains(&context, right, left)?)),
        "not in" => Ok(Value::from(!contains(&context, right, left)?)),
        _ => {
            context.charge_value(left)?;
            context.charge_value(right)?;
            Ok(Value::from(compare(left, sign, right)?))
        }
    }
}

fn concat(context: &Context, left: &Value, right: &Value) -> Result<Value, Error> {
    let mut text = BoundedText::default();
    for value in [left, right] {
        text.write_str(&value_text(value)?).map_err(|_| too_long())?;
    }
    Ok(Value::from(text.finish(context)?))
}

pub(super) fn too_long() -> Error {
    invalid(format!("a text becomes longer than {TEXT_BYTES_MAX} bytes"))
}

pub(super) fn calculate(left: &Value, sign: &str, right: &Value) -> Result<Value, Error> {
    let unfit =
        || invalid(format!("`{sign}` takes numbers, not a {} and a {}", kind_of(left), kind_of(right)));
    if left.kind() != ValueKind::Number || right.kind() != ValueKind::Number {
        return Err(unfit());
    }
    let impossible = || invalid(format!("{left} {sign} {right} cannot be calculated"));
    if let (true, Some(a), Some(b)) = (sign != "/", left.as_i64(), right.as_i64()) {
        let whole = match sign {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            "//" => a.checked_div_euclid(b).filter(|_| b > 0),
            "%" => a.checked_rem_euclid(b).filter(|_| b > 0),
            _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        };
        return whole.map(Value::from).ok_or_else(impossible);
    }
    let a = f64::try_from(left.clone()).map_err(|_| unfit())?;
    let b = f64::try_from(right.clone()).map_err(|_| unfit())?;
    let result = match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "//" => (a / b).floor(),
        "%" => a.rem_euclid(b),
        _ => a.powf(b),
    };
    if result.is_finite() { Ok(Value::from(result)) } else { Err(impossible()) }
}

fn compare(left: &Value, sign: &str, right: &Value) -> Result<bool, Error> {
    match sign {
        "==" => return Ok(left == right),
        "!=" => return Ok(left != right),
        _ => {}
    }
    if left.kind() != right.kind() {
        let message =
            format!("`{sign}` compares values of one kind, not a {} and a {}", kind_of(left), kind_of(right));
        return Err(invalid(message));
    }
    let order = left.cmp(right);
    Ok(match sign {
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}

fn contains(context: &Context, whole: &Value, part: &Value) -> Result<bool, Error> {
    context.charge_value(whole)?;
    context.charge_value(part)?;
    match whole.kind() {
        ValueKind::String => {
            let part = part.as_str().ok_or_else(|| invalid("`in` looks for a text in a text"))?;
            Ok(whole.as_str().is_some_and(|whole| whole.contains(part)))
        }
        ValueKind::Map => Ok(!whole.get_item(part)?.is_undefined()),
        ValueKind::None => Err(ErrorKind::UndefinedError.into()),
        ValueKind::Seq | ValueKind::Iterable => Ok(whole.try_iter()?.any(|entry| entry == *part)),
        _ => Err(invalid(format!("`in` looks into a text, a list or an object, not a {}", kind_of(whole)))),
    }
}
