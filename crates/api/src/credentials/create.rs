//! credentials/create: a new API key and secret of a server.

use postroad_app::accounts::NewCredentialRequest;
use postroad_model::{Scope, ServerId};
use postroad_openapi_macros::request_fields;

use super::credential_out::NewCredentialOut;
use crate::account_params::{
    creation_answer, read_idempotency_key, read_networks, read_required_id, read_required_text,
};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

/// Fields of a new credential.
#[request_fields]
#[schema(example = json!({"server": 12, "name": "web shop", "scope": "send"}))]
pub(crate) struct CreateCredentialIn {
    /// Id of the server.
    server: i64,
    /// Name shown to people; 1 to 100 characters.
    name: String,
    /// `full` (if left out), `send` or `read`.
    scope: Option<String>,
    /// Everything sent with it is in test mode.
    test: Option<bool>,
    /// Everything sent with it is held.
    hold: Option<bool>,
    /// Addresses and networks it may be used from; the calling key's if left out.
    allow: Option<Vec<String>>,
    /// RFC 3339. If it is left out or later than the calling key's expiry, that expiry applies.
    expires_at: Option<String>,
    /// Alternative to the header Idempotency-Key.
    idempotency_key: Option<String>,
}

/// Create a credential
///
/// Key and secret are shown only in this answer. With an idempotency key, a repetition within 24 hours returns the
/// credential that the first call created, without key and secret.
#[crate::documented::path(
    post,
    path = "/api/v1/credentials/create",
    tag = "credentials",
    operation_id = "createCredential",
    request_body = CreateCredentialIn,
    responses((status = 200, body = crate::documented::Answer<NewCredentialOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<NewCredentialOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let credential = call.app.create_credential(&call.caller, request).await?;
    Ok(creation_answer(credential, NewCredentialOut::from, warnings))
}

/// Parses the request; `CreateCredentialIn` documents its fields.
fn read(call: &AccountCall, findings: &mut Findings) -> Result<NewCredentialRequest, Failure> {
    let object = json::parse_object(&call.body)?;
    let fingerprint = idempotency::fingerprint(&call.headers, "credentials/create", &object);
    let mut fields = Fields::of_request(object);
    let server = ServerId(read_required_id(&mut fields, "server", findings));
    let name = read_required_text(&mut fields, "name", findings);
    let scope = fields.text("scope", findings);
    let scope = scope.map_or(Some(Scope::Full), |text| Scope::parse(&text));
    // Only the command line creates keys with the scope `address`, which have no secret.
    let scope = scope.filter(|scope| *scope != Scope::Address).unwrap_or_else(|| {
        findings.problem("/scope", "`scope` should be `full`, `send` or `read`");
        Scope::Full
    });
    let test = fields.flag("test", findings).unwrap_or(false);
    let hold = fields.flag("hold", findings).unwrap_or(false);
    let allow = read_networks(&mut fields, findings).unwrap_or_default();
    let expires_at = fields.time("expires_at", findings);
    let idempotency_key = read_idempotency_key(&call.headers, &mut fields, fingerprint, findings);
    fields.finish(findings);
    // Only the command line can set a login.
    let login = None;
    Ok(NewCredentialRequest { server, name, scope, test, hold, allow, expires_at, login, idempotency_key })
}
