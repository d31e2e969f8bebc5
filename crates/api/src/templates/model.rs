//! Models: any JSON object, within a size limit.

use postroad_app::templates::{MODEL_BYTES_MAX, Model};
use serde_json::Value;

use crate::fields::{Fields, Findings};
use crate::json::Json;

/// Takes a model out of a request; `[]` is how PHP writes an empty one.
pub(crate) fn read_model(
    fields: &mut Fields<'_>,
    name: &'static str,
    findings: &mut Findings,
) -> Option<Model> {
    let pointer = fields.pointer(name);
    let json = fields.take(name, findings)?;
    let mut left = MODEL_BYTES_MAX;
    match json {
        Json::Array(values) if values.is_empty() => Some(Model::new()),
        Json::Object(_) => {
            if let Some(Value::Object(model)) = to_value(json, &mut left) {
                return Some(model);
            }
            let field = pointer.trim_start_matches('/');
            findings.problem(&pointer, format!("`{field}` is larger than {MODEL_BYTES_MAX} bytes"));
            None
        }
        other => {
            findings.wrong_type(&pointer, "Object", other.type_name());
            None
        }
    }
}

/// The value, if it takes at most `left` bytes of JSON.
fn to_value(json: Json<'_>, left: &mut usize) -> Option<Value> {
    let mut pay = |bytes: usize| {
        *left = left.checked_sub(bytes)?;
        Some(())
    };
    Some(match json {
        Json::Null => {
            pay(4)?;
            Value::Null
        }
        Json::Bool(flag) => {
            pay(4)?;
            Value::Bool(flag)
        }
        Json::Number(number) => {
            pay(number.as_str().len())?;
            let whole = number.as_i64().map(Value::from).or_else(|| number.as_u64().map(Value::from));
            whole.unwrap_or_else(|| Value::from(number.as_f64()))
        }
        Json::Text(text) => {
            pay(text.len() + 2)?;
            Value::String(text.into_owned())
        }
        Json::Array(values) => {
            pay(2 + values.len())?;
            Value::Array(values.into_iter().map(|value| to_value(value, left)).collect::<Option<_>>()?)
        }
        Json::Object(entries) => {
            pay(2 + entries.iter().map(|(name, _)| name.len() + 4).sum::<usize>())?;
            let entries =
                entries.into_iter().map(|(name, value)| Some((name.into_owned(), to_value(value, left)?)));
            Value::Object(entries.collect::<Option<_>>()?)
        }
        Json::Item(item) => to_value(Json::Object(item.read()), left)?,
    })
}
