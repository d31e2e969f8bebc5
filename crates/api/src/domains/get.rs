//! domains/get: one domain with its records.

use utoipa::ToSchema;

use super::domain_out::DomainOut;
use super::shared_params::read_name;
use crate::endpoint::Call;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Which domain.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"name": "example.com"}))]
#[expect(
    dead_code,
    reason = "the shape for the OpenAPI document; a test compares its names with the reader's"
)]
pub(crate) struct DomainNameIn {
    name: String,
}

/// Get a domain
///
/// The server's own, or one of its account. Another account's domain is an unknown one.
#[utoipa::path(
    post,
    path = "/api/v1/domains/get",
    tag = "domains",
    operation_id = "getDomain",
    request_body = DomainNameIn,
    responses((status = 200, body = Answer<DomainOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<DomainOut>, Failure> {
    let mut findings = Findings::default();
    let name = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let found = call.app.find_domain(&call.caller, &name).await.map_err(Failure::from);
    Success::with_warnings(found.map(DomainOut::from), warnings)
}

/// The fields of the request; their names are those of `DomainNameIn`.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<String, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let name = read_name(&mut fields, findings);
    fields.finish(findings);
    Ok(name)
}
