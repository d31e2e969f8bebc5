//! domains/create: add a domain to send from; the answer has the records to publish.

use postroad_app::accounts::CreationKey;
use postroad_app::domains::{DkimKeyRequest, NamedOwner};
use postroad_model::LimitedObject;
use postroad_openapi_macros::request_fields;

use super::domain_out::DomainOut;
use super::shared_params::{read_dkim_key, read_name, read_owner};
use crate::account_params::{creation_answer, read_idempotency_key};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

/// Fields of a new domain.
#[request_fields]
#[schema(example = json!({"name": "example.com"}))]
pub(crate) struct CreateDomainIn {
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
    /// With an account's or the operator's key: id of the server that gets the domain; if left out, all servers of the
    /// account get it.
    server: Option<i64>,
    /// Id of the account, with the operator's key.
    account: Option<i64>,
    /// Alternative to the header Idempotency-Key.
    idempotency_key: Option<String>,
}

/// Add a domain
///
/// Publish the `records` of the answer. The domain is verified automatically soon after, or at once with
/// domains/verify.
#[crate::documented::path(
    post,
    path = "/api/v1/domains/create",
    tag = "domains",
    operation_id = "createDomain",
    request_body = CreateDomainIn,
    responses((status = 200, body = crate::documented::Answer<DomainOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<DomainOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call, &mut findings)?;
    let mut warnings = findings.reject_problems()?;
    let CreateParams { owner, name, key, creation } = request;
    let created = call.app.create_domain_as(&call.caller, owner, &name, key, creation).await?;
    let account_id = created.value.domain.account_id;
    warnings.extend(call.app.ceiling_warning(account_id, LimitedObject::Domains).await);
    Ok(creation_answer(created, DomainOut::from, warnings))
}

struct CreateParams {
    owner: NamedOwner,
    name: String,
    key: DkimKeyRequest,
    creation: Option<CreationKey>,
}

/// Parses the request; `CreateDomainIn` documents its fields.
fn read(call: &AccountCall, findings: &mut Findings) -> Result<CreateParams, Failure> {
    let object = json::parse_object(&call.body)?;
    let fingerprint = idempotency::fingerprint(&call.headers, "domains/create", &object);
    let mut fields = Fields::of_request(object);
    let name = read_name(&mut fields, findings);
    let key = read_dkim_key(&mut fields, findings);
    let owner = read_owner(&mut fields, findings);
    let creation = read_idempotency_key(&call.headers, &mut fields, fingerprint, findings);
    fields.finish(findings);
    Ok(CreateParams { owner, name, key, creation })
}
