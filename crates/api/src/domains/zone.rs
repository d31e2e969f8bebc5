//! domains/zone: the records of a domain for a zone file.

use crate::documented::ToSchema;
use postroad_app::access::Operation;
use serde::Serialize;

use super::get::read;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ZoneOut {
    /// One line for each record, with complete names; records that are in place, not needed or not checked are
    /// comments.
    #[schema(example = "_dmarc.example.com. 3600 IN TXT \"v=DMARC1; p=none\"\n")]
    zone: String,
}

/// Get a domain's records as a zone file
///
/// A fragment for BIND and other programs that read zone files (RFC 1035). SPF and DMARC records are comments until the
/// existing ones were looked up: call domains/verify first.
#[crate::documented::path(
    post,
    path = "/api/v1/domains/zone",
    tag = "domains",
    operation_id = "getDomainZone",
    request_body = super::get::DomainNameIn,
    responses((status = 200, body = crate::documented::Answer<ZoneOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<ZoneOut>, Failure> {
    let mut findings = Findings::default();
    let (owner, name) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.find_domain_as(&call.caller, owner, &name, Operation::DomainsZone).await;
    let found = found.map_err(Failure::from);
    Success::with_warnings(found.map(|view| ZoneOut { zone: view.zone() }), warnings)
}
