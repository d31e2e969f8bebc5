//! What a submitted message asks for in its control headers: the same that the HTTP API takes as fields.

use std::collections::BTreeMap;

use postroad_mail::RawMessage;
use postroad_model::Limits;

use super::{TrackWish, is_idempotency_key, options};
use crate::{FieldProblem, Refusal};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) tag: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) test: bool,
    pub(super) track: TrackWish,
    pub(super) idempotency_key: Option<String>,
}

/// Everything that is wrong is told at once, as for the HTTP API.
pub(super) fn read(raw: &RawMessage, limits: &Limits) -> Result<Wishes, Refusal> {
    let mut problems = Vec::new();
    let tag = raw.tag().map(str::to_owned);
    if let Some(tag) = &tag {
        options::check_tag("/data", tag, limits, &mut problems);
    }
    let pairs: Vec<(String, String)> =
        raw.metadata().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let metadata = options::check_metadata(&pairs, &mut problems);
    let opens = switch(raw, "X-Track-Opens", &mut problems);
    let clicks = switch(raw, "X-Track-Clicks", &mut problems);
    let idempotency_key = raw.control("x-idempotency-key").map(str::to_owned);
    if idempotency_key.as_deref().is_some_and(|key| !is_idempotency_key(key)) {
        let most = Limits::IDEMPOTENCY_KEY_CHARS_MAX;
        let message = format!("The header X-Idempotency-Key must be 1 to {most} printable characters");
        problems.push(FieldProblem::new("/data", message));
    }
    if !problems.is_empty() {
        return Err(Refusal::Validation(problems));
    }
    Ok(Wishes {
        tag,
        metadata,
        // As in the header of an HTTP request: `true` and nothing else.
        test: raw.control("x-test-mode").is_some_and(|value| value.eq_ignore_ascii_case("true")),
        track: TrackWish { opens, clicks },
        idempotency_key,
    })
}

fn switch(raw: &RawMessage, name: &str, problems: &mut Vec<FieldProblem>) -> Option<bool> {
    let value = raw.control(&name.to_ascii_lowercase())?.to_ascii_lowercase();
    match value.as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => {
            problems.push(FieldProblem::new("/data", format!("The header {name} must be true or false")));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use postroad_mail::{RawFallback, prepare_submission};

    use super::*;

    fn wishes(headers: &str) -> Result<Wishes, Refusal> {
        let fallback = RawFallback { date: "x", message_id: "x" };
        let message = format!("From: a@example.test\r\n{headers}\r\nbody");
        read(&prepare_submission(message.into(), &fallback).unwrap(), &Limits::default())
    }

    #[test]
    fn a_message_that_asks_for_nothing_gets_nothing() {
        assert_eq!(wishes(""), Ok(Wishes::default()));
        assert_eq!(
            wishes("X-Test-Mode: 1\r\nX-Postroad-Other: x\r\nX-Track-Opens:\r\n"),
            Ok(Wishes::default())
        );
    }

    #[test]
    fn switches_are_read_in_any_case() {
        let found = wishes("X-Test-Mode: TRUE\r\nX-Track-Opens: No\r\nX-Track-Clicks: true\r\n").unwrap();
        assert!(found.test);
        assert_eq!(found.track, TrackWish { opens: Some(false), clicks: Some(true) });
    }

    #[test]
    fn every_problem_is_told() {
        let tag = "t".repeat(256);
        let pairs = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
            .map(|name| format!("X-Metadata-{name}: v\r\n"))
            .concat();
        let key = "k".repeat(257);
        let headers =
            format!("X-Postroad-Tag: {tag}\r\n{pairs}X-Track-Opens: maybe\r\nX-Idempotency-Key: {key}\r\n");
        let Err(Refusal::Validation(problems)) = wishes(&headers) else { panic!("it was taken") };
        let texts: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        assert_eq!(
            texts,
            [
                "The tag is longer than 255 bytes",
                "`metadata` has more than 10 pairs",
                "The header X-Track-Opens must be true or false",
                "The header X-Idempotency-Key must be 1 to 256 printable characters",
            ]
        );
    }
}
