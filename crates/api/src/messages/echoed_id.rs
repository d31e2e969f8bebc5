//! Parameter `id`: an integer that is echoed as sent when no such message exists.

use postroad_app::LookupError;
use postroad_model::MessageId;
use serde_json::value::RawValue;

use crate::failure::{Failure, Reason};
use crate::fields::{Fields, Findings};
use crate::json::Json;

/// Id as the caller wrote it, and as a message id if it can be one.
#[derive(Debug)]
pub(crate) struct EchoedId {
    text: Box<RawValue>,
    id: Option<MessageId>,
}

impl EchoedId {
    /// Takes `id` out of a request; records a problem if it is missing or not an integer.
    pub(crate) fn read(fields: &mut Fields<'_>, findings: &mut Findings) -> Self {
        let nothing = Self { text: RawValue::NULL.to_owned(), id: None };
        let number = match fields.take("id", findings) {
            Some(Json::Number(number)) => number,
            Some(other) => {
                findings.wrong_type("/id", "Integer", other.type_name());
                return nothing;
            }
            None => {
                findings.missing("id");
                return nothing;
            }
        };
        if number.is_float() {
            findings.wrong_type("/id", "Integer", "Float");
            return nothing;
        }
        let id = number.as_i64().filter(|id| *id > 0).map(MessageId);
        Self { text: RawValue::from_string(number.as_str().to_owned()).unwrap_or(nothing.text), id }
    }

    /// Id to look up; `NotFound` if no message can have it.
    pub(crate) fn message_id(&self) -> Result<MessageId, LookupError> {
        self.id.ok_or(LookupError::NotFound)
    }

    /// Failure of a look-up by this id.
    pub(crate) fn failure(self, error: LookupError) -> Failure {
        match error {
            LookupError::NotFound => Reason::MessageNotFound { id: self.text }.into(),
            LookupError::Store(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(request: &str) -> Result<(String, Option<i64>), String> {
        let object = crate::json::parse_object(request.as_bytes()).unwrap();
        let mut fields = Fields::of_request(object);
        let mut findings = Findings::default();
        let echoed_id = EchoedId::read(&mut fields, &mut findings);
        match findings.problems.pop() {
            None => Ok((echoed_id.text.get().to_owned(), echoed_id.id.map(|id| id.0))),
            Some(problem) => Err(problem.message),
        }
    }

    #[test]
    fn integers_are_taken_and_kept_as_sent() {
        let huge = "123456789012345678901234567890";
        for (sent, id) in [
            ("12", Some(12)),
            ("0", None),
            ("-1", None),
            ("-0", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            (huge, None),
        ] {
            assert_eq!(read(&format!(r#"{{"id": 1.5, "id": {sent}}}"#)), Ok((sent.to_owned(), id)));
        }
    }

    #[test]
    fn other_values_are_reported_by_their_type() {
        for (sent, found) in [
            ("1.5", "Float"),
            ("1.0", "Float"),
            ("1e3", "Float"),
            ("\"1\"", "String"),
            ("{}", "Object"),
            ("true", "Boolean"),
        ] {
            let message = read(&format!(r#"{{"id": {sent}}}"#)).unwrap_err();
            assert_eq!(message, format!("`id` should be a `Integer` but is a `{found}`"));
        }
        for absent in ["{}", r#"{"id": null}"#] {
            assert_eq!(read(absent).unwrap_err(), "`id` parameter is required but is missing");
        }
    }
}
