//! credentials/rotate: a new key and secret to replace the old ones.

use std::time::Duration;

use postroad_model::CredentialId;
use postroad_openapi_macros::request_fields;

use super::credential_out::NewCredentialOut;
use crate::account_params::{read_integer, read_required_id};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Grace period if none is requested: a day.
const GRACE_DEFAULT_S: i64 = 24 * 3_600;

/// The credential, and how long the old key stays valid.
#[request_fields]
#[schema(example = json!({"id": 12, "grace_s": 86400}))]
pub(crate) struct RotateCredentialIn {
    /// Id of the credential.
    id: i64,
    /// How long the old key stays valid, in seconds: at most 30 days, and a day if left out.
    grace_s: Option<i64>,
}

/// Rotate a credential
///
/// Creates a credential with the same rights; the old one stays valid for the grace period. If the calling key is
/// limited to networks, a credential without networks gets those of the calling key, and one with other networks is
/// refused. The new credential expires no later than the calling key.
#[crate::documented::path(
    post,
    path = "/api/v1/credentials/rotate",
    tag = "credentials",
    operation_id = "rotateCredential",
    request_body = RotateCredentialIn,
    responses((status = 200, body = crate::documented::Answer<NewCredentialOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<NewCredentialOut>, Failure> {
    let mut findings = Findings::default();
    let (id, grace) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.rotate_credential_as(&call.caller, id, grace).await.map_err(Failure::from);
    Success::with_warnings(done.map(NewCredentialOut::from), warnings)
}

/// Parses the request; `RotateCredentialIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(CredentialId, Duration), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = CredentialId(read_required_id(&mut fields, "id", findings));
    let seconds = read_integer(&mut fields, "grace_s", findings).unwrap_or(GRACE_DEFAULT_S);
    if seconds < 0 {
        findings.problem("/grace_s", "`grace_s` should not be negative");
    }
    let grace = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    fields.finish(findings);
    Ok((id, grace))
}
