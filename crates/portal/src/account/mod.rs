//! The account: its name, its usage and its limits.

mod messages_of_month;
mod usage;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::http::StatusCode;

pub(crate) use usage::{UsageRow, usage_rows};

use self::messages_of_month::MessagesOfMonth;
use crate::answer::{Answer, page_with_status};
use crate::layout::{Layout, Section};
use crate::page_routes::{AndPost as _, get};
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::state::PortalState;
use crate::visit::{Form, Visit};

#[derive(Template)]
#[template(path = "account/show.html")]
struct AccountPage {
    layout: Layout,
    name: String,
    usage: Vec<UsageRow>,
    /// Limits without a row in `usage`: name and value.
    limits: Vec<(&'static str, String)>,
    month: MessagesOfMonth,
    problem: Option<String>,
}

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new().route("/account", get(show).and_post(rename))
}

async fn show(visit: Visit) -> Answer {
    page_of(&visit, StatusCode::OK, None).await
}

async fn page_of(visit: &Visit, status: StatusCode, problem: Option<String>) -> Answer {
    let account = Some(visit.person.user.account_id);
    let found = visit.app().account_usage(&visit.requester, account).await?;
    let name = visit.app().find_own_account(&visit.requester, account).await?.name;
    let layout = visit.layout("Account", Section::Account).await?;
    let (usage, limits) = (usage_rows(&found), usage::other_limits(&found));
    let month = MessagesOfMonth::read(visit).await?;
    page_with_status(status, &AccountPage { layout, name, usage, limits, month, problem })
}

async fn rename(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let account = Some(visit.person.user.account_id);
    match visit.app().rename_own_account(&visit.requester, account, None, fields.text("name")).await {
        Ok(_) => Ok(see_other("/account?done=saved")),
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            page_of(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(text)).await
        }
    }
}
