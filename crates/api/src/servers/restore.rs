//! servers/restore: restore a deleted server.

use postroad_model::ServerId;

use super::account_server_out::AccountServerOut;
use super::get::read;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Restore a server
///
/// A server that was deleted less than seven days ago. Its keys work again.
#[crate::documented::path(
    post,
    path = "/api/v1/servers/restore",
    tag = "servers",
    operation_id = "restoreServer",
    request_body = super::get::ServerIdIn,
    responses((status = 200, body = crate::documented::Answer<AccountServerOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountServerOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.restore_server(&call.caller, ServerId(id)).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountServerOut::from), warnings)
}
