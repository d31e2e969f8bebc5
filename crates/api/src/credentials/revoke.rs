//! credentials/revoke: revoke a credential.

use postroad_model::CredentialId;

use super::credential_out::CredentialOut;
use super::get::read;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Revoke a credential
///
/// Takes effect at once on this node and within two seconds on others, for HTTP and SMTP. Revoking again changes nothing.
#[crate::documented::path(
    post,
    path = "/api/v1/credentials/revoke",
    tag = "credentials",
    operation_id = "revokeCredential",
    request_body = super::get::CredentialIdIn,
    responses((status = 200, body = crate::documented::Answer<CredentialOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<CredentialOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.revoke_credential_as(&call.caller, CredentialId(id)).await.map_err(Failure::from);
    Success::with_warnings(done.map(CredentialOut::from), warnings)
}
