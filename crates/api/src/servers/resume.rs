//! servers/resume: lift the suspension of a server.

use postroad_model::ServerId;

use super::account_server_out::AccountServerOut;
use super::get::read;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Resume a server
///
/// Lifts a suspension of the server. A suspension of its account stays.
#[crate::documented::path(
    post,
    path = "/api/v1/servers/resume",
    tag = "servers",
    operation_id = "resumeServer",
    request_body = super::get::ServerIdIn,
    responses((status = 200, body = crate::documented::Answer<AccountServerOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountServerOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done =
        call.app.set_server_suspension_as(&call.caller, ServerId(id), None).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountServerOut::from), warnings)
}
