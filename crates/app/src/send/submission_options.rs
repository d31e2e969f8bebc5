//! Options that a submitted message has in control headers; they correspond to fields of the HTTP API.

use std::collections::BTreeMap;

use postroad_mail::RawMessage;
use postroad_model::Limits;

use super::{TrackingOverride, is_idempotency_key, options};
use crate::{FieldProblem, Refusal};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SubmissionOptions {
    pub(super) tag: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) test: bool,
    pub(super) track: TrackingOverride,
    pub(super) idempotency_key: Option<String>,
    /// The template to render the message from; the body of the message is the template's model.
    pub(super) template: Option<TemplateCall>,
}

/// A template named by a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TemplateCall {
    /// Id or alias.
    pub(super) name: String,
    pub(super) locale: Option<String>,
}

/// Reads the options and reports all problems at once, as the HTTP API does.
pub(super) fn read(raw: &RawMessage, limits: &Limits) -> Result<SubmissionOptions, Refusal> {
    let mut problems = Vec::new();
    let tag = raw.tag().map(str::to_owned);
    if let Some(tag) = &tag {
        options::check_tag("/data", tag, limits, &mut problems);
    }
    let pairs: Vec<(String, String)> =
        raw.metadata().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let metadata = options::check_metadata(&pairs, &mut problems);
    let opens = read_switch(raw, "X-Track-Opens", &mut problems);
    let clicks = read_switch(raw, "X-Track-Clicks", &mut problems);
    let test_values = raw.controls.iter().filter(|(name, _)| name == "x-test-mode");
    let is_test = read_test_mode(test_values.map(|(_, value)| value.as_str()));
    if is_test.is_none() {
        problems.push(FieldProblem::new("/data", TEST_MODE_PROBLEM));
    }
    let idempotency_key = raw.control("x-idempotency-key").map(str::to_owned);
    if idempotency_key.as_deref().is_some_and(|key| !is_idempotency_key(key)) {
        let max = Limits::IDEMPOTENCY_KEY_CHARS_MAX;
        let message = format!("The header X-Idempotency-Key must be 1 to {max} printable characters");
        problems.push(FieldProblem::new("/data", message));
    }
    if !problems.is_empty() {
        return Err(Refusal::Validation(problems));
    }
    Ok(SubmissionOptions {
        tag,
        metadata,
        test: is_test.unwrap_or(false),
        track: TrackingOverride { opens, clicks },
        idempotency_key,
        template: raw.control("x-postroad-template").map(|name| TemplateCall {
            name: name.to_owned(),
            locale: raw.control("x-postroad-template-locale").map(str::to_owned),
        }),
    })
}

fn read_switch(raw: &RawMessage, name: &str, problems: &mut Vec<FieldProblem>) -> Option<bool> {
    let switch = parse_switch(raw.control(&name.to_ascii_lowercase())?);
    if switch.is_none() {
        problems.push(FieldProblem::new("/data", format!("The header {name} must be true or false")));
    }
    switch
}

/// Error message if `read_test_mode` returns `None`.
pub const TEST_MODE_PROBLEM: &str = "The header X-Test-Mode must be true or false";

/// Whether the X-Test-Mode headers of a request or message ask for test mode. `None` if a value is neither yes nor no,
/// or if the values disagree: a misunderstood header must not cause real mail.
pub fn read_test_mode<'a>(values: impl IntoIterator<Item = &'a str>) -> Option<bool> {
    let mut is_test = None;
    for value in values {
        let switch = parse_switch(value)?;
        if is_test.is_some_and(|before| before != switch) {
            return None;
        }
        is_test = Some(switch);
    }
    Some(is_test.unwrap_or(false))
}

/// Parses a word for on or off, in any letter case.
fn parse_switch(value: &str) -> Option<bool> {
    let value = value.trim();
    let is_one_of = |words: [&str; 4]| words.into_iter().any(|word| value.eq_ignore_ascii_case(word));
    if is_one_of(["true", "yes", "on", "1"]) {
        Some(true)
    } else if is_one_of(["false", "no", "off", "0"]) {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use postroad_mail::{RawFallback, prepare_submission};

    use super::*;

    fn parse(headers: &str) -> Result<SubmissionOptions, Refusal> {
        let fallback = RawFallback { date: "x", message_id: "x" };
        let message = format!("From: a@example.test\r\n{headers}\r\nbody");
        read(&prepare_submission(message.into(), &fallback).unwrap(), &Limits::default())
    }

    #[test]
    fn a_message_without_options_gets_the_defaults() {
        assert_eq!(parse(""), Ok(SubmissionOptions::default()));
        assert_eq!(
            parse("X-Test-Mode: off\r\nX-Postroad-Other: x\r\nX-Track-Opens:\r\n"),
            Ok(SubmissionOptions::default())
        );
    }

    #[test]
    fn switches_are_read_in_any_case() {
        let found = parse("X-Test-Mode: TRUE\r\nX-Track-Opens: No\r\nX-Track-Clicks: true\r\n").unwrap();
        assert!(found.test);
        assert_eq!(found.track, TrackingOverride { opens: Some(false), clicks: Some(true) });
    }

    #[test]
    fn test_mode_takes_the_words_of_the_other_switches_and_refuses_other_words() {
        for (values, expected) in [
            (&["1"][..], Some(true)),
            (&["YES"], Some(true)),
            (&[" on "], Some(true)),
            (&["true", "1"], Some(true)),
            (&["no"], Some(false)),
            (&["0"], Some(false)),
            (&[], Some(false)),
            (&[""], None),
            (&["enabled"], None),
            (&["true; x"], None),
            (&["true", "false"], None),
            (&["false", ""], None),
        ] {
            assert_eq!(read_test_mode(values.iter().copied()), expected, "{values:?}");
        }
    }

    #[test]
    fn every_problem_is_reported() {
        let tag = "t".repeat(256);
        let pairs = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
            .map(|name| format!("X-Metadata-{name}: v\r\n"))
            .concat();
        let key = "k".repeat(257);
        let headers = format!(
            "X-Postroad-Tag: {tag}\r\n{pairs}X-Track-Opens: maybe\r\nX-Test-Mode:\r\nX-Idempotency-Key: {key}\r\n"
        );
        let Err(Refusal::Validation(problems)) = parse(&headers) else { panic!("it was accepted") };
        let texts: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        assert_eq!(
            texts,
            [
                "The tag is longer than 255 bytes",
                "`metadata` has more than 10 pairs",
                "The header X-Track-Opens must be true or false",
                "The header X-Test-Mode must be true or false",
                "The header X-Idempotency-Key must be 1 to 256 printable characters",
            ]
        );
    }
}
