//! credentials/update: change a credential.

use postroad_app::accounts::CredentialChangeRequest;
use postroad_model::{Change, CredentialId};
use postroad_request_shapes::request_shape;

use super::credential_out::CredentialOut;
use crate::account_params::{read_integer, read_networks, read_required_id, read_time};
use crate::endpoint::AccountCall;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Settings to change; omitted ones stay as they are.
#[request_shape]
#[schema(example = json!({"id": 12, "if_version": 1, "allow": ["192.0.2.0/24"]}))]
pub(crate) struct UpdateCredentialIn {
    id: i64,
    /// Change it only if this is its `version`; else `VersionConflict`.
    if_version: Option<i64>,
    name: Option<String>,
    /// Replaces the current list; empty for all networks.
    allow: Option<Vec<String>>,
    /// Everything sent with it is held.
    hold: Option<bool>,
    expires_at: Option<String>,
}

/// Change a credential
///
/// A revoked credential stays as it is: `CredentialEnded`.
#[utoipa::path(
    post,
    path = "/api/v1/credentials/update",
    tag = "credentials",
    operation_id = "updateCredential",
    request_body = UpdateCredentialIn,
    responses((status = 200, body = Answer<CredentialOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<CredentialOut>, Failure> {
    let mut findings = Findings::default();
    let (id, given) = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let done = call.app.update_credential(&call.caller, id, given).await.map_err(Failure::from);
    Success::with_warnings(done.map(CredentialOut::from), warnings)
}

/// Parses the request; `UpdateCredentialIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(CredentialId, CredentialChangeRequest), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = CredentialId(read_required_id(&mut fields, "id", findings));
    let given = CredentialChangeRequest {
        if_version: read_integer(&mut fields, "if_version", findings),
        name: fields.text("name", findings).map(Into::into),
        allow: read_networks(&mut fields, findings),
        hold: fields.flag("hold", findings),
        expires_at: read_time(&mut fields, "expires_at", findings).map_or(Change::Keep, Change::Set),
    };
    fields.finish(findings);
    Ok((id, given))
}
