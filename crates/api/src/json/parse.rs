//! JSON parser that bounds the memory of arrays and objects. Objects in an array that is a field of the request are
//! only checked, and parsed when they are needed. serde_json only provides the texts of errors: its own parser copies
//! texts with escapes twice and cannot limit the memory of arrays and objects.

use std::borrow::Cow;

use memchr::memchr2;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::number::Number;
use super::{Json, Object, UnparsedObject};

const DEPTH_MAX: usize = 128;
/// Arrays and objects may take this many bytes of memory, plus the length of the text.
const CONTAINER_BYTES_BASE: usize = 512 << 10;
/// Longest number that is accepted, in bytes.
const NUMBER_BYTES_MAX: usize = 300;
/// Nesting depth of an array that is a field of the request.
const REQUEST_ARRAY_DEPTH: usize = 2;
/// Objects with at most this many entries are searched for duplicate names by comparing all pairs, which takes no
/// memory.
const PAIRWISE_ENTRIES_MAX: usize = 16;

enum Fault {
    Syntax,
    Depth,
    TooManyValues,
    NumberRange,
    Surrogate,
}

/// Parses the whole text, or returns the error message.
pub(super) fn parse(bytes: &[u8]) -> Result<Json<'_>, String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| format!("invalid unicode code point at {}", position(bytes, error.valid_up_to())))?;
    let container_bytes_left = CONTAINER_BYTES_BASE + bytes.len();
    let mut parser = Parser { text, at: 0, depth: 0, container_bytes_left, only_checks: false };
    parser.document().map_err(|fault| {
        let message = match fault {
            Fault::Syntax => match serde_json::from_slice::<Skipped>(bytes) {
                Err(error) => return error.to_string(),
                Ok(_) => "syntax error",
            },
            Fault::Depth => "recursion limit exceeded",
            Fault::TooManyValues => "too many values for its size",
            Fault::NumberRange => "number out of range",
            Fault::Surrogate => "lone surrogate in hex escape",
        };
        format!("{message} at {}", position(bytes, parser.at))
    })
}

/// Parses an object whose text was checked before.
pub(super) fn parse_unparsed(text: &str) -> Object<'_> {
    // `Parser::unparsed_object` checked the limit for arrays and objects, so no limit applies to this parse.
    let mut parser = Parser {
        text,
        at: 0,
        depth: REQUEST_ARRAY_DEPTH,
        container_bytes_left: usize::MAX,
        only_checks: false,
    };
    match parser.document() {
        Ok(Json::Object(object)) => object,
        _ => unreachable!("only text that was checked becomes an `UnparsedObject`"),
    }
}

fn position(bytes: &[u8], at: usize) -> String {
    let before = &bytes[..at.min(bytes.len())];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |end| end + 1) + 1;
    format!("line {line} column {column}")
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Bytes that further arrays and objects may take.
    container_bytes_left: usize,
    /// Whether values are dropped after the check, so that texts with escapes need not be copied.
    only_checks: bool,
}

impl<'a> Parser<'a> {
    fn document(&mut self) -> Result<Json<'a>, Fault> {
        let value = self.value()?;
        if self.next_token().is_some() { Err(Fault::Syntax) } else { Ok(value) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space and returns the next byte, without consuming that byte.
    fn next_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    fn value(&mut self) -> Result<Json<'a>, Fault> {
        match self.next_token().ok_or(Fault::Syntax)? {
            b'"' => self.string().map(Json::Text),
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::array),
            b't' => self.literal("true", Json::Bool(true)),
            b'f' => self.literal("false", Json::Bool(false)),
            b'n' => self.literal("null", Json::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(Fault::Syntax),
        }
    }

    fn literal(&mut self, literal: &str, value: Json<'a>) -> Result<Json<'a>, Fault> {
        if !self.text.as_bytes()[self.at..].starts_with(literal.as_bytes()) {
            return Err(Fault::Syntax);
        }
        self.at += literal.len();
        Ok(value)
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Json<'a>, Fault>) -> Result<Json<'a>, Fault> {
        if self.depth == DEPTH_MAX {
            return Err(Fault::Depth);
        }
        self.at += 1;
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Json<'a>, Fault> {
        let mut values = Vec::new();
        if self.next_token() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(values));
        }
        loop {
            let stays_unparsed = self.depth == REQUEST_ARRAY_DEPTH && self.next_token() == Some(b'{');
            let value = if stays_unparsed { self.unparsed_object()? } else { self.value()? };
            self.push(&mut values, value)?;
            if self.take_comma_or_end(b']')? {
                self.shrink(&mut values);
                return Ok(Json::Array(values));
            }
        }
    }

    /// Checks an object, and keeps only its text. Arrays and objects in it count against the limit only during the
    /// check.
    fn unparsed_object(&mut self) -> Result<Json<'a>, Fault> {
        let (start, container_bytes_left) = (self.at, self.container_bytes_left);
        self.only_checks = true;
        self.value()?;
        self.only_checks = false;
        self.container_bytes_left = container_bytes_left;
        Ok(Json::UnparsedObject(UnparsedObject(&self.text[start..self.at])))
    }

    fn object(&mut self) -> Result<Json<'a>, Fault> {
        let mut entries = Vec::new();
        if self.next_token() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(entries));
        }
        loop {
            if self.next_token() != Some(b'"') {
                return Err(Fault::Syntax);
            }
            let name = self.string()?;
            if self.next_token() != Some(b':') {
                return Err(Fault::Syntax);
            }
            self.at += 1;
            let value = self.value()?;
            self.push(&mut entries, (name, value))?;
            if self.take_comma_or_end(b'}')? {
                keep_last_of_duplicates(&mut entries);
                self.shrink(&mut entries);
                return Ok(Json::Object(entries));
            }
        }
    }

    /// Consumes a comma or `end`; returns whether it was `end`.
    fn take_comma_or_end(&mut self, end: u8) -> Result<bool, Fault> {
        let token = self.next_token();
        if token != Some(b',') && token != Some(end) {
            return Err(Fault::Syntax);
        }
        self.at += 1;
        Ok(token == Some(end))
    }

    fn push<T>(&mut self, list: &mut Vec<T>, value: T) -> Result<(), Fault> {
        if list.len() == list.capacity() {
            let more = list.capacity().max(4);
            let left = self.container_bytes_left.checked_sub(more * size_of::<T>());
            self.container_bytes_left = left.ok_or(Fault::TooManyValues)?;
            list.reserve_exact(more);
        }
        list.push(value);
        Ok(())
    }

    /// Frees the spare capacity of a complete array or object.
    fn shrink<T>(&mut self, list: &mut Vec<T>) {
        let before = list.capacity();
        list.shrink_to_fit();
        self.container_bytes_left += (before - list.capacity()) * size_of::<T>();
    }

    fn number(&mut self) -> Result<Json<'a>, Fault> {
        let start = self.at;
        self.take_if(|b| b == b'-');
        // No digits may follow a leading zero.
        if self.take_if(|b| b == b'0') == 0 {
            self.take_digits()?;
        }
        let mut is_float = false;
        if self.take_if(|b| b == b'.') == 1 {
            is_float = true;
            self.take_digits()?;
        }
        if self.take_if(|b| matches!(b, b'e' | b'E')) == 1 {
            is_float = true;
            self.take_if(|b| matches!(b, b'+' | b'-'));
            self.take_digits()?;
        }
        let number = Number::new(&self.text[start..self.at]);
        let is_short_enough = number.as_str().len() <= NUMBER_BYTES_MAX;
        if !is_short_enough || (is_float && !number.as_f64().is_finite()) {
            return Err(Fault::NumberRange);
        }
        Ok(Json::Number(number))
    }

    /// Consumes the next byte if it is wanted; returns the number of consumed bytes.
    fn take_if(&mut self, is_wanted: impl Fn(u8) -> bool) -> usize {
        let taken = usize::from(self.peek().is_some_and(is_wanted));
        self.at += taken;
        taken
    }

    fn take_digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.take_if(|b| b.is_ascii_digit()) == 1 {}
        if self.at == start { Err(Fault::Syntax) } else { Ok(()) }
    }

    /// Parses the text whose opening quote is the next byte. The result is borrowed if the text has no escapes.
    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.at += 1;
        let start = self.at;
        let mut has_escapes = false;
        loop {
            let found = memchr2(b'"', b'\\', &self.text.as_bytes()[self.at..]).ok_or(Fault::Syntax)?;
            self.at += found;
            if self.peek() == Some(b'"') {
                break;
            }
            has_escapes = true;
            // Skip the escaped character, whatever it is; a text that ends here has no closing quote.
            self.at = (self.at + 2).min(self.text.len());
        }
        let raw = &self.text.as_bytes()[start..self.at];
        // RFC 8259 section 7: control characters must be escaped.
        if raw.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < 0x20 {
            return Err(Fault::Syntax);
        }
        let end = self.at;
        self.at += 1;
        let raw = &self.text[start..end];
        if !has_escapes {
            return Ok(Cow::Borrowed(raw));
        }
        if self.only_checks {
            unescape(raw, |_| ())?;
            return Ok(Cow::Borrowed(raw));
        }
        // The unescaped text is never longer than `raw`.
        let mut text = String::with_capacity(raw.len());
        unescape(raw, |piece| text.push_str(piece))?;
        Ok(Cow::Owned(text))
    }
}

/// Passes the unescaped text of `raw` to `take`, in pieces.
fn unescape(raw: &str, mut take: impl FnMut(&str)) -> Result<(), Fault> {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        take(&rest[..at]);
        let escape = *rest.as_bytes().get(at + 1).ok_or(Fault::Syntax)?;
        let mut taken = at + 2;
        let c = match escape {
            b'"' | b'\\' | b'/' => char::from(escape),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (c, bytes) = unicode_escape(&rest.as_bytes()[taken..])?;
                taken += bytes;
                c
            }
            _ => return Err(Fault::Syntax),
        };
        take(c.encode_utf8(&mut [0; 4]));
        rest = &rest[taken..];
    }
    take(rest);
    Ok(())
}

/// Character of the escape that has the digits `XXXX` or `XXXX\uXXXX` after its `\u`, and the length of these in
/// bytes.
fn unicode_escape(rest: &[u8]) -> Result<(char, usize), Fault> {
    let unit = |at: usize| {
        let digits = rest.get(at..at + 4).ok_or(Fault::Syntax)?;
        digits.iter().try_fold(0, |value, digit| {
            char::from(*digit).to_digit(16).map(|digit| value * 16 + digit).ok_or(Fault::Syntax)
        })
    };
    let first = unit(0)?;
    if let Some(c) = char::from_u32(first) {
        return Ok((c, 4));
    }
    if first >= 0xDC00 || rest.get(4..6) != Some(b"\\u") {
        return Err(Fault::Surrogate);
    }
    let second = unit(6)?;
    if !(0xDC00..0xE000).contains(&second) {
        return Err(Fault::Surrogate);
    }
    let c = char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00));
    c.map(|c| (c, 10)).ok_or(Fault::Surrogate)
}

/// A value that serde_json parses and drops; only serde_json's error texts are needed.
struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Skipped {
    type Value = Self;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self, A::Error> {
        while array.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

/// Keeps the last of several entries with the same name.
fn keep_last_of_duplicates(entries: &mut Object<'_>) {
    if entries.len() <= PAIRWISE_ENTRIES_MAX {
        let mut at = 0;
        while at < entries.len() {
            let (name, later) = (&entries[at].0, &entries[at + 1..]);
            if later.iter().any(|(other, _)| other == name) {
                entries.remove(at);
            } else {
                at += 1;
            }
        }
        return;
    }
    let mut order: Vec<u32> = (0..entries.len() as u32).collect();
    order.sort_unstable_by(|one, other| {
        entries[*one as usize].0.cmp(&entries[*other as usize].0).then(one.cmp(other))
    });
    let is_same = |pair: &[u32]| entries[pair[0] as usize].0 == entries[pair[1] as usize].0;
    let mut replaced: Vec<u32> = order.windows(2).filter(|pair| is_same(pair)).map(|pair| pair[0]).collect();
    replaced.sort_unstable();
    let (mut replaced, mut at) = (replaced.into_iter().peekable(), 0);
    entries.retain(|_| {
        let is_replaced = replaced.next_if_eq(&at).is_some();
        at += 1;
        !is_replaced
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value_of(json: &Json<'_>) -> serde_json::Value {
        match json {
            Json::Null => serde_json::Value::Null,
            Json::Bool(value) => (*value).into(),
            Json::Number(number) => serde_json::from_str(number.as_str()).unwrap(),
            Json::Text(text) => text.as_ref().into(),
            Json::Array(values) => values.iter().map(value_of).collect(),
            Json::Object(entries) => {
                entries.iter().map(|(name, value)| (name.to_string(), value_of(value))).collect()
            }
            Json::UnparsedObject(object) => value_of(&Json::Object(object.parse())),
        }
    }

    /// Random sequences of JSON tokens, many of them nearly valid.
    fn nearly_json() -> impl Strategy<Value = String> {
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\"a\"",
            "\"b\"",
            "\\",
            "\\n",
            "\\u00e9",
            "\\ud83d\\ude00",
            "\\ud83d",
            "\\x",
            "true",
            "false",
            "null",
            "nul",
            "0",
            "-",
            "1.5",
            "1e5",
            "01",
            "1e999",
            " ",
            "\n",
            "\u{1}",
            "ü",
            "{\"a\":",
            "{\"a\":[{",
            "[1,",
            "\"x\\\"y\"",
        ];
        proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..12)
            .prop_map(|all| all.concat())
    }

    proptest! {
        #[test]
        fn the_parser_agrees_with_serde_json(text in nearly_json()) {
            let ours = parse(text.as_bytes()).ok().map(|json| value_of(&json));
            let theirs: Option<serde_json::Value> = serde_json::from_str(&text).ok();
            prop_assert_eq!(ours, theirs, "{}", text);
        }
    }

    #[test]
    fn every_escape_is_understood() {
        let text = r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00x""#;
        let expected: String = serde_json::from_str(text).unwrap();
        let Ok(Json::Text(found)) = parse(text.as_bytes()) else { panic!("it is a text") };
        assert_eq!(found, expected);
        for bad in
            [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dx\ude00""#, r#""\u12""#, r#""\x""#, "\"\n\"", "\"\\"]
        {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
