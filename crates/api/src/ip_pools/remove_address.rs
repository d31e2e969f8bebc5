//! ip_pools/remove_address: remove an address from its pool.

use std::net::IpAddr;

use postroad_openapi_macros::request_fields;

use super::pool_out::PoolOut;
use super::shared_params::read_address;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The address.
#[request_fields]
#[schema(example = json!({"address": "192.0.2.1"}))]
pub(crate) struct AddressIn {
    /// IPv4 or IPv6 address of a pool.
    address: String,
}

/// Remove an address from its pool
///
/// For the operator. Also removes its history. Returns the pool.
#[crate::documented::path(
    post,
    path = "/api/v1/ip_pools/remove_address",
    tag = "ip_pools",
    operation_id = "removeIpPoolAddress",
    request_body = AddressIn,
    responses((status = 200, body = crate::documented::Answer<PoolOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<PoolOut>, Failure> {
    let mut findings = Findings::default();
    let address = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let removed = call.app.remove_pool_address(&call.caller, address).await.map_err(Failure::from);
    Success::with_warnings(removed.map(PoolOut::from), warnings)
}

/// Parses the request; `AddressIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<IpAddr, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let address = read_address(&mut fields, findings);
    fields.finish(findings);
    Ok(address)
}
