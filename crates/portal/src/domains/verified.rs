//! A verified domain of a server, for examples and for the steps of the server's set-up.

use postroad_app::Caller;
use postroad_app::domains::DomainListFilter;
use postroad_model::DomainName;

use crate::problem::Problem;
use crate::visit::Visit;

/// The oldest verified domain that the server may send from.
pub(crate) async fn find_verified_domain(
    visit: &Visit,
    caller: &Caller,
) -> Result<Option<DomainName>, Problem> {
    let listed = DomainListFilter { verified: Some(true), ..DomainListFilter::default() };
    let (found, _) = visit.app().list_domains_as(&caller.requester(), caller.into(), listed, None, 1).await?;
    Ok(found.into_iter().next().map(|view| view.domain.name))
}
