//! One domain: the records to publish, the current DNS content, and the signing keys.

use askama::Template;
use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_app::domains::DomainView;
use postroad_store::{KeyAlgorithm, KeyState, VerifiedBy};

use super::records::{RecordRow, record_row};
use crate::answer::{Answer, download, page};
use crate::layout::{Layout, Section};
use crate::shown::When;
use crate::visit::Visit;

struct KeyRow {
    selector: String,
    algorithm: &'static str,
    state: &'static str,
    tone: &'static str,
    created_at: When,
}

#[derive(Template)]
#[template(path = "domains/one.html")]
struct DomainPage {
    layout: Layout,
    server: i64,
    name: String,
    is_verified: bool,
    is_by_operator: bool,
    failing_since: Option<When>,
    is_of_account: bool,
    checked_at: Option<When>,
    next_check_at: When,
    return_path: String,
    tracking_host: String,
    records: Vec<RecordRow>,
    keys: Vec<KeyRow>,
    /// A new link for the person who edits the DNS.
    new_link: Option<NewLink>,
    links: Vec<LinkRow>,
}

struct LinkRow {
    id: i64,
    created_at: When,
    expires_at: When,
}

pub(super) struct NewLink {
    pub(super) url: String,
    pub(super) until: When,
}

pub(super) async fn show(Path((server, name)): Path<(i64, String)>, visit: Visit) -> Answer {
    page_of(&visit, server, &name, None).await
}

pub(super) async fn page_of(visit: &Visit, server: i64, name: &str, new_link: Option<NewLink>) -> Answer {
    let caller = visit.caller(server, Operation::DomainsGet).await?;
    let view = visit.app().find_domain(&caller, name).await?;
    let (_, layout) = visit.server_layout(server, view.domain.name.as_str(), Section::Domains).await?;
    let links = visit.app().list_domain_links(&caller, name).await?;
    let links = links.iter().map(|link| LinkRow {
        id: link.id.0,
        created_at: When(link.created_at),
        expires_at: When(link.expires_at),
    });
    let links = links.collect();
    page(&DomainPage { new_link, links, ..domain_page(layout, server, view) })
}

pub(super) async fn zone(Path((server, name)): Path<(i64, String)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::DomainsZone).await?;
    let view = visit.app().find_domain(&caller, &name).await?;
    Ok(download("text/plain; charset=utf-8", &format!("{}.zone", view.domain.name), view.zone()))
}

fn domain_page(layout: Layout, server: i64, view: DomainView) -> DomainPage {
    let DomainView { domain, records, return_path, tracking_host } = view;
    let key = |key: &postroad_store::DomainKey| {
        let (state, tone) = match key.state {
            KeyState::Pending => ("Waiting for its record", "warn"),
            KeyState::Active => ("Signs", "good"),
            KeyState::Retiring => ("Retiring", "off"),
        };
        let algorithm = match key.algorithm {
            KeyAlgorithm::Rsa => "RSA",
            KeyAlgorithm::Ed25519 => "Ed25519",
        };
        KeyRow { selector: key.selector.clone(), algorithm, state, tone, created_at: When(key.created_at) }
    };
    DomainPage {
        layout,
        server,
        name: domain.name.to_string(),
        is_verified: domain.verified_by.is_some(),
        is_by_operator: domain.verified_by == Some(VerifiedBy::Operator),
        failing_since: domain.failing_since.map(When),
        is_of_account: domain.server_id.is_none(),
        checked_at: domain.checked_at.map(When),
        next_check_at: When(domain.next_check_at),
        return_path,
        tracking_host,
        records: records.into_iter().map(record_row).collect(),
        keys: domain.keys.iter().map(key).collect(),
        new_link: None,
        links: Vec::new(),
    }
}
