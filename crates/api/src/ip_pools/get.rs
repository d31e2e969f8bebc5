//! ip_pools/get: one pool with its addresses.

use postroad_app::access::Operation;
use postroad_model::PoolId;
use postroad_openapi_macros::request_fields;

use super::pool_out::PoolOut;
use crate::account_params::read_required_id;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Id of the pool.
#[request_fields]
#[schema(example = json!({"id": 2}))]
pub(crate) struct PoolIdIn {
    /// Id of the pool.
    id: i64,
}

/// Get a pool
///
/// With its addresses and their warm-up. An account sees its own pools, the shared pool, and pools that its servers use.
#[crate::documented::path(
    post,
    path = "/api/v1/ip_pools/get",
    tag = "ip_pools",
    operation_id = "getIpPool",
    request_body = PoolIdIn,
    responses((status = 200, body = crate::documented::Answer<PoolOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<PoolOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.find_ip_pool(&call.caller, Operation::IpPoolsGet, id).await.map_err(Failure::from);
    Success::with_warnings(found.map(PoolOut::from), warnings)
}

/// Parses the request; `PoolIdIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<PoolId, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_required_id(&mut fields, "id", findings);
    fields.finish(findings);
    Ok(PoolId(id))
}
