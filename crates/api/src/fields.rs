//! Takes known fields out of a JSON object and checks their types. Collects every wrong type, not only the first;
//! unknown fields become warnings. From a list, at most one entry more than the list's limit is read.

use std::borrow::Cow;
use std::collections::BTreeSet;

use postroad_app::FieldProblem;
use postroad_model::Timestamp;

use crate::failure::{Failure, PROBLEMS_SHOWN_MAX};
use crate::json::{Json, Object};

/// Maximum number of unknown fields that are reported; a request can contain any number of them.
const WARNINGS_MAX: usize = 20;
/// Maximum number of characters of a client-chosen name that a message quotes.
const QUOTED_NAME_CHARS_MAX: usize = 100;
/// Maximum number of problems kept in full; further problems are only counted.
const PROBLEMS_MAX: usize = PROBLEMS_SHOWN_MAX;

/// Problems and warnings found in a request.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) problems: Vec<FieldProblem>,
    /// Number of problems beyond those kept.
    pub(crate) problems_left_out: usize,
    pub(crate) warnings: Vec<String>,
    /// Number of warnings beyond those kept.
    warnings_left_out: usize,
    /// Names of the fields that were read; a test compares them with the OpenAPI document. Empty outside tests.
    pub(crate) read_fields: BTreeSet<String>,
}

impl Findings {
    pub(crate) fn problem(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(FieldProblem::new(pointer, message));
        } else {
            self.problems_left_out += 1;
        }
    }

    pub(crate) fn missing(&mut self, name: &str) {
        self.problem(format!("/{name}"), format!("`{name}` parameter is required but is missing"));
    }

    pub(crate) fn wrong_type(&mut self, pointer: &str, expected: &str, found: &str) {
        let field = shortened(pointer.trim_start_matches('/'));
        self.problem(pointer, format!("`{field}` should be a `{expected}` but is a `{found}`"));
    }

    /// Warns of an unknown name; `kind` is the kind of thing that it names, such as `field`.
    pub(crate) fn warn(&mut self, kind: &str, name: &str) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(format!("Unknown {kind} `{}` was ignored", shortened(name)));
        } else {
            self.warnings_left_out += 1;
        }
    }

    /// Moves the warnings of `of_part`, the findings about a part of the request, to these findings.
    pub(crate) fn add_warnings(&mut self, of_part: &mut Self) {
        let moved_count = WARNINGS_MAX.saturating_sub(self.warnings.len()).min(of_part.warnings.len());
        self.warnings.extend(of_part.warnings.drain(..moved_count));
        self.warnings_left_out += of_part.warnings.len() + of_part.warnings_left_out;
    }

    /// Takes the warnings; if some are not listed, the last warning gives their number.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = std::mem::take(&mut self.warnings);
        let left_out = std::mem::take(&mut self.warnings_left_out);
        warnings.extend((left_out > 0).then(|| format!("{left_out} more unknown names were ignored")));
        warnings
    }

    /// Returns the warnings if the request is valid, else the failure that lists all problems.
    pub(crate) fn reject_problems(mut self) -> Result<Vec<String>, Failure> {
        let warnings = self.take_warnings();
        if self.problems.is_empty() {
            Ok(warnings)
        } else {
            let failure = Failure::validation(self.problems);
            Err(Failure { problems_left_out: self.problems_left_out, ..failure }.with_warnings(warnings))
        }
    }
}

/// Beginning of a client-chosen name, long enough to recognise it.
pub(crate) fn shortened(name: &str) -> &str {
    let end = name.char_indices().nth(QUOTED_NAME_CHARS_MAX).map_or(name.len(), |(at, _)| at);
    &name[..end]
}

/// Fields of one JSON object, with the pointer to that object in the request.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    pointer: String,
    entries: Object<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of a request.
    pub(crate) fn of_request(object: Object<'a>) -> Self {
        Self { pointer: String::new(), entries: object }
    }

    /// Fields of an object inside the request; records a problem if `json` is not an object.
    pub(crate) fn of_object(pointer: String, json: Json<'a>, findings: &mut Findings) -> Option<Self> {
        match json {
            Json::Object(entries) => Some(Self { pointer, entries }),
            Json::UnparsedObject(object) => Some(Self { pointer, entries: object.parse() }),
            other => {
                findings.wrong_type(&pointer, "Object", other.type_name());
                None
            }
        }
    }

    /// Adds the fields of `defaults` that the object itself lacks.
    pub(crate) fn add_defaults(&mut self, defaults: &Object<'a>) {
        for (name, value) in defaults {
            if self.is_absent(name) {
                self.entries.retain(|(known, _)| known != name);
                self.entries.push((name.clone(), value.clone()));
            }
        }
    }

    pub(crate) fn pointer(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, pointer_token(name))
    }

    /// Whether the field is present and not `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(known, json)| known == name && *json != Json::Null)
    }

    /// Whether the field is a set flag, in any form that `loose_flag` accepts.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.entries.iter().any(|(known, json)| known == name && read_flag(json) == Some(true))
    }

    pub(crate) fn is_absent(&self, name: &str) -> bool {
        !self.has(name)
    }

    /// Takes the field; `null` counts as absent.
    pub(crate) fn take(&mut self, name: &'static str, findings: &mut Findings) -> Option<Json<'a>> {
        if cfg!(test) {
            findings.read_fields.insert(self.pointer(name));
        }
        let at = self.entries.iter().position(|(known, _)| known == name)?;
        let (_, json) = self.entries.remove(at);
        (json != Json::Null).then_some(json)
    }

    pub(crate) fn text(&mut self, name: &'static str, findings: &mut Findings) -> Option<Cow<'a, str>> {
        let json = self.take(name, findings)?;
        expect_text(&self.pointer(name), json, findings)
    }

    /// Takes a time (RFC 3339).
    pub(crate) fn time(&mut self, name: &'static str, findings: &mut Findings) -> Option<Timestamp> {
        let text = self.text(name, findings)?;
        let moment = Timestamp::parse_rfc3339(&text);
        if moment.is_none() {
            let message = format!("`{name}` should be a time such as 2026-11-15T12:00:00Z (RFC 3339)");
            findings.problem(self.pointer(name), message);
        }
        moment
    }

    pub(crate) fn flag(&mut self, name: &'static str, findings: &mut Findings) -> Option<bool> {
        match self.take(name, findings)? {
            Json::Bool(value) => Some(value),
            other => {
                findings.wrong_type(&self.pointer(name), "Boolean", other.type_name());
                None
            }
        }
    }

    /// Takes a flag that may also be 0, 1, `"true"` or `"false"`, as PHP clients send it.
    pub(crate) fn loose_flag(&mut self, name: &'static str, findings: &mut Findings) -> Option<bool> {
        let json = self.take(name, findings)?;
        let flag = read_flag(&json);
        if flag.is_none() {
            findings.wrong_type(&self.pointer(name), "Boolean", json.type_name());
        }
        flag
    }

    /// Takes the entries of an array with their pointers, without `null`. Takes up to `max` plus one, so that the
    /// caller's length check sees an excess.
    pub(crate) fn array(
        &mut self,
        name: &'static str,
        max: usize,
        findings: &mut Findings,
    ) -> Option<Vec<(String, Json<'a>)>> {
        let json = self.take(name, findings)?;
        expect_array(&self.pointer(name), json, max, findings)
    }

    pub(crate) fn object(&mut self, name: &'static str, findings: &mut Findings) -> Option<Self> {
        let json = self.take(name, findings)?;
        Self::of_object(self.pointer(name), json, findings)
    }

    /// Takes an object that may also be `[]`, which PHP writes for an empty map.
    pub(crate) fn loose_object(&mut self, name: &'static str, findings: &mut Findings) -> Option<Self> {
        match self.take(name, findings)? {
            Json::Array(values) if values.is_empty() => None,
            json => Self::of_object(self.pointer(name), json, findings),
        }
    }

    pub(crate) fn into_object(self) -> Object<'a> {
        self.entries
    }

    /// All entries of an object with client-chosen names; `null` values left out.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = (String, Cow<'a, str>, Json<'a>)> {
        let Self { pointer, entries } = self;
        let present = entries.into_iter().filter(|(_, json)| *json != Json::Null);
        present
            .map(move |(name, json)| (format!("{pointer}/{}", pointer_token(shortened(&name))), name, json))
    }

    /// Reports the remaining fields as unknown.
    pub(crate) fn finish(self, findings: &mut Findings) {
        for (name, _) in self.entries {
            if findings.warnings.len() >= WARNINGS_MAX {
                findings.warnings_left_out += 1;
                continue;
            }
            let path = format!("{}/{}", self.pointer, shortened(&name));
            findings.warn("field", path.strip_prefix('/').unwrap_or(&path));
        }
    }
}

pub(crate) fn expect_text<'a>(
    pointer: &str,
    json: Json<'a>,
    findings: &mut Findings,
) -> Option<Cow<'a, str>> {
    match json {
        Json::Text(text) => Some(text),
        other => {
            findings.wrong_type(pointer, "String", other.type_name());
            None
        }
    }
}

fn read_flag(json: &Json<'_>) -> Option<bool> {
    match json {
        Json::Bool(value) => Some(*value),
        Json::Number(number) => match number.as_str() {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        },
        Json::Text(text) if text == "true" => Some(true),
        Json::Text(text) if text == "false" => Some(false),
        _ => None,
    }
}

/// Entries of an array, as `Fields::array` returns them.
pub(crate) fn expect_array<'a>(
    pointer: &str,
    json: Json<'a>,
    max: usize,
    findings: &mut Findings,
) -> Option<Vec<(String, Json<'a>)>> {
    let Json::Array(values) = json else {
        findings.wrong_type(pointer, "Array", json.type_name());
        return None;
    };
    let numbered = values.into_iter().enumerate();
    let present = numbered.filter(|(_, value)| *value != Json::Null);
    Some(present.take(max.saturating_add(1)).map(|(at, value)| (format!("{pointer}/{at}"), value)).collect())
}

/// RFC 6901: `~` and `/` in a pointer's token are escaped.
pub(crate) fn pointer_token(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_object;

    fn problems(findings: &Findings) -> Vec<(&str, &str)> {
        findings.problems.iter().map(|p| (p.pointer.as_str(), p.message.as_str())).collect()
    }

    #[test]
    fn every_wrong_type_is_reported_with_its_pointer() {
        let text = br#"{"a": 1, "b": "x", "c": {"d": [1.5]}, "e": [["x"], null, true]}"#;
        let mut fields = Fields::of_request(parse_object(text).unwrap());
        let mut findings = Findings::default();
        assert_eq!(fields.text("a", &mut findings), None);
        assert_eq!(fields.flag("b", &mut findings), None);
        let mut nested = fields.object("c", &mut findings).unwrap();
        assert_eq!(nested.flag("d", &mut findings), None);
        for (pointer, entry) in fields.array("e", 10, &mut findings).unwrap() {
            expect_text(&pointer, entry, &mut findings);
        }
        assert_eq!(
            problems(&findings),
            [
                ("/a", "`a` should be a `String` but is a `Integer`"),
                ("/b", "`b` should be a `Boolean` but is a `String`"),
                ("/c/d", "`c/d` should be a `Boolean` but is a `Array`"),
                ("/e/0", "`e/0` should be a `String` but is a `Array`"),
                ("/e/2", "`e/2` should be a `String` but is a `Boolean`"),
            ]
        );
    }

    #[test]
    fn null_counts_as_absent_and_unknown_fields_are_warnings() {
        let text = br#"{"known": null, "z/~": 1, "c": {"odd": 1}}"#;
        let mut fields = Fields::of_request(parse_object(text).unwrap());
        let mut findings = Findings::default();
        assert_eq!(fields.text("known", &mut findings), None);
        fields.object("c", &mut findings).unwrap().finish(&mut findings);
        assert_eq!(fields.pointer("z/~"), "/z~1~0");
        fields.finish(&mut findings);
        assert!(findings.problems.is_empty());
        assert_eq!(
            findings.warnings,
            ["Unknown field `c/odd` was ignored", "Unknown field `z/~` was ignored"]
        );
    }

    #[test]
    fn an_empty_array_is_an_empty_object_and_flags_may_be_numbers_or_texts() {
        let text = br#"{"a": [], "b": [1], "c": 0, "d": 1, "e": "true", "f": "false", "g": 2, "h": "yes"}"#;
        let mut fields = Fields::of_request(parse_object(text).unwrap());
        let mut findings = Findings::default();
        assert!(fields.loose_object("a", &mut findings).is_none() && findings.problems.is_empty());
        assert!(fields.loose_object("b", &mut findings).is_none());
        assert!(fields.is_set("d") && fields.is_set("e") && !fields.is_set("c") && !fields.is_set("g"));
        let flags = ["c", "d", "e", "f", "g", "h"].map(|name| fields.loose_flag(name, &mut findings));
        assert_eq!(flags, [Some(false), Some(true), Some(true), Some(false), None, None]);
        let pointers: Vec<&str> = findings.problems.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(pointers, ["/b", "/g", "/h"]);
    }

    #[test]
    fn lists_and_problems_stop_at_their_limit() {
        let text = format!(r#"{{"a": [{}1]}}"#, "1,".repeat(5_000));
        let mut fields = Fields::of_request(parse_object(text.as_bytes()).unwrap());
        let mut findings = Findings::default();
        let entries = fields.array("a", 1_000, &mut findings).unwrap();
        assert_eq!(entries.len(), 1_001);
        for (pointer, entry) in entries {
            expect_text(&pointer, entry, &mut findings);
        }
        assert_eq!((findings.problems.len(), findings.problems_left_out), (100, 901));
    }

    #[test]
    fn warnings_are_bounded() {
        let long = "x".repeat(10_000);
        let object = (0..1_000).map(|n| (format!("{n}{long}").into(), Json::Bool(true))).collect();
        let mut findings = Findings::default();
        Fields::of_request(object).finish(&mut findings);
        let warnings = findings.take_warnings();
        assert_eq!(warnings.len(), WARNINGS_MAX + 1);
        assert!(warnings.iter().all(|warning| warning.len() < 150));
        assert_eq!(warnings[WARNINGS_MAX], "980 more unknown names were ignored");
    }
}
