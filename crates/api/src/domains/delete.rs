//! domains/delete: send no more from a domain.

use serde::Serialize;
use utoipa::ToSchema;

use super::get::{DomainNameIn, read};
use crate::endpoint::AccountCall;
use crate::envelope::{Answer, Success};
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
/// With its DKIM keys. Messages under way are signed by the installation. A domain of the account is not deleted by a server's
/// key or by naming a server: `AccessDenied`.
#[utoipa::path(
    post,
    path = "/api/v1/domains/delete",
    tag = "domains",
    operation_id = "deleteDomain",
    request_body = DomainNameIn,
    responses((status = 200, body = Answer<DeletedDomainOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<DeletedDomainOut>, Failure> {
    let mut findings = Findings::default();
    let (owner, name) = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let deleted = call.app.delete_domain_by(&call.caller, owner, &name).await.map_err(Failure::from);
    Success::with_warnings(deleted.map(|()| DeletedDomainOut { name, deleted: true }), warnings)
}
