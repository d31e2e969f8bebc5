//! ip_pools/update_address: change the HELO name and weight of an address.

use std::borrow::Cow;
use std::net::IpAddr;

use postroad_app::ip_pools::AddressChange;
use postroad_openapi_macros::request_fields;

use super::pool_out::PoolOut;
use super::shared_params::{read_address, read_weight};
use crate::account_params::read_integer;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The address, and its changes.
#[request_fields]
#[schema(example = json!({"address": "192.0.2.1", "weight": 10}))]
pub(crate) struct UpdateAddressIn {
    /// IPv4 or IPv6 address of a pool.
    address: String,
    /// Change it only if this is its `version`; else `VersionConflict`.
    if_version: Option<i64>,
    /// HELO name; its PTR record should match.
    helo: Option<String>,
    /// Its share of the pool's mail, 1 to 1000.
    weight: Option<u32>,
}

/// Change an address of a pool
///
/// For the operator. Returns the pool.
#[crate::documented::path(
    post,
    path = "/api/v1/ip_pools/update_address",
    tag = "ip_pools",
    operation_id = "updateIpPoolAddress",
    request_body = UpdateAddressIn,
    responses((status = 200, body = crate::documented::Answer<PoolOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<PoolOut>, Failure> {
    let mut findings = Findings::default();
    let (address, change) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let updated = call.app.update_pool_address(&call.caller, address, change).await.map_err(Failure::from);
    Success::with_warnings(updated.map(PoolOut::from), warnings)
}

/// Parses the request; `UpdateAddressIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(IpAddr, AddressChange), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let address = read_address(&mut fields, findings);
    let if_version = read_integer(&mut fields, "if_version", findings);
    let helo = fields.text("helo", findings).map(Cow::into_owned);
    let weight = read_weight(&mut fields, findings);
    fields.finish(findings);
    Ok((address, AddressChange { if_version, helo, weight }))
}
