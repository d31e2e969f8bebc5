//! account_keys/create: a new API key of the account.

use postroad_app::accounts::{AccountKeyRequest, CreationKey};
use postroad_model::{AccountId, AccountScope};
use postroad_openapi_macros::request_fields;

use super::account_key_out::NewAccountKeyOut;
use crate::account_params::{
    creation_answer, read_account, read_idempotency_key, read_networks, read_required_text,
};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings, expect_text};
use crate::{idempotency, json};

/// Maximum number of entries of `scopes` in a request; larger than the number of different scopes.
const SCOPES_MAX: usize = 30;

/// Fields of a new key.
#[request_fields]
#[schema(example = json!({"name": "terraform", "scopes": ["servers", "domains:read"]}))]
pub(crate) struct CreateAccountKeyIn {
    /// Name shown to people; 1 to 100 characters.
    name: String,
    /// `full`, `read`, groups such as `servers`, or `servers:read`; `full` if left out. Cannot exceed the scopes of the
    /// calling key.
    scopes: Option<Vec<String>>,
    /// Addresses and networks it may be used from; the calling key's if left out.
    allow: Option<Vec<String>>,
    /// RFC 3339. If it is left out or later than the calling key's expiry, that expiry applies.
    expires_at: Option<String>,
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
    /// Alternative to the header Idempotency-Key.
    idempotency_key: Option<String>,
}

/// Create an account key
///
/// The account key is shown only in this answer. With an idempotency key that was used before, the answer describes the
/// account key that the first call created, but `api_key` is null.
#[crate::documented::path(
    post,
    path = "/api/v1/account_keys/create",
    tag = "account_keys",
    operation_id = "createAccountKey",
    request_body = CreateAccountKeyIn,
    responses((status = 200, body = crate::documented::Answer<NewAccountKeyOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<NewAccountKeyOut>, Failure> {
    let mut findings = Findings::default();
    let (account, request, key) = read(&call, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let created = call.app.create_account_key_once(&call.caller, account, request, key.as_ref()).await?;
    Ok(creation_answer(created, NewAccountKeyOut::from, warnings))
}

/// Parses the request; `CreateAccountKeyIn` documents its fields.
fn read(
    call: &AccountCall,
    findings: &mut Findings,
) -> Result<(Option<AccountId>, AccountKeyRequest, Option<CreationKey>), Failure> {
    let object = json::parse_object(&call.body)?;
    let fingerprint = idempotency::fingerprint(&call.headers, "account_keys/create", &object);
    let mut fields = Fields::of_request(object);
    let name = read_required_text(&mut fields, "name", findings);
    let mut scopes = Vec::new();
    let entries = fields.array("scopes", SCOPES_MAX, findings).unwrap_or_default();
    if entries.len() > SCOPES_MAX {
        findings.problem("/scopes", format!("`scopes` may have at most {SCOPES_MAX} entries"));
    }
    for (pointer, entry) in entries {
        let Some(text) = expect_text(&pointer, entry, findings) else { continue };
        match text.parse::<AccountScope>() {
            Ok(scope) => scopes.push(scope),
            Err(problem) => findings.problem(pointer, problem),
        }
    }
    let allow = read_networks(&mut fields, findings).unwrap_or_default();
    let expires_at = fields.time("expires_at", findings);
    let account = read_account(&mut fields, findings);
    let key = read_idempotency_key(&call.headers, &mut fields, fingerprint, findings);
    fields.finish(findings);
    Ok((account, AccountKeyRequest { name, scopes, allow, expires_at }, key))
}
