//! Accounts of the installation: list, creation, suspension, and deleted accounts that can be restored.

use askama::Template;
use axum::http::StatusCode;
use postroad_model::AccountId;
use postroad_store::{Account, AccountFilter};

use super::TABS;
use crate::answer::{Answer, page_with_status};
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::problem::Problem;
use crate::query::query;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

const PAGE_ROWS: usize = 100;
const LIST: &str = "/operator/accounts";

struct Row {
    id: i64,
    name: String,
    suspended: Option<String>,
    created_at: When,
}

struct DeletedRow {
    id: i64,
    name: String,
    /// When the account's data is removed.
    until: Option<When>,
}

#[derive(Template)]
#[template(path = "operator/accounts.html")]
struct AccountsPage {
    layout: Layout,
    rows: Vec<Row>,
    next: Option<String>,
    /// Part of the name to search for.
    q: String,
    /// Filter for suspended accounts: `yes`, `no` or empty.
    suspended: String,
    deleted: Vec<DeletedRow>,
    problem: Option<String>,
    /// Name as typed in the form for a new account.
    name: String,
}

pub(super) async fn show(visit: Visit) -> Answer {
    list(&visit, StatusCode::OK, None, "").await
}

async fn list(visit: &Visit, status: StatusCode, problem: Option<String>, name: &str) -> Answer {
    let after = visit.query.number("after").map(AccountId);
    let (q, suspended) = (visit.query.text("q").to_owned(), visit.query.text("suspended").to_owned());
    let filter = AccountFilter {
        name_part: Some(q.clone()).filter(|part| !part.is_empty()),
        suspended: visit.query.yes_or_no("suspended"),
        ..AccountFilter::default()
    };
    let (accounts, has_more) =
        visit.app().list_accounts_as(&visit.requester, filter, after, PAGE_ROWS).await?;
    let layout = visit.layout("Accounts", Section::Operator).await?;
    let next = accounts.last().filter(|_| has_more);
    let next =
        next.map(|last| query(&[("q", &q), ("suspended", &suspended), ("after", &last.id.to_string())]));
    let rows = accounts.into_iter().map(row).collect();
    let filter = AccountFilter { deleted: true, ..AccountFilter::default() };
    let (deleted, _) = visit.app().list_accounts_as(&visit.requester, filter, None, PAGE_ROWS).await?;
    let deleted = deleted.into_iter().map(|account| DeletedRow {
        id: account.id.0,
        name: account.name,
        until: account.delete_at.map(When),
    });
    let (deleted, name) = (deleted.collect(), name.to_owned());
    page_with_status(status, &AccountsPage { layout, rows, next, q, suspended, deleted, problem, name })
}

fn row(account: Account) -> Row {
    Row {
        id: account.id.0,
        name: account.name,
        suspended: account.suspended_reason,
        created_at: When(account.created_at),
    }
}

pub(super) async fn create(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let name = fields.text("name");
    match visit.app().create_account_as(&visit.requester, name, None).await {
        Ok(created) => Ok(see_other(&format!("{LIST}/{}/people?done=created", created.value.id))),
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            list(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(text), name).await
        }
    }
}

pub(super) async fn suspend(Path(account): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let reason = Some(fields.text("reason").to_owned());
    visit.app().set_account_suspension_as(&visit.requester, AccountId(account), reason).await?;
    Ok(see_other(&format!("{LIST}?done=saved")))
}

pub(super) async fn resume(Path(account): Path<i64>, form: Form) -> Answer {
    form.visit.app().set_account_suspension_as(&form.visit.requester, AccountId(account), None).await?;
    Ok(see_other(&format!("{LIST}?done=resumed")))
}
