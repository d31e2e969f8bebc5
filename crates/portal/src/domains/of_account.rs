//! Domains of the account itself: all its servers send from them.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use postroad_app::access::Operation;
use postroad_app::domains::{DomainRefusal, DomainView, NamedOwner};
use postroad_model::{DomainId, DomainLinkId};

use super::change::read_key;
use super::filter::Filters;
use super::list::{ListPage, PAGE_ROWS, row};
use super::one::{NewLink, domain_page, link_rows};
use crate::answer::{Answer, download, page, page_with};
use crate::layout::Section;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::shown::When;
use crate::visit::{Form, Visit};

pub(super) const LIST: &str = "/account/domains";

pub(super) fn owner(visit: &Visit) -> NamedOwner {
    NamedOwner { server: None, account: Some(visit.person.user.account_id) }
}

fn to_page(view: &DomainView, done: &str) -> Response {
    see_other(&format!("{LIST}/{}?done={done}", view.domain.name))
}

pub(super) async fn list(visit: Visit) -> Answer {
    list_with(&visit, StatusCode::OK, None, "").await
}

/// Those of its servers are listed too, with links to their pages.
async fn list_with(visit: &Visit, status: StatusCode, problem: Option<String>, name: &str) -> Answer {
    let after = visit.query.number("after").map(DomainId);
    let filters = Filters::read(&visit.query);
    let (domains, next) =
        visit.app().search_domains_by(&visit.by, owner(visit), &filters.0, after, PAGE_ROWS).await?;
    let layout = visit.layout("Account domains", Section::AccountDomains).await?;
    let next = next.map(|after| filters.query(&after.to_string()));
    let shown = |view: &DomainView| match view.domain.server_id {
        Some(server) => row(view, &format!("/servers/{server}/domains"), Some("of a server")),
        None => row(view, LIST, None),
    };
    let rows = domains.iter().map(shown).collect();
    let hint = "All servers of the account send from it.";
    let (path, states, name) = (LIST.to_owned(), filters.states(), name.to_owned());
    page_with(status, &ListPage { layout, path, hint, rows, filters, states, next, problem, name })
}

pub(super) async fn create(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let name = fields.text("name");
    let (app, owner) = (visit.app(), owner(&visit));
    match app.create_domain_by(&visit.by, owner, name, read_key(&fields), None).await {
        Ok(created) => Ok(to_page(&created.value, "created")),
        // Submitted twice, or added earlier: in both cases show its page.
        Err(DomainRefusal::Exists) => {
            Ok(to_page(&app.find_domain_by(&visit.by, owner, name, Operation::DomainsGet).await?, ""))
        }
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            list_with(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(text), name).await
        }
    }
}

pub(super) async fn show(Path(name): Path<String>, visit: Visit) -> Answer {
    page_of(&visit, &name, None).await
}

async fn page_of(visit: &Visit, name: &str, new_link: Option<NewLink>) -> Answer {
    let found = visit.app().find_domain_by(&visit.by, owner(visit), name, Operation::DomainsGet).await;
    let view = found?;
    let links = link_rows(visit.app().list_domain_links(&visit.by, owner(visit), name).await?);
    let layout = visit.layout(view.domain.name.as_str(), Section::AccountDomains).await?;
    let mut shown = domain_page(layout, LIST.to_owned(), view);
    (shown.new_link, shown.links) = (new_link, links);
    page(&shown)
}

/// Shows the link: it is not stored.
pub(super) async fn share(Path(name): Path<String>, form: Form) -> Answer {
    let visit = &form.visit;
    let (token, link) = visit.app().share_domain(&visit.by, owner(visit), &name).await?;
    let url = format!("{}/dns/{token}", visit.base_url);
    page_of(visit, &name, Some(NewLink { url, until: When(link.expires_at) })).await
}

pub(super) async fn unshare(Path(name): Path<String>, form: Form) -> Answer {
    let visit = &form.visit;
    let view = visit.app().find_domain_by(&visit.by, owner(visit), &name, Operation::DomainsUnshare).await?;
    let id = DomainLinkId(form.fields.number("link").unwrap_or_default());
    visit.app().unshare_domain(&visit.by, owner(visit), &name, id).await?;
    Ok(to_page(&view, "unshared"))
}

pub(super) async fn zone(Path(name): Path<String>, visit: Visit) -> Answer {
    let found = visit.app().find_domain_by(&visit.by, owner(&visit), &name, Operation::DomainsZone).await;
    let view = found?;
    Ok(download("text/plain; charset=utf-8", &format!("{}.zone", view.domain.name), view.zone()))
}

pub(super) async fn verify(Path(name): Path<String>, form: Form) -> Answer {
    let visit = &form.visit;
    Ok(to_page(&visit.app().verify_domain_by(&visit.by, owner(visit), &name).await?, "checked"))
}

pub(super) async fn rotate_dkim(Path(name): Path<String>, form: Form) -> Answer {
    let (visit, key) = (&form.visit, read_key(&form.fields));
    Ok(to_page(&visit.app().rotate_dkim_by(&visit.by, owner(visit), &name, key).await?, "created"))
}

pub(super) async fn delete(Path(name): Path<String>, form: Form) -> Answer {
    let visit = &form.visit;
    visit.app().delete_domain_by(&visit.by, owner(visit), &name).await?;
    Ok(see_other(&format!("{LIST}?done=removed")))
}
