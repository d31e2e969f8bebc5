//! JSON as it was sent, without copying its texts: bodies and attachments are most of a request.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt;

use postroad_app::FieldProblem;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_json::value::RawValue;

/// Values in one request: small ones take more memory here than on the wire, so that bytes alone are no limit.
const VALUES_MAX: usize = 200_000;

pub(crate) type Object<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// In the order given; of a name that stands twice only the last is kept.
    Object(Object<'a>),
}

impl Json<'_> {
    /// The type's name in messages about wrong types.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "Null",
            Self::Bool(_) => "Boolean",
            Self::Number(number) if number.is_f64() => "Float",
            Self::Number(_) => "Integer",
            Self::Text(_) => "String",
            Self::Array(_) => "Array",
            Self::Object(_) => "Object",
        }
    }
}

/// Reads a request; it has to be a JSON object. No text at all is the empty object.
pub(crate) fn parse_object(text: &[u8]) -> Result<Object<'_>, FieldProblem> {
    let text = without_mark(text);
    if text.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    match parse(text) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Err(FieldProblem::new("", "The request body must be a JSON object")),
        Err(error) => Err(FieldProblem::new("", format!("The request body is not valid JSON: {error}"))),
    }
}

fn parse(text: &[u8]) -> serde_json::Result<Json<'_>> {
    let left = Cell::new(VALUES_MAX);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let json = Value { left: &left }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(json)
}

/// A field inside a request that `parse_object` has read, exactly as it was sent: numbers lose digits otherwise.
pub(crate) fn raw_field(text: &[u8], path: &[&str]) -> Option<String> {
    let mut text = without_mark(text);
    for name in path {
        let fields: HashMap<String, &RawValue> = serde_json::from_slice(text).ok()?;
        text = fields.get(*name)?.get().as_bytes();
    }
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Some clients put a byte order mark before their UTF-8.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Reads one value; `left` is how many more the request may have.
#[derive(Clone, Copy)]
struct Value<'c> {
    left: &'c Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(D::Error::custom(format_args!("more than {VALUES_MAX} values")));
        };
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json<'de>, E> {
        Number::from_f64(value).map(Json::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Json<'de>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = array.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Json::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key_seed(self)? {
            let Json::Text(name) = name else { return Err(A::Error::custom("a name must be a string")) };
            entries.push((name, map.next_value_seed(self)?));
        }
        Ok(Json::Object(keep_last(entries)))
    }
}

fn keep_last(mut entries: Object<'_>) -> Object<'_> {
    let mut seen = HashSet::with_capacity(entries.len());
    let mut kept: Vec<bool> = entries.iter().rev().map(|(name, _)| seen.insert(name.as_ref())).collect();
    if kept.iter().any(|kept| !kept) {
        // `kept` is in reverse order: its last element belongs to the first entry.
        entries.retain(|_| kept.pop().unwrap_or(true));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_escapes_are_borrowed_names_too() {
        let text = br#"{"a": "plain", "b\n": "esc\"aped"}"#;
        let object = parse_object(text).unwrap();
        assert!(matches!(&object[0], (Cow::Borrowed("a"), Json::Text(Cow::Borrowed("plain")))));
        assert!(matches!(&object[1], (Cow::Owned(name), Json::Text(Cow::Owned(value)))
            if name == "b\n" && value == "esc\"aped"));
    }

    #[test]
    fn of_a_name_that_stands_twice_the_last_is_kept() {
        let object = parse_object(br#"{"a": 1, "b": 2, "a": 3, "c": {"x": 1, "x": 2}}"#).unwrap();
        let one = |n: u64| Json::Number(n.into());
        let expected: Object<'_> = vec![
            ("b".into(), one(2)),
            ("a".into(), one(3)),
            ("c".into(), Json::Object(vec![("x".into(), one(2))])),
        ];
        assert_eq!(object, expected);
    }

    #[test]
    fn nothing_is_the_empty_object_and_a_byte_order_mark_is_no_content() {
        assert_eq!(parse_object(b""), Ok(vec![]));
        assert_eq!(parse_object(b" \r\n"), Ok(vec![]));
        assert_eq!(parse_object(b"\xef\xbb\xbf{}"), Ok(vec![]));
    }

    #[test]
    fn what_is_no_object_is_told_with_its_place() {
        let message = |text: &[u8]| parse_object(text).unwrap_err().message;
        assert_eq!(message(b"[]"), "The request body must be a JSON object");
        assert_eq!(message(b"null"), "The request body must be a JSON object");
        assert_eq!(
            message(b"{\"a\":\n }"),
            "The request body is not valid JSON: expected value at line 2 column 2"
        );
        assert!(message(b"{} {}").contains("trailing characters"), "{}", message(b"{} {}"));
        assert!(message(b"{\"a\": \"\xff\"}").contains("unicode"), "{}", message(b"{\"a\": \"\xff\"}"));
        assert!(message(b"{\"a\": 1e999}").contains("out of range"));
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(parse_object(deep.as_bytes()).unwrap_err().message.contains("recursion limit"));
        let wide = format!("{{\"a\":[{}0]}}", "0,".repeat(VALUES_MAX));
        assert!(parse_object(wide.as_bytes()).unwrap_err().message.contains("more than 200000 values"));
    }
}
