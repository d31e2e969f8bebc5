//! server/get: the settings of the key's server.

use super::server_out::ServerOut;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Get the server
///
/// The settings of the server that the key belongs to.
#[crate::documented::path(
    post,
    path = "/api/v1/server/get",
    tag = "server",
    operation_id = "getServer",
    responses((status = 200, body = crate::documented::Answer<ServerOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ServerOut>, Failure> {
    let mut findings = Findings::default();
    Fields::of_request(json::parse_object(&call.body)?).finish(&mut findings);
    let found = call.app.find_server_of_key(call.caller.server_id).await;
    Success::with_warnings(found.map(ServerOut::from).map_err(Failure::from), findings.reject_problems()?)
}
