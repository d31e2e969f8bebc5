//! Operator keys: for programs that manage all accounts, pools and the installation.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use postroad_model::{AccountKeyId, Timestamp};

use super::TABS;
use crate::account_keys::{KeyRow, Shown, key_row, read_request};
use crate::answer::{Answer, page_with};
use crate::fields::Fields;
use crate::layout::{Layout, Section};
use crate::problem::Problem;
use crate::query::page_after;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

const PAGE_ROWS: usize = 100;
const LIST: &str = "/operator/keys";

#[derive(Template)]
#[template(path = "operator/keys.html")]
struct KeysPage {
    layout: Layout,
    /// Where the keys are revoked.
    list: &'static str,
    rows: Vec<KeyRow>,
    next: Option<String>,
    problem: Option<String>,
    shown: Shown,
    /// When the form was made: sent twice, it creates one key.
    opened_at: i64,
}

pub(super) async fn show(visit: Visit) -> Answer {
    list(&visit, StatusCode::OK, None, Shown::Nothing).await
}

async fn list(visit: &Visit, status: StatusCode, problem: Option<String>, shown: Shown) -> Answer {
    let after = visit.query.number("after").map(AccountKeyId);
    let (keys, has_more) = visit.app().list_operator_keys(&visit.by, after, PAGE_ROWS).await?;
    let layout = visit.layout("Operator keys", Section::Operator).await?;
    let next = page_after(keys.last().map(|last| last.id), has_more);
    let now = visit.app().now();
    let rows = keys.into_iter().map(|key| key_row(key, now)).collect();
    let opened_at = now.as_micros();
    page_with(status, &KeysPage { layout, list: LIST, rows, next, problem, shown, opened_at })
}

pub(super) async fn create(form: Form) -> Answer {
    let Form { visit, fields } = form;
    if is_made_before(&visit, &fields).await? {
        return list(&visit, StatusCode::OK, None, Shown::Before).await;
    }
    let created = match read_request(&fields) {
        Ok(request) => visit.app().create_operator_key(&visit.by, request).await.map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    match created {
        Ok(created) => list(&visit, StatusCode::OK, None, Shown::New(created.api_key)).await,
        Err(problem) => {
            let text = Some(problem.into_form_text()?);
            list(&visit, StatusCode::UNPROCESSABLE_ENTITY, text, Shown::Nothing).await
        }
    }
}

/// Whether a key of this name was created since the form was made: the form was sent twice.
async fn is_made_before(visit: &Visit, fields: &Fields) -> Result<bool, Problem> {
    let Some(opened_at) = fields.number("opened_at").map(Timestamp::from_micros) else { return Ok(false) };
    let mut after = None;
    loop {
        let (keys, has_more) = visit.app().list_operator_keys(&visit.by, after, PAGE_ROWS).await?;
        if keys.iter().any(|key| key.name == fields.text("name") && key.created_at >= opened_at) {
            return Ok(true);
        }
        after = keys.last().map(|last| last.id);
        if !has_more {
            return Ok(false);
        }
    }
}

pub(super) async fn revoke(Path(key): Path<i64>, form: Form) -> Answer {
    form.visit.app().revoke_operator_key(&form.visit.by, AccountKeyId(key)).await?;
    Ok(see_other(&format!("{LIST}?done=revoked")))
}
