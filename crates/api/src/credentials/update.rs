//! credentials/update: change a credential.

use postroad_app::accounts::CredentialChangeRequest;
use postroad_model::{Change, CredentialId, Timestamp};
use postroad_openapi_macros::request_fields;

use super::credential_out::CredentialOut;
use crate::account_params::{read_integer, read_networks, read_required_id};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

const EXPIRES_AT: &str = "expires_at";
/// `null` means absent, so this word removes the expiry.
const NO_EXPIRY: &str = "none";

/// Settings to change; omitted ones stay as they are.
#[request_fields]
#[schema(example = json!({"id": 12, "if_version": 1, "allow": ["192.0.2.0/24"]}))]
pub(crate) struct UpdateCredentialIn {
    /// Id of the credential.
    id: i64,
    /// Change it only if this is its `version`; else `VersionConflict`.
    if_version: Option<i64>,
    /// Name shown to people; 1 to 100 characters.
    name: Option<String>,
    /// Replaces the current list; empty for all networks.
    allow: Option<Vec<String>>,
    /// Everything sent with it is held.
    hold: Option<bool>,
    /// RFC 3339; `none` for no expiry.
    expires_at: Option<String>,
}

/// Change a credential
///
/// The error `CredentialEnded` means that the credential is revoked, or that it was rotated and you set a new expiry. A
/// calling key that is limited to some networks, or that expires, cannot set wider limits than its own.
#[crate::documented::path(
    post,
    path = "/api/v1/credentials/update",
    tag = "credentials",
    operation_id = "updateCredential",
    request_body = UpdateCredentialIn,
    responses((status = 200, body = crate::documented::Answer<CredentialOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<CredentialOut>, Failure> {
    let mut findings = Findings::default();
    let (id, request) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.update_credential(&call.caller, id, request).await.map_err(Failure::from);
    Success::with_warnings(done.map(CredentialOut::from), warnings)
}

/// Parses the request; `UpdateCredentialIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(CredentialId, CredentialChangeRequest), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = CredentialId(read_required_id(&mut fields, "id", findings));
    let request = CredentialChangeRequest {
        if_version: read_integer(&mut fields, "if_version", findings),
        name: fields.text("name", findings).map(Into::into),
        allow: read_networks(&mut fields, findings),
        hold: fields.flag("hold", findings),
        expires_at: read_expiry(&mut fields, findings),
    };
    fields.finish(findings);
    Ok((id, request))
}

fn read_expiry(fields: &mut Fields<'_>, findings: &mut Findings) -> Change<Timestamp> {
    let Some(text) = fields.text(EXPIRES_AT, findings) else { return Change::Keep };
    if text == NO_EXPIRY {
        return Change::Clear;
    }
    let moment = Timestamp::parse_rfc3339(&text);
    if moment.is_none() {
        let message = "`expires_at` should be a time such as 2026-11-15T12:00:00Z (RFC 3339), or `none`";
        findings.problem(fields.pointer(EXPIRES_AT), message);
    }
    moment.map_or(Change::Keep, Change::Set)
}
