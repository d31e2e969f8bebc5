//! Link to a domain's records for the DNS administrator. A signed-in person creates the link; anybody who has the link
//! can open it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::REFERRER_POLICY;
use postroad_app::access::Operation;
use postroad_app::domains::{DomainRefusal, SharedDomain};
use postroad_model::{DomainLinkId, DomainName};

use super::one::{NewLink, page_of};
use super::records::{RecordRow, record_row};
use crate::answer::{Answer, download, page};
use crate::assets;
use crate::display::When;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::state::PortalState;
use crate::visit::Form;

#[derive(Template)]
#[template(path = "domains/shared.html")]
struct SharedPage {
    style: String,
    script: String,
    icon: String,
    name: String,
    /// Whether every required record is published. The operator may have verified the domain without these records.
    is_complete: bool,
    records: Vec<RecordRow>,
    checked_at: Option<When>,
    until: When,
    zone: String,
}

pub(super) async fn create(Path((server, name)): Path<(i64, String)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::DomainsShare).await?;
    let (token, link) = form.visit.app().share_domain(&caller.requester(), (&caller).into(), &name).await?;
    let url = format!("{}/dns/{token}", form.visit.base_url);
    page_of(&form.visit, server, &name, Some(NewLink { url, until: When(link.expires_at) })).await
}

pub(super) async fn revoke(Path((server, name)): Path<(i64, String)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::DomainsUnshare).await?;
    let id = DomainLinkId(form.fields.number("link").unwrap_or_default());
    form.visit.app().unshare_domain(&caller.requester(), (&caller).into(), &name, id).await?;
    let name = DomainName::parse(&name).map_err(|_| Problem::NotFound)?;
    Ok(see_other(&format!("/servers/{server}/domains/{name}?done=unshared")))
}

pub(super) async fn show(State(state): State<Arc<PortalState>>, Path(token): Path<String>) -> Answer {
    let SharedDomain { view, expires_at } = find(&state, &token).await?;
    let domain = view.domain;
    let records: Vec<RecordRow> = view.records.into_iter().map(record_row).collect();
    let mut response = page(&SharedPage {
        style: assets::style_path(),
        script: assets::script_path(),
        icon: assets::icon_path(),
        name: domain.name.to_string(),
        is_complete: records.iter().all(|record| !record.is_required || record.tone == "good"),
        records,
        checked_at: domain.checked_at.map(When),
        until: When(expires_at),
        zone: format!("/dns/{token}/zone"),
    })?;
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

pub(super) async fn zone(State(state): State<Arc<PortalState>>, Path(token): Path<String>) -> Answer {
    let view = find(&state, &token).await?.view;
    Ok(download("text/plain; charset=utf-8", &format!("{}.zone", view.domain.name), view.zone()))
}

async fn find(state: &PortalState, token: &str) -> Result<SharedDomain, Problem> {
    state.app.find_shared_domain(token).await.map_err(|refusal| match refusal {
        DomainRefusal::NotFound => Problem::DeadLink,
        other => other.into(),
    })
}
