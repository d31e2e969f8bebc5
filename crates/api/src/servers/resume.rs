//! servers/resume: lift a suspension.

use postroad_model::ServerId;

use super::account_server_out::AccountServerOut;
use super::get::{ServerIdIn, read};
use crate::endpoint::AccountCall;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::Findings;

/// Resume a server
///
/// Lifts a suspension. An account's suspension stays.
#[utoipa::path(
    post,
    path = "/api/v1/servers/resume",
    tag = "servers",
    operation_id = "resumeServer",
    request_body = ServerIdIn,
    responses((status = 200, body = Answer<AccountServerOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountServerOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let done = call.app.suspend_server_of(&call.caller, ServerId(id), None).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountServerOut::from), warnings)
}
