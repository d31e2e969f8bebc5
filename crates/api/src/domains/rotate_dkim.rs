//! domains/rotate_dkim: a new DKIM key, which signs once its record is found.

use postroad_app::domains::{DkimKeyRequest, NamedOwner};
use postroad_openapi_macros::request_fields;

use super::domain_out::DomainOut;
use super::shared_params::{read_dkim_key, read_name, read_owner};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The domain, and its new key.
#[request_fields]
#[schema(example = json!({"name": "example.com"}))]
pub(crate) struct RotateDkimIn {
    /// Name of the domain, such as `example.com`.
    name: String,
    /// Your own DKIM key (PEM, PKCS #1 or PKCS #8; RSA of 1024 bits or more, better 2048, or Ed25519). Generated if
    /// left out.
    private_key: Option<String>,
    /// The selector of the DKIM key's record. Generated if left out.
    selector: Option<String>,
    /// Algorithm of a generated key: `rsa` (if left out), or `ed25519` for a second signature in addition to the RSA
    /// one.
    algorithm: Option<String>,
    /// With an account's or the operator's key: id of the server whose domain it is; if left out, it is a domain of the
    /// account itself.
    server: Option<i64>,
    /// Id of the account, with the operator's key.
    account: Option<i64>,
}

/// Give a domain a new DKIM key
///
/// The key is `pending` until its record is found; then it signs, and the previous one is `retiring` for a week. A
/// second pending key replaces the first.
#[crate::documented::path(
    post,
    path = "/api/v1/domains/rotate_dkim",
    tag = "domains",
    operation_id = "rotateDkim",
    request_body = RotateDkimIn,
    responses((status = 200, body = crate::documented::Answer<DomainOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<DomainOut>, Failure> {
    let mut findings = Findings::default();
    let (owner, name, key) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let rotated = call.app.rotate_dkim_as(&call.caller, owner, &name, key).await.map_err(Failure::from);
    Success::with_warnings(rotated.map(DomainOut::from), warnings)
}

/// Parses the request; `RotateDkimIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(NamedOwner, String, DkimKeyRequest), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let name = read_name(&mut fields, findings);
    let key = read_dkim_key(&mut fields, findings);
    let owner = read_owner(&mut fields, findings);
    fields.finish(findings);
    Ok((owner, name, key))
}
