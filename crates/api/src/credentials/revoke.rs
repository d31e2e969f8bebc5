//! credentials/revoke: end a credential.

use postroad_model::CredentialId;

use super::credential_out::CredentialOut;
use super::get::{CredentialIdIn, read};
use crate::endpoint::AccountCall;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::Findings;

/// Revoke a credential
///
/// At once, for HTTP and SMTP. Revoking again changes nothing.
#[utoipa::path(
    post,
    path = "/api/v1/credentials/revoke",
    tag = "credentials",
    operation_id = "revokeCredential",
    request_body = CredentialIdIn,
    responses((status = 200, body = Answer<CredentialOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<CredentialOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let done = call.app.revoke_credential_of(&call.caller, CredentialId(id)).await.map_err(Failure::from);
    Success::with_warnings(done.map(CredentialOut::from), warnings)
}
