//! servers/delete: delete a server.

use postroad_model::ServerId;

use super::account_server_out::AccountServerOut;
use super::get::read;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Delete a server
///
/// Its keys stop working at once. Until `delete_at`, seven days later, servers/restore can restore it.
#[crate::documented::path(
    post,
    path = "/api/v1/servers/delete",
    tag = "servers",
    operation_id = "deleteServer",
    request_body = super::get::ServerIdIn,
    responses((status = 200, body = crate::documented::Answer<AccountServerOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountServerOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.delete_server(&call.caller, ServerId(id)).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountServerOut::from), warnings)
}
