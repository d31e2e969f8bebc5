//! servers/update: change the settings of a server, by its account or the operator.

use postroad_app::accounts::ServerUpdateRequest;
use postroad_model::{Change, PoolId, ServerId};
use postroad_openapi_macros::request_fields;

use super::account_server_out::AccountServerOut;
use crate::account_params::{read_integer, read_required_id};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::server_settings::{read_number_or_none, read_settings, read_settings_with_ceilings};

/// Settings to change; omitted ones stay as they are.
#[request_fields]
#[schema(example = json!({"id": 12, "if_version": 3, "hourly_limit": 5000}))]
pub(crate) struct UpdateAccountServerIn {
    /// Id of the server.
    id: i64,
    /// Change it only if this is its `version`; else `VersionConflict`.
    if_version: Option<i64>,
    /// Unique in the account; up to 100 characters, which must not all be digits.
    name: Option<String>,
    /// `live` or `development`
    mode: Option<String>,
    /// Such as `10/s`, `100/m` or `1000/h`; `none` for no limit.
    send_rate: Option<String>,
    /// Messages an hour; `"none"` for no limit.
    hourly_limit: Option<crate::server_settings::LimitIn>,
    /// What is tracked in HTML messages.
    tracking: Option<crate::server_settings::TrackingIn>,
    retention: Option<crate::server_settings::RetentionIn>,
    /// Id of the pool that its mail leaves from: a pool of the account or the shared pool; `"none"` for the shared pool. An
    /// account cannot change a pool that the operator set.
    ip_pool: Option<crate::server_settings::LimitIn>,
    ceilings: Option<CeilingsIn>,
}

/// The highest values that the server's keys may set. The operator's and the account's ceilings are stored separately; of
/// each two, the lower ceiling applies.
#[request_fields]
pub(crate) struct CeilingsIn {
    /// With `development`, only the operator or account that set it can make the server live. `live`: no ceiling.
    mode: Option<String>,
    /// Highest rate, such as `10/s`, `100/m` or `1000/h`; `none` for no ceiling.
    send_rate: Option<String>,
    /// Highest number of messages an hour; `"none"` for no ceiling.
    hourly_limit: Option<crate::server_settings::LimitIn>,
    retention: Option<crate::server_settings::RetentionIn>,
}

/// Change a server
///
/// Applies all given changes, or none if any is wrong. A value above its ceiling is the error
/// `CeilingExceeded`.
#[crate::documented::path(
    post,
    path = "/api/v1/servers/update",
    tag = "servers",
    operation_id = "updateAccountServer",
    request_body = UpdateAccountServerIn,
    responses((status = 200, body = crate::documented::Answer<AccountServerOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountServerOut>, Failure> {
    let mut findings = Findings::default();
    let (id, request) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.update_server_as(&call.caller, id, request).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountServerOut::from), warnings)
}

/// Parses the request; `UpdateAccountServerIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(ServerId, ServerUpdateRequest), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = ServerId(read_required_id(&mut fields, "id", findings));
    let if_version = read_integer(&mut fields, "if_version", findings);
    let mut change = read_settings(&mut fields, findings);
    change.name = fields.text("name", findings).map(Into::into);
    let pool = match read_number_or_none(&mut fields, "ip_pool", findings) {
        Change::Keep => Change::Keep,
        Change::Clear => Change::Clear,
        Change::Set(id) => Change::Set(PoolId(id)),
    };
    let ceilings = fields.object("ceilings", findings).map(|mut fields| {
        let ceilings = read_settings_with_ceilings(&mut fields, findings);
        fields.finish(findings);
        ceilings
    });
    fields.finish(findings);
    Ok((id, ServerUpdateRequest { if_version, change, pool, ceilings: ceilings.unwrap_or_default() }))
}
