//! ip_pools/delete: delete an unused pool.

use super::get::read;
use super::pool_out::PoolOut;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Delete a pool
///
/// For the operator. `IpPoolInUse` while it has addresses or servers use it. Returns the deleted pool.
#[crate::documented::path(
    post,
    path = "/api/v1/ip_pools/delete",
    tag = "ip_pools",
    operation_id = "deleteIpPool",
    request_body = super::get::PoolIdIn,
    responses((status = 200, body = crate::documented::Answer<PoolOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<PoolOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let deleted = call.app.delete_ip_pool(&call.caller, id).await.map_err(Failure::from);
    Success::with_warnings(deleted.map(PoolOut::from), warnings)
}
