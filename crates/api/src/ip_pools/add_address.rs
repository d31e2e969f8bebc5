//! ip_pools/add_address: add an address to a pool.

use axum::http::HeaderMap;
use postroad_app::ip_pools::NewAddress;
use postroad_model::PoolId;
use postroad_openapi_macros::request_fields;

use super::pool_out::PoolOut;
use super::shared_params::{read_address, read_weight};
use crate::account_params::{creation_answer, read_idempotency_key, read_required_id, read_required_text};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

/// Fields of a new address.
#[request_fields]
#[schema(example = json!({"pool": 2, "address": "192.0.2.1", "helo": "mta1.example.com", "warm_up": true}))]
pub(crate) struct AddAddressIn {
    /// Id of the pool.
    pool: i64,
    /// IPv4 or IPv6 address that a node can send from.
    address: String,
    /// HELO name; its PTR record should match.
    helo: String,
    /// Its share of the pool's mail, 1 to 1000; 1 if left out.
    weight: Option<u32>,
    /// Start with few messages a day and increase.
    warm_up: Option<bool>,
    /// Alternative to the header Idempotency-Key.
    idempotency_key: Option<String>,
}

/// Add an address to a pool
///
/// For the operator. Returns the pool.
#[crate::documented::path(
    post,
    path = "/api/v1/ip_pools/add_address",
    tag = "ip_pools",
    operation_id = "addIpPoolAddress",
    request_body = AddAddressIn,
    responses((status = 200, body = crate::documented::Answer<PoolOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<PoolOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.headers, &call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let added = call.app.add_pool_address(&call.caller, request).await?;
    Ok(creation_answer(added, PoolOut::from, warnings))
}

/// Parses the request; `AddAddressIn` documents its fields.
pub(crate) fn read(headers: &HeaderMap, text: &[u8], findings: &mut Findings) -> Result<NewAddress, Failure> {
    let object = json::parse_object(text)?;
    let fingerprint = idempotency::fingerprint(headers, "ip_pools/add_address", &object);
    let mut fields = Fields::of_request(object);
    let pool = PoolId(read_required_id(&mut fields, "pool", findings));
    let address = read_address(&mut fields, findings);
    let helo = read_required_text(&mut fields, "helo", findings);
    let weight = read_weight(&mut fields, findings).unwrap_or(1);
    let warm_up = fields.flag("warm_up", findings).unwrap_or(false);
    let idempotency_key = read_idempotency_key(headers, &mut fields, fingerprint, findings);
    fields.finish(findings);
    Ok(NewAddress { pool, address, helo, weight, warm_up, idempotency_key })
}
