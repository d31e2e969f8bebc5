//! domains/create: a domain to send from, and the records it needs.

use postroad_app::domains::ImportedDkimKey;
use utoipa::ToSchema;

use super::domain_out::DomainOut;
use super::shared_params::{read_key, read_name};
use crate::endpoint::Call;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// A domain to be.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"name": "example.com"}))]
#[expect(
    dead_code,
    reason = "the shape for the OpenAPI document; a test compares its names with the reader's"
)]
pub(crate) struct CreateDomainIn {
    name: String,
    /// A DKIM key of your own (PEM, PKCS #1 or PKCS #8; RSA of 2048 bits or more, or Ed25519). One is made if left out.
    private_key: Option<String>,
    /// The selector of the DKIM key's record. One is made up if left out.
    selector: Option<String>,
    /// Of the key that is made: `rsa` (if left out) or `ed25519`, for a second signature beside the RSA one.
    algorithm: Option<String>,
}

/// Add a domain
///
/// Publish the `records` of the answer; the domain is verified by itself soon after, or at once by domains/verify.
#[utoipa::path(
    post,
    path = "/api/v1/domains/create",
    tag = "domains",
    operation_id = "createDomain",
    request_body = CreateDomainIn,
    responses((status = 200, body = Answer<DomainOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<DomainOut>, Failure> {
    let mut findings = Findings::default();
    let (name, key) = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let created = call.app.create_domain(&call.caller, &name, key).await.map_err(Failure::from);
    Success::with_warnings(created.map(DomainOut::from), warnings)
}

/// The fields of the request; their names are those of `CreateDomainIn`.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(String, ImportedDkimKey), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let name = read_name(&mut fields, findings);
    let key = read_key(&mut fields, findings);
    fields.finish(findings);
    Ok((name, key))
}
