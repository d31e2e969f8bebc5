//! Timeline of a message as rows: events with their reasons and SMTP transcripts.

use postroad_app::{TimelineItem, TimelineKind, refusal_rule};
use postroad_model::Timestamp;
use serde_json::Value;

use super::newest_rows::{NewestRows, escaped_bytes, shortened};
use crate::display::When;
use crate::sentence::Sentence;

pub(crate) struct TimelineRow {
    pub(crate) at: When,
    /// Name of the dot's colour.
    pub(crate) tone: &'static str,
    pub(crate) title: &'static str,
    pub(crate) text: Sentence,
    /// Further facts: name and value.
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) times: Vec<(&'static str, When)>,
    /// Lines of the SMTP conversation.
    pub(crate) transcript: Vec<String>,
    /// Why a refusal was classified so, and what to do about it.
    pub(crate) why: Option<Why>,
}

pub(crate) struct Why {
    pub(crate) class: String,
    /// Name of the first rule that gives the reply this class; `None` without a reply, or if no rule does so any more.
    pub(crate) rule: Option<&'static str>,
    pub(crate) remedy: Option<Remedy>,
}

/// Advice, and the page of the server where it is followed: path and name.
pub(crate) struct Remedy {
    pub(crate) text: &'static str,
    pub(crate) page: Option<(&'static str, &'static str)>,
}

/// Maximum bytes of one SMTP conversation, escaped; stored conversations are rarely longer.
const TRANSCRIPT_BYTES_MAX: usize = 8_000;

/// The newest rows that fit on a page, after the newest `skipped` ones.
pub(crate) fn rows(items: Vec<TimelineItem>, skipped: usize) -> NewestRows<TimelineRow> {
    NewestRows::new(items.into_iter().map(row).collect(), skipped, bytes_of)
}

fn bytes_of(row: &TimelineRow) -> usize {
    let facts = row.facts.iter().map(|(_, value)| value).chain(&row.transcript);
    escaped_bytes(&row.text.0) + facts.map(|text| 50 + escaped_bytes(text)).sum::<usize>()
}

fn row(item: TimelineItem) -> TimelineRow {
    let data = &item.data;
    let status = data["status"].as_str().unwrap_or_default();
    let (title, tone) = title(item.kind, status);
    let class = data["bounce_class"].as_str();
    let is_refusal = matches!(status, "HardFail" | "SoftFail" | "Bounced");
    TimelineRow {
        at: When(item.at),
        tone,
        title,
        facts: facts(data),
        times: times(data),
        transcript: conversation(&data["transcript"]),
        why: class.filter(|_| is_refusal).map(|class| why(class, data["output"].as_str())),
        text: Sentence(shortened(item.text)),
    }
}

fn title(kind: TimelineKind, status: &str) -> (&'static str, &'static str) {
    match kind {
        TimelineKind::Accepted => ("Accepted", "calm"),
        TimelineKind::Queued => ("Queued", "calm"),
        TimelineKind::Rescheduled => ("Rescheduled", "calm"),
        TimelineKind::Held => ("Held", "warn"),
        TimelineKind::Released => ("Released", "calm"),
        TimelineKind::Dns => ("DNS", "off"),
        TimelineKind::Attempt if status == "Sent" => ("Delivered", "good"),
        TimelineKind::Attempt if status == "HardFail" => ("Failed", "bad"),
        TimelineKind::Attempt | TimelineKind::Delayed => ("Delayed", "warn"),
        TimelineKind::Wait | TimelineKind::Waiting => ("Waiting", "calm"),
        TimelineKind::Sent => ("Delivered", "good"),
        TimelineKind::Failed => ("Failed", "bad"),
        TimelineKind::Bounced => ("Bounced", "bad"),
        TimelineKind::Cancelled => ("Cancelled", "off"),
        TimelineKind::Opened => ("Opened", "good"),
        TimelineKind::Clicked => ("Clicked", "good"),
        TimelineKind::Unsubscribed => ("Unsubscribed", "warn"),
        TimelineKind::Complained => ("Complaint", "bad"),
        TimelineKind::Webhook => ("Webhook", "off"),
    }
}

/// Existing facts, in the order in which people look for them.
fn facts(data: &Value) -> Vec<(&'static str, String)> {
    let text = |name: &str| match &data[name] {
        Value::String(text) if !text.is_empty() => Some(shortened(text.clone())),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let mut facts: Vec<(&'static str, String)> = Vec::new();
    for (label, name) in [
        ("Reply", "output"),
        ("Code", "code"),
        ("Enhanced code", "enhanced_code"),
        ("Class", "bounce_class"),
        ("Host", "mx"),
        ("Address", "remote_ip"),
        ("From address", "source_ip"),
        ("TLS", "tls"),
        ("TLS policy", "tls_policy"),
        ("User agent", "user_agent"),
    ] {
        facts.extend(text(name).map(|value| (label, value)));
    }
    let keys = keys_of(data);
    if !keys.is_empty() {
        facts.push(("Signed with", shortened(keys.join(", "))));
    }
    if let Some(seconds) = data["time"].as_f64() {
        facts.push(("Took", crate::display::duration((seconds * 1e6) as i64)));
    }
    if data["possible_duplicate"] == true {
        facts.push(("Note", "an earlier attempt may have arrived: its reply was lost".to_owned()));
    }
    facts
}

/// DNS names of the DKIM keys of the newest attempt with a signature; empty if there was none.
pub(super) fn signing_keys(items: &[TimelineItem]) -> Vec<String> {
    let keys = items.iter().rev().map(|item| keys_of(&item.data)).find(|keys| !keys.is_empty());
    keys.unwrap_or_default().into_iter().map(str::to_owned).collect()
}

fn keys_of(data: &Value) -> Vec<&str> {
    data["dkim"].as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(Value::as_str).collect()
}

fn times(data: &Value) -> Vec<(&'static str, When)> {
    let time = |name: &str| data[name].as_str().and_then(Timestamp::parse_rfc3339).map(When);
    let times = [("Until", "until"), ("Next attempt", "next_attempt_at")];
    times.into_iter().filter_map(|(label, name)| Some((label, time(name)?))).collect()
}

fn conversation(value: &Value) -> Vec<String> {
    let lines = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let lines = lines.iter().filter_map(Value::as_str).map(|line| shortened(line.to_owned()));
    let mut bytes = 0;
    let mut shown: Vec<String> = Vec::new();
    for line in lines {
        bytes += escaped_bytes(&line);
        if bytes > TRANSCRIPT_BYTES_MAX {
            shown.push("… the rest is in the answer of messages/timeline".to_owned());
            break;
        }
        shown.push(line);
    }
    shown
}

fn why(class: &str, reply: Option<&str>) -> Why {
    let rule = reply.and_then(|reply| refusal_rule(reply, class));
    let page = match class {
        "bad_mailbox" => Some(("suppressions", "Suppressions")),
        "auth_failure" => Some(("domains", "Domains")),
        _ => None,
    };
    let remedy = remedy(class).map(|text| Remedy { text, page });
    Why { class: class.to_owned(), rule, remedy }
}

/// Advice for senders about a class of refusals. If the remedy has a page, the template appends the page's name to the
/// text.
fn remedy(class: &str) -> Option<&'static str> {
    Some(match class {
        "bad_mailbox" => {
            "The mailbox does not exist. Correct the address with the person. Addresses that get no more mail until then are listed in"
        }
        "bad_domain" => "The domain does not exist or takes no mail. Check the address for a typing mistake.",
        "full" => {
            "The mailbox has no space left; only its owner can make room. The message is retried automatically."
        }
        "inactive" => "The mailbox was closed. Remove the address from your data.",
        "spam_block" => {
            "The receiver takes this message for spam. Look at its links and wording, and compare it with mail that the receiver accepts."
        }
        "reputation" => {
            "The receiver distrusts the sending address or domain. Send less for a while, and only to people who expect it."
        }
        "policy" => "A rule of the receiver refuses it; the reply names it.",
        "auth_failure" => "SPF, DKIM or DMARC failed. Mend the records that are not verified, in",
        "rate_limited" => {
            "The receiver asks to send slower. Postroad has slowed down and retries automatically."
        }
        "too_large" => {
            "The message is larger than the receiver takes. Link to the file instead of attaching it."
        }
        "content" => "The receiver refuses what is in the message: often the type of an attachment.",
        "dns" => "A DNS look-up failed. The message is retried automatically.",
        "timeout" => "The receiver did not answer in time. The message is retried automatically.",
        "relaying_denied" => "The host does not take mail for that domain: its MX record is probably wrong.",
        _ => return None,
    })
}
