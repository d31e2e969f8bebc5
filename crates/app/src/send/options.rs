//! Optional settings of a send, such as tag, metadata, times, pool and list-unsubscribe.

use std::collections::BTreeMap;
use std::time::Duration;

use postroad_model::{EmailAddress, Limits, PoolId, Protocol, Timestamp};
use postroad_store::{OneClickUnsubscribe, SendOptions};

use super::draft::{ListUnsubscribe, MessageDraft};
use crate::FieldProblem;

/// A List-Unsubscribe target longer than this does not fit a header line.
const TARGET_BYTES_MAX: usize = 900;

pub(super) struct CheckedOptions {
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) options: SendOptions,
    /// Headers that the options add to the message.
    pub(super) headers: Vec<(String, String)>,
    /// List-Unsubscribe header that differs for each recipient.
    pub(super) unsubscribe: Option<OneClickUnsubscribe>,
}

pub(super) fn check(
    draft: &MessageDraft<'_>,
    limits: &Limits,
    now: Timestamp,
    pool_id: Option<PoolId>,
    template: Option<String>,
    problems: &mut Vec<FieldProblem>,
) -> CheckedOptions {
    if let Some(tag) = &draft.tag {
        check_tag("/tag", tag, limits, problems);
    }
    if let Some(pool) = draft.ip_pool.as_ref().filter(|_| pool_id.is_none()) {
        let message = format!("There is no IP pool `{}` for this server", quotable_part(pool));
        problems.push(FieldProblem::new("/ip_pool", message));
    }
    let send_at = check_time("/send_at", draft.send_at.as_deref(), problems);
    let latest = now.plus(Duration::from_hours(Limits::SEND_AT_DAYS_MAX * 24));
    if send_at.is_some_and(|at| at > latest) {
        let message = format!("`send_at` must be within the next {} days", Limits::SEND_AT_DAYS_MAX);
        problems.push(FieldProblem::new("/send_at", message));
    }
    let expires_at = check_time("/expires_at", draft.expires_at.as_deref(), problems);
    if expires_at.is_some_and(|at| at <= send_at.unwrap_or(now).max(now)) {
        problems.push(FieldProblem::new("/expires_at", "`expires_at` must be after the time of sending"));
    }
    let list = draft.list_unsubscribe.as_ref().map(|list| check_list_unsubscribe(list, problems));
    let (headers, unsubscribe) = list.unwrap_or_default();
    CheckedOptions {
        metadata: check_metadata(&draft.metadata, problems),
        options: SendOptions {
            tracking: None,
            require_tls: draft.require_tls,
            send_at,
            expires_at,
            pool_id,
            protocol: Protocol::Http,
            host: None,
            template,
            attachment: false,
        },
        headers,
        unsubscribe,
    }
}

pub(super) fn check_tag(pointer: &str, tag: &str, limits: &Limits, problems: &mut Vec<FieldProblem>) {
    if tag.len() > limits.tag_bytes_max {
        let message = format!("The tag is longer than {} bytes", limits.tag_bytes_max);
        problems.push(FieldProblem::new(pointer, message));
    }
    if tag.chars().any(char::is_control) {
        problems
            .push(FieldProblem::new(pointer, "The tag must not contain line breaks or control characters"));
    }
}

pub(super) fn check_time(
    pointer: &str,
    text: Option<&str>,
    problems: &mut Vec<FieldProblem>,
) -> Option<Timestamp> {
    let parsed = Timestamp::parse_rfc3339(text?);
    if parsed.is_none() {
        let field = pointer.trim_start_matches('/');
        let message = format!("`{field}` must be an RFC 3339 time such as 2026-11-15T09:30:00Z");
        problems.push(FieldProblem::new(pointer, message));
    }
    parsed
}

pub(super) fn check_metadata(
    pairs: &[(String, String)],
    problems: &mut Vec<FieldProblem>,
) -> BTreeMap<String, String> {
    if pairs.len() > Limits::METADATA_PAIRS_MAX {
        let message = format!("`metadata` has more than {} pairs", Limits::METADATA_PAIRS_MAX);
        problems.push(FieldProblem::new("/metadata", message));
        return BTreeMap::new();
    }
    let before = problems.len();
    for (key, value) in pairs {
        let pointer = format!("/metadata/{}", pointer_token(key));
        if key.is_empty() || key.len() > Limits::METADATA_KEY_BYTES_MAX || key.chars().any(char::is_control) {
            let message = format!(
                "A metadata key must be 1 to {} bytes without control characters",
                Limits::METADATA_KEY_BYTES_MAX
            );
            problems.push(FieldProblem::new(&pointer, message));
        }
        if value.len() > Limits::METADATA_VALUE_BYTES_MAX {
            let message =
                format!("A metadata value is longer than {} bytes", Limits::METADATA_VALUE_BYTES_MAX);
            problems.push(FieldProblem::new(&pointer, message));
        }
        if value.contains('\0') {
            problems.push(FieldProblem::new(&pointer, "A metadata value must not contain a NUL character"));
        }
    }
    if problems.len() > before { BTreeMap::new() } else { pairs.iter().cloned().collect() }
}

/// A metadata key or header name as token of a JSON pointer: cut like quoted texts, with `~` and `/` escaped (RFC
/// 6901).
pub(super) fn pointer_token(text: &str) -> String {
    quotable_part(text).replace('~', "~0").replace('/', "~1")
}

/// The part of a text that an answer quotes: only the beginning, because the text may be long.
pub(super) fn quotable_part(text: &str) -> &str {
    &text[..text.floor_char_boundary(256)]
}

/// RFC 2369 List-Unsubscribe and RFC 8058 one-click. If the sender asks for one-click without a URL, this service
/// handles it, with a different link for each recipient. Then the headers are added when the message is sent.
fn check_list_unsubscribe(
    list: &ListUnsubscribe<'_>,
    problems: &mut Vec<FieldProblem>,
) -> (Vec<(String, String)>, Option<OneClickUnsubscribe>) {
    let mut targets = Vec::new();
    let mut mail_target = None;
    if let Some(url) = list.url.as_deref() {
        if is_web_url(url) {
            targets.push(format!("<{url}>"));
        } else {
            let message =
                "`list_unsubscribe.url` must be an http or https URL without spaces or angle brackets";
            problems.push(FieldProblem::new("/list_unsubscribe/url", message));
        }
    }
    if let Some(mailto) = list.mailto.as_deref() {
        let address = mailto.strip_prefix("mailto:").unwrap_or(mailto);
        let bare = address.split('?').next().unwrap_or_default();
        if EmailAddress::parse(bare).is_ok() && is_plain_target(address) {
            targets.push(format!("<mailto:{address}>"));
            mail_target = Some(address.to_owned());
        } else {
            let message = "`list_unsubscribe.mailto` must be an e-mail address or a mailto: URL";
            problems.push(FieldProblem::new("/list_unsubscribe/mailto", message));
        }
    }
    if list.one_click && list.url.as_deref().is_some_and(|url| !url.starts_with("https://")) {
        let message = "`list_unsubscribe.one_click` needs an https `url` (RFC 8058), or no `url` for a link to this service";
        problems.push(FieldProblem::new("/list_unsubscribe/one_click", message));
    }
    if list.url.is_none() && list.one_click {
        return (Vec::new(), Some(OneClickUnsubscribe { mailto: mail_target }));
    }
    if list.url.is_none() && list.mailto.is_none() {
        let message = "`list_unsubscribe` needs a `url`, a `mailto` or `one_click`";
        problems.push(FieldProblem::new("/list_unsubscribe", message));
    }
    let mut headers = vec![("List-Unsubscribe".to_owned(), targets.join(", "))];
    if list.one_click {
        headers.push(("List-Unsubscribe-Post".to_owned(), "List-Unsubscribe=One-Click".to_owned()));
    }
    (headers, None)
}

fn is_web_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty()) && is_plain_target(url)
}

fn is_plain_target(text: &str) -> bool {
    text.len() <= TARGET_BYTES_MAX
        && text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'<' | b'>' | b','))
}

/// The problem of a message that is too large.
pub(super) fn too_large(limits: &Limits) -> FieldProblem {
    FieldProblem::new("", format!("The message is larger than {} bytes", limits.message_bytes_max))
}
