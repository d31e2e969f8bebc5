//! Domains of an account itself: all its servers can send from them. For the people of the account, and for the
//! operator.

use axum::response::Response;
use postroad_app::access::Operation;
use postroad_app::domains::{DomainRefusal, DomainView, NamedOwner};
use postroad_model::{DomainId, DomainLinkId};
use serde::Deserialize;

use super::change::read_dkim_key;
use super::filter::Filters;
use super::list::{ListPage, PAGE_ROWS, row};
use super::one::{NewLink, domain_page, link_rows};
use crate::answer::{Answer, download, page};
use crate::display::When;
use crate::layout::Section;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::viewed_account::ViewedAccount;
use crate::visit::{Form, Visit};

/// Parameters in the path of the list; `account` is `None` for the person's own account.
#[derive(Deserialize)]
pub(super) struct ListPath {
    account: Option<i64>,
}

/// Parameters in the path of a domain.
#[derive(Deserialize)]
pub(super) struct DomainPath {
    account: Option<i64>,
    name: String,
}

/// A domain of an account, as the path names it.
pub(super) struct NamedDomain {
    account: ViewedAccount,
    pub(super) owner: NamedOwner,
    pub(super) list: String,
    pub(super) name: String,
}

impl NamedDomain {
    pub(super) async fn find(visit: &Visit, path: DomainPath) -> Result<Self, Problem> {
        let account = find_viewed_account(visit, path.account).await?;
        Ok(Self { owner: owner(&account), list: list_path(&account), name: path.name, account })
    }

    fn redirect_to(&self, view: &DomainView, done: &str) -> Response {
        redirect_to(&self.list, view, done)
    }
}

async fn find_viewed_account(visit: &Visit, account: Option<i64>) -> Result<ViewedAccount, Problem> {
    ViewedAccount::in_path(visit, account, Section::AccountDomains).await
}

fn owner(account: &ViewedAccount) -> NamedOwner {
    NamedOwner { server: None, account: Some(account.id) }
}

fn list_path(account: &ViewedAccount) -> String {
    format!("{}/domains", account.base)
}

fn redirect_to(list: &str, view: &DomainView, done: &str) -> Response {
    see_other(&format!("{list}/{}?done={done}", view.domain.name))
}

/// Shows the list. Domains of the account's servers are listed too, with links to their pages.
pub(super) async fn list(Path(path): Path<ListPath>, visit: Visit) -> Answer {
    let account = find_viewed_account(&visit, path.account).await?;
    let after = visit.query.number("after").map(DomainId);
    let filters = Filters::read(&visit.query);
    let (domains, next) = visit
        .app()
        .search_domains_as(&visit.requester, owner(&account), &filters.0, after, PAGE_ROWS)
        .await?;
    let title = if account.is_own() { "Account domains" } else { "Domains" };
    let layout = visit.layout(title, account.section).await?;
    let next = next.map(|after| filters.query(&after.to_string()));
    let path = list_path(&account);
    let domain_row = |view: &DomainView| match view.domain.server_id {
        Some(server) => row(view, &format!("/servers/{server}/domains"), Some("of a server")),
        None => row(view, &path, None),
    };
    let rows = domains.iter().map(domain_row).collect();
    let hint = "All servers of the account can send from a domain added here.";
    let (states, account) = (filters.states(), Some(account));
    page(&ListPage { layout, account, path, hint, rows, filters, states, next })
}

pub(super) async fn create(Path(path): Path<ListPath>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let account = find_viewed_account(&visit, path.account).await?;
    let name = fields.text("name");
    let (app, owner, list) = (visit.app(), owner(&account), list_path(&account));
    match app.create_domain_as(&visit.requester, owner, name, read_dkim_key(&fields), None).await {
        Ok(created) => Ok(redirect_to(&list, &created.value, "created&ceiling=domains")),
        // The form was submitted twice, or the domain was added earlier: in both cases show the domain's page.
        Err(DomainRefusal::Exists) => Ok(redirect_to(
            &list,
            &app.find_domain_as(&visit.requester, owner, name, Operation::DomainsGet).await?,
            "",
        )),
        Err(refusal) => Err(refusal.into()),
    }
}

pub(super) async fn show(Path(path): Path<DomainPath>, visit: Visit) -> Answer {
    let domain = NamedDomain::find(&visit, path).await?;
    page_of(&visit, domain, None).await
}

async fn page_of(visit: &Visit, domain: NamedDomain, new_link: Option<NewLink>) -> Answer {
    let NamedDomain { account, owner, list, name } = domain;
    let view = visit.app().find_domain_as(&visit.requester, owner, &name, Operation::DomainsGet).await?;
    let links = link_rows(visit.app().list_domain_links(&visit.requester, owner, &name).await?);
    let layout = visit.layout(view.domain.name.as_str(), account.section).await?;
    let mut shown = domain_page(layout, list, view);
    (shown.new_link, shown.links, shown.account) = (new_link, links, Some(account));
    page(&shown)
}

/// Creates a link and shows it once: only a hash of its token is stored.
pub(super) async fn share(Path(path): Path<DomainPath>, form: Form) -> Answer {
    let visit = &form.visit;
    let domain = NamedDomain::find(visit, path).await?;
    let (token, link) = visit.app().share_domain(&visit.requester, domain.owner, &domain.name).await?;
    let url = format!("{}/dns/{token}", visit.base_url);
    page_of(visit, domain, Some(NewLink { url, until: When(link.expires_at) })).await
}

pub(super) async fn unshare(Path(path): Path<DomainPath>, form: Form) -> Answer {
    let visit = &form.visit;
    let domain = NamedDomain::find(visit, path).await?;
    let (owner, name) = (domain.owner, &domain.name);
    let view = visit.app().find_domain_as(&visit.requester, owner, name, Operation::DomainsUnshare).await?;
    let id = DomainLinkId(form.fields.number("link").unwrap_or_default());
    visit.app().unshare_domain(&visit.requester, owner, name, id).await?;
    Ok(domain.redirect_to(&view, "unshared"))
}

pub(super) async fn zone(Path(path): Path<DomainPath>, visit: Visit) -> Answer {
    let domain = NamedDomain::find(&visit, path).await?;
    let (owner, name) = (domain.owner, &domain.name);
    let view = visit.app().find_domain_as(&visit.requester, owner, name, Operation::DomainsZone).await?;
    Ok(download("text/plain; charset=utf-8", &format!("{}.zone", view.domain.name), view.zone()))
}

pub(super) async fn verify(Path(path): Path<DomainPath>, form: Form) -> Answer {
    let visit = &form.visit;
    let domain = NamedDomain::find(visit, path).await?;
    let view = visit.app().verify_domain_as(&visit.requester, domain.owner, &domain.name).await?;
    Ok(domain.redirect_to(&view, "checked"))
}

pub(super) async fn rotate_dkim(Path(path): Path<DomainPath>, form: Form) -> Answer {
    let (visit, key) = (&form.visit, read_dkim_key(&form.fields));
    let domain = NamedDomain::find(visit, path).await?;
    let view = visit.app().rotate_dkim_as(&visit.requester, domain.owner, &domain.name, key).await?;
    Ok(domain.redirect_to(&view, "created"))
}

pub(super) async fn delete(Path(path): Path<DomainPath>, form: Form) -> Answer {
    let visit = &form.visit;
    let domain = NamedDomain::find(visit, path).await?;
    visit.app().delete_domain_as(&visit.requester, domain.owner, &domain.name).await?;
    Ok(see_other(&format!("{}?done=removed", domain.list)))
}
