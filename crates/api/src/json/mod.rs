//! JSON values that borrow their texts from the request, because bodies and attachments are most of a request.
//!
//! Memory is bounded by the size of the request. Texts are borrowed, or copied once if they have escapes. Arrays and
//! objects may take as many bytes as the text plus 512 KiB; a request that needs more is refused while it is read.
//! Objects in an array that is a field of the request are parsed one by one when they are used, so skipped objects
//! take no memory.

mod number;
mod parse;

use std::borrow::Cow;

use postroad_app::FieldProblem;

pub(crate) use number::Number;

/// Entries of an object: names and values.
pub(crate) type Object<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number<'a>),
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// Entries in the order of the text; if a name occurs twice, the last entry is kept.
    Object(Object<'a>),
    /// Object in an array that is a field of the request.
    UnparsedObject(UnparsedObject<'a>),
}

/// Text of an object that was checked but is not parsed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnparsedObject<'a>(&'a str);

impl<'a> UnparsedObject<'a> {
    pub(crate) fn parse(self) -> Object<'a> {
        parse::parse_unparsed(self.0)
    }
}

impl Json<'_> {
    /// Name of the type in error messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "Null",
            Self::Bool(_) => "Boolean",
            Self::Number(number) if number.is_float() => "Float",
            Self::Number(_) => "Integer",
            Self::Text(_) => "String",
            Self::Array(_) => "Array",
            Self::Object(_) | Self::UnparsedObject(_) => "Object",
        }
    }
}

/// Parses a request, which must be a JSON object. An empty text is the empty object.
pub(crate) fn parse_object(text: &[u8]) -> Result<Object<'_>, FieldProblem> {
    // Some clients send a byte order mark before UTF-8.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    match parse::parse(text) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Err(FieldProblem::new("", "The request body must be a JSON object")),
        Err(message) => Err(FieldProblem::new("", format!("The request body is not valid JSON: {message}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_names_without_escapes_are_borrowed() {
        let text = br#"{"a": "plain", "b\n": "esc\"aped"}"#;
        let object = parse_object(text).unwrap();
        assert!(matches!(&object[0], (Cow::Borrowed("a"), Json::Text(Cow::Borrowed("plain")))));
        assert!(matches!(&object[1], (Cow::Owned(name), Json::Text(Cow::Owned(value)))
            if name == "b\n" && value == "esc\"aped"));
    }

    #[test]
    fn last_of_duplicate_names_wins() {
        let object = parse_object(br#"{"a": 1, "b": 2, "a": 3, "c": {"x": 1, "x": 2}}"#).unwrap();
        let number = |digits: &'static str| Json::Number(Number::new(digits));
        let expected: Object<'_> = vec![
            ("b".into(), number("2")),
            ("a".into(), number("3")),
            ("c".into(), Json::Object(vec![("x".into(), number("2"))])),
        ];
        assert_eq!(object, expected);
        let many: Vec<String> = (0..1_000).map(|n| format!("\"{}\":{n}", n % 700)).collect();
        let many = format!("{{{}}}", many.join(","));
        let object = parse_object(many.as_bytes()).unwrap();
        let pair = |at: usize| (object[at].0.as_ref(), object[at].1.clone());
        assert_eq!(object.len(), 700);
        assert_eq!((pair(0), pair(699)), (("300", number("300")), ("299", number("999"))));
    }

    #[test]
    fn an_empty_request_is_an_empty_object_and_a_byte_order_mark_is_skipped() {
        assert_eq!(parse_object(b""), Ok(vec![]));
        assert_eq!(parse_object(b" \r\n"), Ok(vec![]));
        assert_eq!(parse_object(b"\xef\xbb\xbf{}"), Ok(vec![]));
    }

    #[test]
    fn text_that_is_no_object_is_reported_with_its_position() {
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
    fn depth_and_memory_are_bounded() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(parse_object(deep.as_bytes()).unwrap_err().message.contains("recursion limit"));
        let wide = format!("{{\"a\":[{}0]}}", "0,".repeat(100_000));
        assert!(parse_object(wide.as_bytes()).unwrap_err().message.contains("too many values"));
        // Many small objects are accepted: they are only checked, and their entries are not kept.
        let keys = "abcdefghijkl"
            .split("")
            .map(|key| format!("\"a_key_{key}\": \"its value\","))
            .collect::<Vec<_>>()
            .concat();
        let many = format!("{{\"a\":[{}0]}}", format!("{{{keys}\"b\":1}},").repeat(1_000));
        assert!(parse_object(many.as_bytes()).is_ok(), "{} bytes", many.len());
        // The number of entries in an object does not matter.
        let keys: Vec<String> = (0..30).map(|key| format!("\"k{key}\":1")).collect();
        let many = format!("{{\"a\":[{}0]}}", format!("{{{}}},", keys.join(",")).repeat(1_000));
        let object = parse_object(many.as_bytes()).unwrap();
        let Json::Array(items) = &object[0].1 else { panic!("it is one list") };
        let Some(Json::UnparsedObject(object)) = items.get(999) else {
            panic!("the objects of the list are not parsed yet")
        };
        assert_eq!(object.parse().len(), 30);
        let wide = format!("{{\"a\":[{{\"b\":[{}0]}}]}}", "0,".repeat(100_000));
        assert!(parse_object(wide.as_bytes()).unwrap_err().message.contains("too many values"));
        let digits = format!("{{\"a\":{}}}", "1".repeat(2_000));
        assert!(parse_object(digits.as_bytes()).unwrap_err().message.contains("out of range"));
    }
}
