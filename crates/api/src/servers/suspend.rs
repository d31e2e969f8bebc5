//! servers/suspend: suspend a server.

use postroad_model::ServerId;
use postroad_openapi_macros::request_fields;

use super::account_server_out::AccountServerOut;
use crate::account_params::{read_required_id, read_required_text};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The server, and the reason.
#[request_fields]
#[schema(example = json!({"id": 12, "reason": "unpaid"}))]
pub(crate) struct SuspendServerIn {
    /// Id of the server.
    id: i64,
    /// Up to 500 characters; stored with the suspension.
    reason: String,
}

/// Suspend one server
///
/// Its keys are refused. Messages that were accepted earlier wait until the server is resumed.
#[crate::documented::path(
    post,
    path = "/api/v1/servers/suspend",
    tag = "servers",
    operation_id = "suspendServer",
    request_body = SuspendServerIn,
    responses((status = 200, body = crate::documented::Answer<AccountServerOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountServerOut>, Failure> {
    let mut findings = Findings::default();
    let (id, reason) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call
        .app
        .set_server_suspension_as(&call.caller, ServerId(id), Some(reason))
        .await
        .map_err(Failure::from);
    Success::with_warnings(done.map(AccountServerOut::from), warnings)
}

/// Parses the request; `SuspendServerIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(i64, String), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_required_id(&mut fields, "id", findings);
    let reason = read_required_text(&mut fields, "reason", findings);
    fields.finish(findings);
    Ok((id, reason))
}
