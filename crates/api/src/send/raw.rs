//! send/raw: sends a message that the client built.

use postroad_app::send::RawDraft;
use postroad_model::Limits;
use postroad_openapi_macros::request_fields;

use super::SendOut;
use super::message::texts;
use super::prepare::prepare;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};

/// Message in RFC 5322 form, with its envelope.
#[request_fields]
#[schema(example = json!({
    "mail_from": "shop@example.com",
    "rcpt_to": ["ann@example.net"],
    "data": "RnJvbTogc2hvcEBleGFtcGxlLmNvbQ0KU3ViamVjdDogSGkNCg0KSGkNCg=="
}))]
pub(crate) struct SendRawIn {
    /// Envelope sender. It is stored and shown, but receivers see a return path of Postroad instead. May be empty only
    /// with `bounce`.
    mail_from: String,
    /// Recipients, independent of the message's headers.
    #[schema(max_items = 1000)]
    rcpt_to: Vec<String>,
    /// Message in base64.
    data: String,
    /// Marks a bounce response: sent with the empty envelope sender.
    bounce: Option<bool>,
    /// Alternative to the header Idempotency-Key.
    #[schema(min_length = 1, max_length = 256)]
    idempotency_key: Option<String>,
}

/// Send a pre-built message
///
/// Keeps the message's bytes, except for bare line breaks, and headers that must be added, encoded or removed. Every
/// address in From, and in Sender, Resent-From and Resent-Sender when present, must be on a verified domain of the
/// server or its account.
#[crate::documented::path(
    post,
    path = "/api/v1/send/raw",
    tag = "send",
    operation_id = "sendRaw",
    request_body = SendRawIn,
    params(
        ("X-Test-Mode" = Option<String>, Header, description = "`true` (or `1`, `yes`, `on`): validate and record, do not deliver; `false` (or `0`, `no`, `off`): deliver; anything else is refused"),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 256 printable characters; a repetition with the same key within 24 hours gets the first answer"),
    ),
    responses((status = 200, body = crate::documented::Answer<SendOut>)),
)]
pub(crate) async fn handle(mut call: Call) -> Result<Success<SendOut>, Failure> {
    let (context, mut draft) = prepare(&call, &call.body, "send/raw", read)?;
    if call.is_large() {
        draft = draft.into_owned();
        call.free_body();
    }
    let warnings = context.warnings.clone();
    let sent = call.app.send_raw(context, draft).await;
    Ok(sent.map_err(|refusal| Failure::from(refusal).with_warnings(warnings))?.into())
}

/// Reads the fields of the request. A missing field is recorded as a problem and left blank in the draft.
pub(crate) fn read<'a>(fields: &mut Fields<'a>, findings: &mut Findings) -> RawDraft<'a> {
    // Decides whether `mail_from` may be empty. The type of `bounce` is checked last.
    let is_bounce = fields.is_set("bounce");
    let rcpt_to = fields.take("rcpt_to", findings);
    if rcpt_to.is_none() {
        findings.missing("rcpt_to");
    }
    let pointer = fields.pointer("rcpt_to");
    let rcpt_to = rcpt_to.map(|json| texts(&pointer, json, Limits::RAW_RECIPIENTS_MAX, findings));
    let rcpt_to = rcpt_to.unwrap_or_default();
    let mail_from = read_required(fields, "mail_from", is_bounce, findings);
    let data = read_required(fields, "data", false, findings);
    RawDraft { mail_from, rcpt_to, data, bounce: fields.loose_flag("bounce", findings).unwrap_or(false) }
}

/// Takes a text that must be present, and non-blank unless allowed.
fn read_required<'a>(
    fields: &mut Fields<'a>,
    name: &'static str,
    may_be_blank: bool,
    findings: &mut Findings,
) -> std::borrow::Cow<'a, str> {
    let problems_before = findings.problems.len();
    let text = fields.text(name, findings).filter(|text| may_be_blank || !text.trim().is_empty());
    if text.is_none() && findings.problems.len() == problems_before {
        findings.missing(name);
    }
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_object;

    fn problems(text: &str) -> Vec<String> {
        let mut fields = Fields::of_request(parse_object(text.as_bytes()).unwrap());
        let mut findings = Findings::default();
        read(&mut fields, &mut findings);
        findings.problems.into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn missing_and_wrong_fields_are_listed_in_order() {
        assert_eq!(
            problems("{}"),
            [
                "`rcpt_to` parameter is required but is missing",
                "`mail_from` parameter is required but is missing",
                "`data` parameter is required but is missing",
            ]
        );
        assert_eq!(
            problems(r#"{"rcpt_to": "a@x.com", "mail_from": 1, "data": null, "bounce": 2}"#),
            [
                "`rcpt_to` should be a `Array` but is a `String`",
                "`mail_from` should be a `String` but is a `Integer`",
                "`data` parameter is required but is missing",
                "`bounce` should be a `Boolean` but is a `Integer`",
            ]
        );
    }

    #[test]
    fn only_a_bounce_may_have_an_empty_mail_from() {
        let blank = r#""rcpt_to": [], "mail_from": "", "data": "x""#;
        assert_eq!(problems(&format!("{{{blank}}}")), ["`mail_from` parameter is required but is missing"]);
        for bounce in ["true", "1", "\"true\""] {
            assert!(problems(&format!("{{{blank}, \"bounce\": {bounce}}}")).is_empty(), "{bounce}");
        }
    }
}
