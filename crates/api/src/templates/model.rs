//! Model of a template, with the values of its variables: any JSON object, within a size limit.

use postroad_app::templates::{MODEL_BYTES_MAX, Model};
use serde_json::Value;

use crate::fields::{Fields, Findings, pointer_token};
use crate::json::{Json, Number};

/// Maximum number of characters of a number that an error shows.
const NUMBER_CHARS_SHOWN_MAX: usize = 40;

/// Takes a model out of a request; `[]` is how PHP writes an empty one.
pub(crate) fn read_model(
    fields: &mut Fields<'_>,
    name: &'static str,
    findings: &mut Findings,
) -> Option<Model> {
    let pointer = fields.pointer(name);
    let json = fields.take(name, findings)?;
    let mut bytes_left = MODEL_BYTES_MAX;
    match json {
        Json::Array(values) if values.is_empty() => Some(Model::new()),
        Json::Object(_) => match to_value(json, &mut bytes_left) {
            Ok(Value::Object(model)) => Some(model),
            Err(ModelError::Number { pointer_in_model, text }) => {
                let message = format!("`{text}` cannot be kept exactly as a number; send it as a text");
                findings.problem(format!("{pointer}{pointer_in_model}"), message);
                None
            }
            Ok(_) | Err(ModelError::TooLarge) => {
                let field = pointer.trim_start_matches('/');
                findings.problem(&pointer, format!("`{field}` is larger than {MODEL_BYTES_MAX} bytes"));
                None
            }
        },
        other => {
            findings.wrong_type(&pointer, "Object", other.type_name());
            None
        }
    }
}

/// Why a value cannot be part of a model.
enum ModelError {
    TooLarge,
    /// A whole number of more than 64 bits, which would lose digits.
    Number {
        /// Pointer to the number, from the value that is being converted.
        pointer_in_model: String,
        text: String,
    },
}

impl ModelError {
    /// Puts `token`, the position in the surrounding value, in front of the pointer.
    fn within(self, token: &str) -> Self {
        match self {
            Self::Number { pointer_in_model, text } => Self::Number {
                pointer_in_model: format!("/{}{pointer_in_model}", pointer_token(token)),
                text,
            },
            Self::TooLarge => Self::TooLarge,
        }
    }
}

/// Converts a value that takes at most `bytes_left` bytes of JSON, and subtracts its bytes from `bytes_left`.
fn to_value(json: Json<'_>, bytes_left: &mut usize) -> Result<Value, ModelError> {
    let mut spend = |bytes: usize| {
        *bytes_left = bytes_left.checked_sub(bytes).ok_or(ModelError::TooLarge)?;
        Ok(())
    };
    Ok(match json {
        Json::Null => {
            spend(4)?;
            Value::Null
        }
        Json::Bool(flag) => {
            spend(4)?;
            Value::Bool(flag)
        }
        Json::Number(number) => {
            spend(number.as_str().len())?;
            to_number(number)?
        }
        Json::Text(text) => {
            spend(text.len() + 2)?;
            Value::String(text.into_owned())
        }
        Json::Array(values) => {
            spend(2 + values.len())?;
            let values = values.into_iter().enumerate().map(|(at, value)| {
                to_value(value, bytes_left).map_err(|error| error.within(&at.to_string()))
            });
            Value::Array(values.collect::<Result<_, _>>()?)
        }
        Json::Object(entries) => {
            spend(2 + entries.iter().map(|(name, _)| name.len() + 4).sum::<usize>())?;
            let entries = entries.into_iter().map(|(name, value)| {
                let value = to_value(value, bytes_left).map_err(|error| error.within(&name))?;
                Ok((name.into_owned(), value))
            });
            Value::Object(entries.collect::<Result<_, _>>()?)
        }
        Json::UnparsedObject(object) => to_value(Json::Object(object.parse()), bytes_left)?,
    })
}

fn to_number(number: Number<'_>) -> Result<Value, ModelError> {
    let whole = number.as_i64().map(Value::from).or_else(|| number.as_u64().map(Value::from));
    let float = || serde_json::Number::from_f64(number.as_f64()).filter(|_| number.is_float());
    whole.or_else(|| float().map(Value::Number)).ok_or_else(|| {
        let text = number.as_str();
        let shown = if text.len() > NUMBER_CHARS_SHOWN_MAX {
            format!("{}…", &text[..NUMBER_CHARS_SHOWN_MAX])
        } else {
            text.to_owned()
        };
        ModelError::Number { pointer_in_model: String::new(), text: shown }
    })
}
