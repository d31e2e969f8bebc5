//! ip_pools/create: a new pool.

use axum::http::HeaderMap;
use postroad_app::ip_pools::NewPoolRequest;
use postroad_openapi_macros::request_fields;

use super::pool_out::PoolOut;
use crate::account_params::{creation_answer, read_account, read_idempotency_key, read_required_text};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

/// Fields of a new pool.
#[request_fields]
#[schema(example = json!({"name": "dedicated-1", "account": 3}))]
pub(crate) struct CreatePoolIn {
    /// Unique; must not consist of digits only.
    name: String,
    /// Whether it is the shared pool: for servers without a pool of their own, and for messages that a warming address
    /// may not take. There is only one.
    shared: Option<bool>,
    /// Id of the account that the pool is reserved for: its keys may see the pool and control the warm-up of its
    /// addresses.
    account: Option<i64>,
    /// Alternative to the header Idempotency-Key.
    idempotency_key: Option<String>,
}

/// Create a pool
///
/// For the operator. Servers use it once the pool is assigned to them.
#[crate::documented::path(
    post,
    path = "/api/v1/ip_pools/create",
    tag = "ip_pools",
    operation_id = "createIpPool",
    request_body = CreatePoolIn,
    responses((status = 200, body = crate::documented::Answer<PoolOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<PoolOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.headers, &call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let created = call.app.create_ip_pool(&call.caller, request).await?;
    Ok(creation_answer(created, PoolOut::from, warnings))
}

/// Parses the request; `CreatePoolIn` documents its fields.
pub(crate) fn read(
    headers: &HeaderMap,
    text: &[u8],
    findings: &mut Findings,
) -> Result<NewPoolRequest, Failure> {
    let object = json::parse_object(text)?;
    let fingerprint = idempotency::fingerprint(headers, "ip_pools/create", &object);
    let mut fields = Fields::of_request(object);
    let name = read_required_text(&mut fields, "name", findings);
    let shared = fields.flag("shared", findings).unwrap_or(false);
    let account = read_account(&mut fields, findings);
    let idempotency_key = read_idempotency_key(headers, &mut fields, fingerprint, findings);
    fields.finish(findings);
    Ok(NewPoolRequest { name, shared, account, idempotency_key })
}
