//! server/update: changes settings of the key's server.

use std::borrow::Cow;

use postroad_app::ServerChangeRequest;
use postroad_model::Change;
use postroad_openapi_macros::request_fields;

use super::server_out::ServerOut;
use crate::account_params::read_integer;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings, expect_text};
use crate::json::{self, Json};

/// `null` means absent, so this word removes a limit.
const NO_LIMIT: &str = "none";
/// Maximum number of host names that are read; `app` refuses more than its own limit.
const EXCLUDED_HOSTS_MAX: usize = 100;

/// Settings to change; omitted ones stay as they are.
#[request_fields]
#[schema(example = json!({"hourly_limit": 5000, "tracking": {"opens": true}}))]
pub(crate) struct UpdateServerIn {
    /// Change it only if this is its `version`; else `VersionConflict`.
    if_version: Option<i64>,
    /// Up to 100 characters.
    name: Option<String>,
    /// `live` or `development`
    mode: Option<String>,
    /// Such as `10/s`, `100/m` or `1000/h`; `none` for no limit.
    send_rate: Option<String>,
    /// Messages an hour; `"none"` for no limit.
    hourly_limit: Option<LimitIn>,
    /// What is tracked in HTML messages.
    tracking: Option<TrackingIn>,
    retention: Option<RetentionIn>,
}

#[request_fields]
#[serde(untagged)]
pub(crate) enum LimitIn {
    Limit(u32),
    None(String),
}

#[request_fields]
pub(crate) struct TrackingIn {
    /// Adds a picture that shows when a message is opened.
    opens: Option<bool>,
    /// Replaces links, to record clicks.
    clicks: Option<bool>,
    /// Hosts whose links are not replaced. Replaces the current list; up to 100 host names.
    excluded_hosts: Option<Vec<String>>,
}

/// Days, at most the installation's retention; `"none"` for the installation's own. Data that is still to be
/// sent, counted or posted to a webhook is kept longer.
#[request_fields]
pub(crate) struct RetentionIn {
    /// Message bodies.
    bodies_days: Option<LimitIn>,
    /// Messages with all their data.
    messages_days: Option<LimitIn>,
}

/// Change the server
///
/// Applies all given changes, or none if any is wrong. A value above its ceiling (`ceilings` of
/// server/get) is the error `CeilingExceeded`. Needs the scope `full`; test keys are refused.
#[crate::documented::path(
    post,
    path = "/api/v1/server/update",
    tag = "server",
    operation_id = "updateServer",
    request_body = UpdateServerIn,
    responses((status = 200, body = crate::documented::Answer<ServerOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ServerOut>, Failure> {
    let mut findings = Findings::default();
    let (if_version, change) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let changed = call.app.update_server_of_key(&call.caller, if_version, change).await;
    Success::with_warnings(changed.map(ServerOut::from).map_err(Failure::from), warnings)
}

/// Parses the request; `UpdateServerIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(Option<i64>, ServerChangeRequest), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let if_version = read_integer(&mut fields, "if_version", findings);
    let name = fields.text("name", findings).map(Cow::into_owned);
    let change = ServerChangeRequest { name, ..read_settings(&mut fields, findings) };
    fields.finish(findings);
    Ok((if_version, change))
}

/// Takes the settings of a server, except its name.
pub(crate) fn read_settings(fields: &mut Fields<'_>, findings: &mut Findings) -> ServerChangeRequest {
    let mut change = read_settings_with_ceilings(fields, findings);
    if let Some(mut tracking) = fields.object("tracking", findings) {
        change.track_opens = tracking.flag("opens", findings);
        change.track_clicks = tracking.flag("clicks", findings);
        change.track_excluded_hosts =
            tracking.array("excluded_hosts", EXCLUDED_HOSTS_MAX, findings).map(|hosts| {
                let texts = hosts.into_iter().map(|(pointer, host)| expect_text(&pointer, host, findings));
                texts.flatten().map(Cow::into_owned).collect()
            });
        tracking.finish(findings);
    }
    change
}

/// Takes the settings that have ceilings; also the ceilings themselves, whose fields have the same names.
pub(crate) fn read_settings_with_ceilings(
    fields: &mut Fields<'_>,
    findings: &mut Findings,
) -> ServerChangeRequest {
    let mut change = ServerChangeRequest {
        mode: fields.text("mode", findings).map(Cow::into_owned),
        send_rate: read_rate(fields, findings),
        hourly_limit: read_number_or_none(fields, "hourly_limit", findings),
        ..ServerChangeRequest::default()
    };
    (change.bodies_days, change.messages_days) = read_retention(fields, findings);
    change
}

/// Takes `send_rate`; `none` removes the rate.
pub(crate) fn read_rate(fields: &mut Fields<'_>, findings: &mut Findings) -> Change<String> {
    match fields.text("send_rate", findings) {
        None => Change::Keep,
        Some(rate) if rate == NO_LIMIT => Change::Clear,
        Some(rate) => Change::Set(rate.into_owned()),
    }
}

/// Takes `retention`: days for the bodies of messages, and for messages with all their data.
pub(crate) fn read_retention(fields: &mut Fields<'_>, findings: &mut Findings) -> (Change<i64>, Change<i64>) {
    let Some(mut retention) = fields.object("retention", findings) else { return Default::default() };
    let bodies = read_number_or_none(&mut retention, "bodies_days", findings);
    let messages = read_number_or_none(&mut retention, "messages_days", findings);
    retention.finish(findings);
    (bodies, messages)
}

/// Takes a number, or `none`, which removes the value.
pub(crate) fn read_number_or_none(
    fields: &mut Fields<'_>,
    name: &'static str,
    findings: &mut Findings,
) -> Change<i64> {
    match fields.take(name, findings) {
        None => Change::Keep,
        // A number out of range becomes -1, which `app` refuses.
        Some(Json::Number(number)) if !number.is_float() => Change::Set(number.as_i64().unwrap_or(-1)),
        Some(Json::Text(text)) if text == NO_LIMIT => Change::Clear,
        Some(other) => {
            findings.wrong_type(&fields.pointer(name), "Integer", other.type_name());
            Change::Keep
        }
    }
}
