//! domains/delete: delete a domain.

use crate::documented::ToSchema;
use serde::Serialize;

use super::get::read;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// The deleted object.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedDomainOut {
    name: String,
    deleted: bool,
}

/// Delete a domain
///
/// Deletes the domain with its DKIM keys. Queued messages are then signed with the installation's key. A server's key,
/// or a call that names a server, cannot delete a domain of the account: `AccessDenied`.
#[crate::documented::path(
    post,
    path = "/api/v1/domains/delete",
    tag = "domains",
    operation_id = "deleteDomain",
    request_body = super::get::DomainNameIn,
    responses((status = 200, body = crate::documented::Answer<DeletedDomainOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<DeletedDomainOut>, Failure> {
    let mut findings = Findings::default();
    let (owner, name) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let deleted = call.app.delete_domain_as(&call.caller, owner, &name).await.map_err(Failure::from);
    Success::with_warnings(deleted.map(|()| DeletedDomainOut { name, deleted: true }), warnings)
}
