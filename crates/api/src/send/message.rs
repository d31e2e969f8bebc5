//! send/message: composes and sends an e-mail.

use std::borrow::Cow;

use postroad_app::send::{
    AttachmentDraft, ListEntry, ListUnsubscribe, MessageDraft, TemplateDraft, TrackingOverride,
};
use postroad_model::{Limits, split_address_list};

use super::SendOut;
use super::prepare::prepare;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings, expect_array, expect_text};
use crate::json::Json;
use crate::templates::read_model;

/// Send an e-mail
///
/// Composes an e-mail and queues one message for each recipient. `success` means that the messages are on stable
/// storage. Checks run in this order, and the first failure is answered: wrong types (all are reported together),
/// NoRecipients, TooManyToAddresses, TooManyCCAddresses, TooManyBCCAddresses, NoContent, FromAddressMissing,
/// UnauthenticatedFromAddress, AttachmentMissingName, AttachmentMissingData, errors of the template
/// (TemplateNotPublished, TemplateVariableMissing …), everything else (reported together).
#[crate::documented::path(
    post,
    path = "/api/v1/send/message",
    tag = "send",
    operation_id = "sendMessage",
    request_body = super::SendMessageIn,
    params(
        ("X-Test-Mode" = Option<String>, Header, description = "`true` (or `1`, `yes`, `on`): validate and record, do not deliver; `false` (or `0`, `no`, `off`): deliver; anything else is refused"),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 256 printable characters; a repetition with the same key within 24 hours gets the first answer"),
    ),
    responses((status = 200, body = crate::documented::Answer<SendOut>)),
)]
pub(crate) async fn handle(mut call: Call) -> Result<Success<SendOut>, Failure> {
    let limits = call.app.limits();
    let (context, mut draft) =
        prepare(&call, &call.body, "send/message", |fields, findings| read(fields, limits, findings))?;
    if call.is_large() {
        // Frees the request's body, so that the composed message can take the body's memory. Later the compressed
        // message takes the memory of the draft.
        draft = draft.into_owned();
        call.free_body();
    }
    let warnings = context.warnings.clone();
    let sent = call.app.send_message(context, draft).await;
    Ok(sent.map_err(|refusal| Failure::from(refusal).with_warnings(warnings))?.into())
}

/// Reads the fields of `super::SendMessageIn`. Reads at most one entry more than the limit of each list, which is
/// enough for the length check.
pub(crate) fn read<'a>(
    fields: &mut Fields<'a>,
    limits: &Limits,
    findings: &mut Findings,
) -> MessageDraft<'a> {
    MessageDraft {
        to: addresses(fields, "to", findings),
        cc: addresses(fields, "cc", findings),
        bcc: addresses(fields, "bcc", findings),
        from: fields.text("from", findings),
        sender: fields.text("sender", findings),
        reply_to: fields.text("reply_to", findings),
        subject: fields.text("subject", findings),
        tag: fields.text("tag", findings),
        plain_body: fields.text("plain_body", findings),
        html_body: fields.text("html_body", findings),
        attachments: attachments(fields, limits.attachments_max, findings),
        headers: headers(fields, limits.custom_headers_max, findings),
        bounce: fields.loose_flag("bounce", findings).unwrap_or(false),
        template: template(fields, findings),
        metadata: metadata(fields, findings),
        send_at: fields.text("send_at", findings),
        expires_at: fields.text("expires_at", findings),
        track: track(fields, findings),
        ip_pool: fields.text("ip_pool", findings),
        require_tls: fields.flag("require_tls", findings).unwrap_or(false),
        list_unsubscribe: list_unsubscribe(fields, findings),
    }
}

/// Takes an array of addresses, or one comma-separated text.
fn addresses<'a>(fields: &mut Fields<'a>, name: &'static str, findings: &mut Findings) -> Vec<ListEntry<'a>> {
    let max = Limits::ADDRESSES_PER_LIST_MAX;
    let pointer = fields.pointer(name);
    let entry = |text: Cow<'a, str>| ListEntry { pointer: pointer.clone(), text };
    match fields.take(name, findings) {
        None => Vec::new(),
        Some(Json::Text(Cow::Borrowed(list))) => {
            split_address_list(list).take(max + 1).map(|text| entry(Cow::Borrowed(text))).collect()
        }
        Some(Json::Text(Cow::Owned(list))) => {
            let entries = split_address_list(&list).take(max + 1);
            entries.map(|text| entry(Cow::Owned(text.to_owned()))).collect()
        }
        Some(json) => texts(&pointer, json, max, findings),
    }
}

/// Reads an array of texts.
pub(super) fn texts<'a>(
    pointer: &str,
    json: Json<'a>,
    max: usize,
    findings: &mut Findings,
) -> Vec<ListEntry<'a>> {
    let entries = expect_array(pointer, json, max, findings).unwrap_or_default().into_iter();
    let entry = |(pointer, json): (String, Json<'a>)| {
        expect_text(&pointer, json, findings).map(|text| ListEntry { pointer, text })
    };
    entries.filter_map(entry).collect()
}

fn attachments<'a>(fields: &mut Fields<'a>, max: usize, findings: &mut Findings) -> Vec<AttachmentDraft<'a>> {
    let entries = fields.array("attachments", max, findings).unwrap_or_default().into_iter();
    let attachment = |(pointer, json): (String, Json<'a>)| {
        let mut fields = Fields::of_object(pointer, json, findings)?;
        let draft = AttachmentDraft {
            name: fields.text("name", findings),
            content_type: fields.text("content_type", findings),
            data: fields.text("data", findings),
            content_id: fields.text("content_id", findings),
        };
        fields.finish(findings);
        Some(draft)
    };
    entries.filter_map(attachment).collect()
}

/// Takes `headers`: each value is a text, a number, or a list of texts for a repeated header.
fn headers(fields: &mut Fields<'_>, max: usize, findings: &mut Findings) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    let Some(object) = fields.loose_object("headers", findings) else { return headers };
    for (pointer, name, value) in object.into_entries() {
        if headers.len() > max {
            break;
        }
        match value {
            Json::Text(text) => headers.push((name.into_owned(), text.into_owned())),
            Json::Number(number) => headers.push((name.into_owned(), number.as_str().to_owned())),
            array @ Json::Array(_) => {
                for value in texts(&pointer, array, max, findings) {
                    if headers.len() > max {
                        break;
                    }
                    headers.push((name.clone().into_owned(), value.text.into_owned()));
                }
            }
            other => findings.wrong_type(&pointer, "String", other.type_name()),
        }
    }
    headers
}

fn metadata(fields: &mut Fields<'_>, findings: &mut Findings) -> Vec<(String, String)> {
    let Some(object) = fields.loose_object("metadata", findings) else { return Vec::new() };
    let pairs = object.into_entries().take(Limits::METADATA_PAIRS_MAX + 1);
    let pairs = pairs.filter_map(|(pointer, name, value)| {
        Some((name.into_owned(), expect_text(&pointer, value, findings)?.into_owned()))
    });
    pairs.collect()
}

fn track(fields: &mut Fields<'_>, findings: &mut Findings) -> TrackingOverride {
    let Some(mut track) = fields.object("track", findings) else { return TrackingOverride::default() };
    let overrides =
        TrackingOverride { opens: track.flag("opens", findings), clicks: track.flag("clicks", findings) };
    track.finish(findings);
    overrides
}

fn template<'a>(fields: &mut Fields<'a>, findings: &mut Findings) -> Option<TemplateDraft<'a>> {
    let mut template = fields.object("template", findings)?;
    let id = match template.take("id", findings) {
        Some(Json::Number(number)) if !number.is_float() => Some(number.as_str().into()),
        Some(json) => expect_text(&template.pointer("id"), json, findings),
        None => None,
    };
    let alias = template.text("alias", findings);
    let model = read_model(&mut template, "model", findings).unwrap_or_default();
    let locale = template.text("locale", findings);
    template.finish(findings);
    Some(TemplateDraft { name: id.or(alias), model, locale })
}

fn list_unsubscribe<'a>(fields: &mut Fields<'a>, findings: &mut Findings) -> Option<ListUnsubscribe<'a>> {
    let mut list = fields.object("list_unsubscribe", findings)?;
    let unsubscribe = ListUnsubscribe {
        url: list.text("url", findings),
        mailto: list.text("mailto", findings),
        one_click: list.flag("one_click", findings).unwrap_or(false),
    };
    list.finish(findings);
    Some(unsubscribe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_object;

    fn read_text(text: &str) -> (Findings, String) {
        let mut fields = Fields::of_request(parse_object(text.as_bytes()).unwrap());
        let mut findings = Findings::default();
        let draft = format!("{:?}", read(&mut fields, &Limits::default(), &mut findings));
        fields.finish(&mut findings);
        (findings, draft)
    }

    #[test]
    fn a_text_of_addresses_is_split_at_commas() {
        let text = r#"{"to": "\"Doe, A\" <a@x.com>, b@x.com", "cc": " , ", "bcc": ["", "c@x.com, d@x.com", null, " \t"]}"#;
        let mut fields = Fields::of_request(parse_object(text.as_bytes()).unwrap());
        let draft = read(&mut fields, &Limits::default(), &mut Findings::default());
        let listed = |list: &[ListEntry<'_>]| -> Vec<(String, String)> {
            list.iter().map(|entry| (entry.pointer.clone(), entry.text.trim().to_owned())).collect()
        };
        let pair = |pointer: &str, text: &str| (pointer.to_owned(), text.to_owned());
        assert_eq!(listed(&draft.to), [pair("/to", "\"Doe, A\" <a@x.com>"), pair("/to", "b@x.com")]);
        assert_eq!(listed(&draft.cc), []);
        let bcc = [pair("/bcc/0", ""), pair("/bcc/1", "c@x.com, d@x.com"), pair("/bcc/3", "")];
        assert_eq!(listed(&draft.bcc), bcc, "blank entries are refused later, never dropped");
    }

    #[test]
    fn headers_are_texts_numbers_or_several_texts() {
        let text = r#"{"headers": {"a": "x", "b": 1, "c": 1.50, "d": ["y", "z"], "e": null, "f\n": 123456789012345678901}}"#;
        let (findings, draft) = read_text(text);
        assert!(findings.problems.is_empty(), "{:?}", findings.problems);
        assert!(
            draft.contains(r#"[("a", "x"), ("b", "1"), ("c", "1.50"), ("d", "y"), ("d", "z"), ("f\n", "123456789012345678901")]"#),
            "{draft}"
        );
    }

    #[test]
    fn lists_stop_one_entry_after_their_limit() {
        let commas = ",".repeat(100_000);
        let many = "\"a@x.com\",".repeat(2_000);
        let headers: Vec<String> = (0..1_500).map(|n| format!("\"h{n}\":1.5")).collect();
        let headers = headers.join(",");
        let text = format!(
            r#"{{"to": [{many}""], "cc": "{commas}", "bcc": "{}", "headers": {{{headers}}}, "metadata": {{{headers}}},
                "attachments": [{}{{}}]}}"#,
            "b@x.com,".repeat(5_000),
            "{},".repeat(1_000),
        );
        let mut fields = Fields::of_request(parse_object(text.as_bytes()).unwrap());
        let mut findings = Findings::default();
        let draft = read(&mut fields, &Limits::default(), &mut findings);
        assert_eq!((draft.to.len(), draft.cc.len(), draft.bcc.len()), (51, 0, 51));
        assert_eq!((draft.headers.len(), draft.attachments.len()), (201, 101));
        assert_eq!(findings.problems.len(), 11, "metadata takes texts only");
    }

    #[test]
    fn every_wrong_type_is_listed() {
        let text = r#"{
            "to": 1, "cc": [1], "from": [], "subject": 5, "attachments": ["x", {"name": 1, "odd": 1}],
            "headers": {"a": true, "b": [1]}, "bounce": "yes", "metadata": {"k/": 1}, "track": {"opens": 1},
            "template": {"id": 1.5, "model": 5}, "list_unsubscribe": "x", "odd": 1
        }"#;
        let (findings, _) = read_text(text);
        let pointers: Vec<&str> = findings.problems.iter().map(|problem| problem.pointer.as_str()).collect();
        let expected = "/to /cc/0 /from /subject /attachments/0 /attachments/1/name /headers/a /headers/b/0 /bounce \
                        /template/id /template/model /metadata/k~1 /track/opens /list_unsubscribe";
        assert_eq!(pointers.join(" "), expected);
        assert_eq!(findings.problems[0].message, "`to` should be a `Array` but is a `Integer`");
        assert_eq!(
            findings.warnings,
            ["Unknown field `attachments/1/odd` was ignored", "Unknown field `odd` was ignored"]
        );
    }
}
