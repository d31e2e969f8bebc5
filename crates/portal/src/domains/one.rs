//! One domain: the records to publish, the current DNS content, the signing keys, links to the records, and the
//! operator's settings.

use askama::Template;
use postroad_app::access::Operation;
use postroad_app::domains::DomainView;
use postroad_store::{DomainLink, KeyAlgorithm, KeyState, VerifiedBy};

use super::operator_form::OperatorForm;
use super::records::{RecordRow, record_row};
use crate::answer::{Answer, download, page};
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::viewed_account::ViewedAccount;
use crate::visit::Visit;

struct KeyRow {
    selector: String,
    algorithm: &'static str,
    state: &'static str,
    /// Class with the colour of the state.
    tone: &'static str,
    created_at: When,
}

#[derive(Template)]
#[template(path = "domains/one.html")]
pub(super) struct DomainPage {
    layout: Layout,
    /// Set on the account's own page for the domain, not on a server's.
    pub(super) account: Option<ViewedAccount>,
    /// Path of the list of domains.
    list: String,
    /// Path of the page.
    path: String,
    /// Path of the event stream, if the page has one.
    live: Option<String>,
    /// Path of the account's page for this domain, where it can be changed. Set only on a server's page, if the domain
    /// belongs to the account.
    edit_path: Option<String>,
    /// Beginning of the sentence "… send from it then.", shown before the domain is removed.
    removal_warning: &'static str,
    /// Form for settings that only the operator changes; `None` if the reader is not an operator.
    operator: Option<OperatorForm>,
    name: String,
    is_verified: bool,
    /// Whether the operator verified the domain, without DNS.
    is_by_operator: bool,
    failing_since: Option<When>,
    checked_at: Option<When>,
    next_check_at: When,
    return_path: String,
    tracking_host: String,
    records: Vec<RecordRow>,
    keys: Vec<KeyRow>,
    /// A new link for the person who edits the DNS.
    pub(super) new_link: Option<NewLink>,
    pub(super) links: Vec<LinkRow>,
}

impl DomainPage {
    /// Whether the page reloads regularly. Checks of single records cause no events, so the event stream does not
    /// announce them.
    fn has_unverified_records(&self) -> bool {
        self.records.iter().any(|record| record.tone != "good")
    }
}

pub(super) struct LinkRow {
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
    let links = visit.app().list_domain_links(&caller.requester(), (&caller).into(), name).await?;
    let links = link_rows(links);
    let list = format!("/servers/{server}/domains");
    let edit_path = match (view.domain.server_id, view.domain.account_id) {
        (Some(_), _) => None,
        (None, account) if account == visit.person.user.account_id => {
            Some(format!("/account/domains/{}", view.domain.name))
        }
        (None, account) => Some(format!("/operator/accounts/{account}/domains/{}", view.domain.name)),
    };
    let removal_warning = "This server can no longer";
    let live = Some(format!("/servers/{server}/live"));
    let common = domain_page(layout, list, view);
    page(&DomainPage { live, edit_path, removal_warning, new_link, links, ..common })
}

pub(super) fn link_rows(links: Vec<DomainLink>) -> Vec<LinkRow> {
    let row = |link: DomainLink| LinkRow {
        id: link.id.0,
        created_at: When(link.created_at),
        expires_at: When(link.expires_at),
    };
    links.into_iter().map(row).collect()
}

pub(super) async fn zone(Path((server, name)): Path<(i64, String)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::DomainsZone).await?;
    let view = visit.app().find_domain(&caller, &name).await?;
    Ok(download("text/plain; charset=utf-8", &format!("{}.zone", view.domain.name), view.zone()))
}

/// Builds the page of an account's domain. Callers fill the fields that are empty here; the page of a server's domain
/// also replaces `removal_warning`.
pub(super) fn domain_page(layout: Layout, list: String, view: DomainView) -> DomainPage {
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
        operator: layout.is_operator.then(|| OperatorForm::of(&domain.tracking)),
        layout,
        account: None,
        path: format!("{list}/{}", domain.name),
        list,
        live: None,
        edit_path: None,
        removal_warning: "No server of the account can",
        name: domain.name.to_string(),
        is_verified: domain.verified_by.is_some(),
        is_by_operator: domain.verified_by == Some(VerifiedBy::Operator),
        failing_since: domain.failing_since.map(When),
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
