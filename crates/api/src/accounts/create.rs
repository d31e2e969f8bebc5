//! accounts/create: create an account.

use postroad_app::accounts::CreationKey;
use postroad_openapi_macros::request_fields;

use super::account_out::AccountOut;
use crate::account_params::{creation_answer, read_idempotency_key, read_required_text};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

/// Fields of a new account.
#[request_fields]
#[schema(example = json!({"name": "acme"}))]
pub(crate) struct CreateAccountIn {
    /// Unique; must not consist of digits only.
    name: String,
    /// Alternative to the header Idempotency-Key.
    idempotency_key: Option<String>,
}

/// Create an account
///
/// With an idempotency key, a repetition within 24 hours returns the account that the first call created.
#[crate::documented::path(
    post,
    path = "/api/v1/accounts/create",
    tag = "accounts",
    operation_id = "createAccount",
    request_body = CreateAccountIn,
    responses((status = 200, body = crate::documented::Answer<AccountOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountOut>, Failure> {
    let mut findings = Findings::default();
    let (name, key) = read(&call, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let created = call.app.create_account_as(&call.caller, &name, key.as_ref()).await?;
    Ok(creation_answer(created, AccountOut::from, warnings))
}

/// Parses the request; `CreateAccountIn` documents its fields.
fn read(call: &AccountCall, findings: &mut Findings) -> Result<(String, Option<CreationKey>), Failure> {
    let object = json::parse_object(&call.body)?;
    let fingerprint = idempotency::fingerprint(&call.headers, "accounts/create", &object);
    let mut fields = Fields::of_request(object);
    let name = read_required_text(&mut fields, "name", findings);
    let key = read_idempotency_key(&call.headers, &mut fields, fingerprint, findings);
    fields.finish(findings);
    Ok((name, key))
}
