//! Parameters that several webhook calls share.

use std::borrow::Cow;

use postroad_app::{EventFilter, WebhookChanges};
use postroad_model::{EventId, WebhookId};
use postroad_openapi_macros::request_fields;

use crate::fields::{Fields, Findings, expect_text};
use crate::json::Json;

/// Maximum number of entries of `events`; more than there are event types.
const EVENTS_MAX: usize = 100;

#[request_fields]
#[serde(untagged)]
pub(crate) enum EventsIn {
    Named(Vec<String>),
    All(AllEventsIn),
}

/// All types of events that the webhook's format can express; with `standard`, also types of later versions.
#[request_fields]
#[serde(rename_all = "lowercase")]
pub(crate) enum AllEventsIn {
    All,
}

/// Takes the required `id`. A number out of range becomes an id that does not exist.
pub(super) fn read_id(fields: &mut Fields<'_>, findings: &mut Findings) -> WebhookId {
    let problems_before = findings.problems.len();
    WebhookId(read_loose_integer(fields, "id", findings).unwrap_or_else(|| {
        if findings.problems.len() == problems_before {
            findings.missing("id");
        }
        0
    }))
}

/// Takes an integer; a number beyond 64 bits becomes 0, which is neither an id nor a version. `None` if the field is
/// absent or not an integer; the latter is recorded as a problem.
pub(super) fn read_loose_integer(
    fields: &mut Fields<'_>,
    name: &'static str,
    findings: &mut Findings,
) -> Option<i64> {
    match fields.take(name, findings)? {
        Json::Number(number) if !number.is_float() => Some(number.as_i64().unwrap_or(0)),
        other => {
            findings.wrong_type(&fields.pointer(name), "Integer", other.type_name());
            None
        }
    }
}

/// Takes the settings of a webhook that are present.
pub(super) fn read_settings(fields: &mut Fields<'_>, findings: &mut Findings) -> WebhookChanges {
    WebhookChanges {
        url: fields.text("url", findings).map(Cow::into_owned),
        events: read_events(fields, findings),
        format: fields.text("format", findings).map(Cow::into_owned),
        enabled: fields.flag("enabled", findings),
    }
}

/// Takes `events`: `"all"`, or an array of names.
fn read_events(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<EventFilter> {
    match fields.take("events", findings)? {
        Json::Text(text) if text == "all" => Some(EventFilter::All),
        Json::Text(_) => {
            findings.problem("/events", "`events` should be \"all\" or an array of event names");
            None
        }
        Json::Array(values) if values.len() > EVENTS_MAX => {
            findings.problem("/events", format!("`events` may name at most {EVENTS_MAX} events"));
            None
        }
        Json::Array(values) => {
            let names = values.into_iter().enumerate();
            let names = names.filter_map(|(at, json)| expect_text(&format!("/events/{at}"), json, findings));
            Some(EventFilter::Named(names.map(Cow::into_owned).collect()))
        }
        other => {
            findings.wrong_type("/events", "Array", other.type_name());
            None
        }
    }
}

/// Takes an event id such as `evt_123`.
pub(super) fn read_event_id(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<EventId> {
    let text = fields.text("event_id", findings)?;
    let id = text.strip_prefix("evt_").and_then(|digits| digits.parse().ok()).map(EventId);
    if id.is_none() {
        findings.problem("/event_id", "`event_id` should be the `id` of an event, such as evt_123");
    }
    id
}
