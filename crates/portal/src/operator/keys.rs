//! Operator keys: for programs that manage all accounts, pools and the installation.

use askama::Template;
use postroad_model::AccountKeyId;

use super::TABS;
use crate::account_keys::{KeyRow, NewKeyResult, key_row, read_request};
use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::once;
use crate::path::Path;
use crate::query::page_after;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

const PAGE_ROWS: usize = 100;
const LIST: &str = "/operator/keys";

#[derive(Template)]
#[template(path = "operator/keys.html")]
struct KeysPage {
    layout: Layout,
    /// Path of the page; the paths of the forms that revoke keys begin with it.
    list: &'static str,
    rows: Vec<KeyRow>,
    next: Option<String>,
    shown: NewKeyResult,
    /// Idempotency key of the form: submitting it twice creates one key.
    once: String,
}

pub(super) async fn show(visit: Visit) -> Answer {
    list(&visit, NewKeyResult::Nothing).await
}

async fn list(visit: &Visit, shown: NewKeyResult) -> Answer {
    let after = visit.query.number("after").map(AccountKeyId);
    let (keys, has_more) = visit.app().list_operator_keys(&visit.requester, after, PAGE_ROWS).await?;
    let layout = visit.layout("Operator keys", Section::Operator).await?;
    let next = page_after("", keys.last().map(|last| last.id), has_more);
    let now = visit.app().now();
    let rows = keys.into_iter().map(|key| key_row(key, now)).collect();
    let once = once::new_once();
    page(&KeysPage { layout, list: LIST, rows, next, shown, once })
}

pub(super) async fn create(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let (request, key) = (read_request(&fields)?, once::creation_key(&fields));
    let created = visit.app().create_operator_key_once(&visit.requester, request, key.as_ref()).await?;
    let (api_key, _) = created.value;
    list(&visit, api_key.map_or(NewKeyResult::Before, NewKeyResult::New)).await
}

pub(super) async fn revoke(Path(key): Path<i64>, form: Form) -> Answer {
    form.visit.app().revoke_operator_key(&form.visit.requester, AccountKeyId(key)).await?;
    Ok(see_other(&format!("{LIST}?done=revoked")))
}
