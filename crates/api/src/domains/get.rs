//! domains/get: one domain with its records.

use postroad_app::access::Operation;
use postroad_app::domains::NamedOwner;
use postroad_openapi_macros::request_fields;

use super::domain_out::DomainOut;
use super::shared_params::{read_name, read_owner};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The domain by name, and its owner.
#[request_fields]
#[schema(example = json!({"name": "example.com"}))]
pub(crate) struct DomainNameIn {
    /// Name of the domain, such as `example.com`.
    name: String,
    /// With an account's or the operator's key: id of the server whose domain it is; if left out, it is a domain of the
    /// account itself.
    server: Option<i64>,
    /// Id of the account, with the operator's key.
    account: Option<i64>,
}

/// Get a domain
///
/// With a server's key, or with `server`: the server's own domain, or one of its account. Otherwise the account's own
/// domain. Another account's domain is reported as unknown.
#[crate::documented::path(
    post,
    path = "/api/v1/domains/get",
    tag = "domains",
    operation_id = "getDomain",
    request_body = DomainNameIn,
    responses((status = 200, body = crate::documented::Answer<DomainOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<DomainOut>, Failure> {
    let mut findings = Findings::default();
    let (owner, name) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.find_domain_as(&call.caller, owner, &name, Operation::DomainsGet).await;
    let found = found.map_err(Failure::from);
    Success::with_warnings(found.map(DomainOut::from), warnings)
}

/// Parses the request; `DomainNameIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(NamedOwner, String), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let name = read_name(&mut fields, findings);
    let owner = read_owner(&mut fields, findings);
    fields.finish(findings);
    Ok((owner, name))
}
