//! Domains of the account itself: all its servers send from them.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use postroad_app::access::Operation;
use postroad_app::domains::{DomainRefusal, DomainView, ListedDomains, NamedOwner};
use postroad_model::DomainId;

use super::change::read_key;
use super::list::{ListPage, PAGE_ROWS, row};
use super::one::domain_page;
use crate::answer::{Answer, download, page, page_with};
use crate::layout::Section;
use crate::problem::Problem;
use crate::query::page_after;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

const LIST: &str = "/account/domains";

fn owner(visit: &Visit) -> NamedOwner {
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
    let (domains, has_more) = visit
        .app()
        .list_domains_by(&visit.by, owner(visit), ListedDomains::default(), after, PAGE_ROWS)
        .await?;
    let layout = visit.layout("Account domains", Section::AccountDomains).await?;
    let next = page_after(domains.last().map(|last| last.domain.id), has_more);
    let shown = |view: &DomainView| match view.domain.server_id {
        Some(server) => row(view, &format!("/servers/{server}/domains"), Some("of a server")),
        None => row(view, LIST, None),
    };
    let rows = domains.iter().map(shown).collect();
    let hint = "All servers of the account send from it.";
    let (path, name) = (LIST.to_owned(), name.to_owned());
    page_with(status, &ListPage { layout, path, hint, rows, next, problem, name })
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
    let found = visit.app().find_domain_by(&visit.by, owner(&visit), &name, Operation::DomainsGet).await;
    let view = found?;
    let layout = visit.layout(view.domain.name.as_str(), Section::AccountDomains).await?;
    page(&domain_page(layout, LIST.to_owned(), view))
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
