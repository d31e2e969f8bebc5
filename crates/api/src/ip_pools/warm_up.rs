//! ip_pools/warm_up: start, pause, resume or end the warm-up of an address.

use std::net::IpAddr;

use postroad_app::ip_pools::WarmUpChange;
use postroad_openapi_macros::request_fields;

use super::pool_out::PoolOut;
use super::shared_params::read_address;
use crate::account_params::read_required_text;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The address, and the action.
#[request_fields]
#[schema(example = json!({"address": "192.0.2.1", "action": "pause"}))]
pub(crate) struct WarmUpIn {
    /// IPv4 or IPv6 address of a pool.
    address: String,
    /// `start` (from the first day), `pause`, `resume` (with the day of the plan on which it was paused), or `end` (the
    /// address is warm).
    action: String,
}

/// Control the warm-up of an address
///
/// With the operator's key, or a key of the account that the pool is reserved for. Returns the pool, whose addresses
/// show the state.
#[crate::documented::path(
    post,
    path = "/api/v1/ip_pools/warm_up",
    tag = "ip_pools",
    operation_id = "warmUpIpPoolAddress",
    request_body = WarmUpIn,
    responses((status = 200, body = crate::documented::Answer<PoolOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<PoolOut>, Failure> {
    let mut findings = Findings::default();
    let (address, change) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let changed = call.app.change_warm_up(&call.caller, address, change).await.map_err(Failure::from);
    Success::with_warnings(changed.map(PoolOut::from), warnings)
}

/// Parses the request; `WarmUpIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(IpAddr, WarmUpChange), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let address = read_address(&mut fields, findings);
    let is_absent = fields.is_absent("action");
    let action = read_required_text(&mut fields, "action", findings);
    let known = WarmUpChange::ALL.iter().find(|(name, _)| *name == action);
    if known.is_none() && !is_absent {
        findings.problem("/action", "`action` should be `start`, `pause`, `resume` or `end`");
    }
    fields.finish(findings);
    // `Resume` is a placeholder: the recorded problem makes the caller refuse the request.
    Ok((address, known.map_or(WarmUpChange::Resume, |(_, change)| *change)))
}
