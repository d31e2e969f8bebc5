//! credentials/get: one credential.

use postroad_model::CredentialId;
use postroad_openapi_macros::request_fields;

use super::credential_out::CredentialOut;
use crate::account_params::read_required_id;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Id of the credential.
#[request_fields]
#[schema(example = json!({"id": 12}))]
pub(crate) struct CredentialIdIn {
    /// Id of the credential.
    id: i64,
}

/// Get a credential
///
/// Without key and secret, which are shown only when they are created.
#[crate::documented::path(
    post,
    path = "/api/v1/credentials/get",
    tag = "credentials",
    operation_id = "getCredential",
    request_body = CredentialIdIn,
    responses((status = 200, body = crate::documented::Answer<CredentialOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<CredentialOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.find_credential_as(&call.caller, CredentialId(id)).await.map_err(Failure::from);
    Success::with_warnings(found.map(CredentialOut::from), warnings)
}

/// Parses the request; `CredentialIdIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<i64, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_required_id(&mut fields, "id", findings);
    fields.finish(findings);
    Ok(id)
}
