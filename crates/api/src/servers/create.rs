//! servers/create: a new server of the account.

use axum::http::HeaderMap;
use postroad_app::accounts::NewServerRequest;
use postroad_model::{LimitedObject, PoolId, ServerMode};
use postroad_openapi_macros::request_fields;

use super::account_server_out::AccountServerOut;
use crate::account_params::{
    creation_answer, read_account, read_idempotency_key, read_integer, read_required_text,
};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

/// Fields of a new server.
#[request_fields]
#[schema(example = json!({"name": "shop", "mode": "live"}))]
pub(crate) struct CreateServerIn {
    /// Unique in the account; must not consist of digits only.
    name: String,
    /// `live` (if left out), or `development`: accepts mail like a live server and holds all of it.
    mode: Option<String>,
    /// Id of the pool that its mail leaves from: a pool of the account or the shared pool; the shared pool if left out.
    ip_pool: Option<i64>,
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
    /// Alternative to the header Idempotency-Key.
    idempotency_key: Option<String>,
}

/// Create a server
///
/// With an idempotency key, a repetition within 24 hours returns the server that the first call created.
#[crate::documented::path(
    post,
    path = "/api/v1/servers/create",
    tag = "servers",
    operation_id = "createServer",
    request_body = CreateServerIn,
    responses((status = 200, body = crate::documented::Answer<AccountServerOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountServerOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.headers, &call.body, &mut findings)?;
    let mut warnings = findings.reject_problems()?;
    let created = call.app.create_server_as(&call.caller, request).await?;
    warnings.extend(call.app.ceiling_warning(created.value.account_id, LimitedObject::Servers).await);
    Ok(creation_answer(created, AccountServerOut::from, warnings))
}

/// Parses the request; `CreateServerIn` documents its fields.
pub(crate) fn read(
    headers: &HeaderMap,
    text: &[u8],
    findings: &mut Findings,
) -> Result<NewServerRequest, Failure> {
    let object = json::parse_object(text)?;
    let fingerprint = idempotency::fingerprint(headers, "servers/create", &object);
    let mut fields = Fields::of_request(object);
    let name = read_required_text(&mut fields, "name", findings);
    let mode = fields.text("mode", findings);
    let mode = mode.map_or(Some(ServerMode::Live), |text| ServerMode::parse(&text)).unwrap_or_else(|| {
        findings.problem("/mode", "`mode` should be `live` or `development`");
        ServerMode::Live
    });
    let pool = read_integer(&mut fields, "ip_pool", findings).map(PoolId);
    let account = read_account(&mut fields, findings);
    let idempotency_key = read_idempotency_key(headers, &mut fields, fingerprint, findings);
    fields.finish(findings);
    Ok(NewServerRequest { account, name, mode, pool, idempotency_key })
}
