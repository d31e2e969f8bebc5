//! servers/get: one server.

use postroad_model::ServerId;
use postroad_openapi_macros::request_fields;

use super::account_server_out::AccountServerOut;
use crate::account_params::read_required_id;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Id of the server.
#[request_fields]
#[schema(example = json!({"id": 12}))]
pub(crate) struct ServerIdIn {
    /// Id of the server.
    id: i64,
}

/// Get a server
///
/// With everything that server/get shows, and its state.
#[crate::documented::path(
    post,
    path = "/api/v1/servers/get",
    tag = "servers",
    operation_id = "getAccountServer",
    request_body = ServerIdIn,
    responses((status = 200, body = crate::documented::Answer<AccountServerOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountServerOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.find_server_as(&call.caller, ServerId(id)).await.map_err(Failure::from);
    Success::with_warnings(found.map(AccountServerOut::from), warnings)
}

/// Parses the request; `ServerIdIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<i64, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_required_id(&mut fields, "id", findings);
    fields.finish(findings);
    Ok(id)
}
