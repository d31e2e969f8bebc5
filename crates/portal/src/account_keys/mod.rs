//! API keys of the account, for programs that manage servers, keys and domains.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, post};
use postroad_app::accounts::AccountKeyRequest;
use postroad_model::{AccountKeyId, AccountScope, Timestamp};
use postroad_store::{AccountKey, AccountKeyFilter};

use crate::answer::{Answer, page_with};
use crate::fields::Fields;
use crate::layout::{Layout, Section};
use crate::once;
use crate::problem::Problem;
use crate::query::query;
use crate::redirect::see_other;
use crate::shown::When;
use crate::state::PortalState;
use crate::visit::{Form, Visit};

const PAGE_ROWS: usize = 100;
const LIST: &str = "/account/keys";

/// A key of an account, or of the operator.
pub(crate) struct KeyRow {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) scopes: String,
    pub(crate) ended: Option<&'static str>,
    pub(crate) last_used_at: Option<When>,
    pub(crate) created_at: When,
}

#[derive(Template)]
#[template(path = "account_keys/list.html")]
struct ListPage {
    layout: Layout,
    /// Where the keys are revoked.
    list: &'static str,
    rows: Vec<KeyRow>,
    next: Option<String>,
    problem: Option<String>,
    shown: Shown,
    /// Idempotency key of the form: submitting it twice creates one key.
    once: String,
}

/// Result of the form for a new key.
pub(crate) enum Shown {
    Nothing,
    /// A new key, shown only this time.
    New(String),
    /// The form was sent a second time.
    Before,
}

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/account/keys", get(show).post(create))
        .route("/account/keys/{key}/revoke", post(revoke))
}

async fn show(visit: Visit) -> Answer {
    list(&visit, StatusCode::OK, None, Shown::Nothing).await
}

async fn list(visit: &Visit, status: StatusCode, problem: Option<String>, shown: Shown) -> Answer {
    let layout = visit.layout("Account keys", Section::AccountKeys).await?;
    let account = Some(visit.person.user.account_id);
    let after = visit.query.number("after").map(AccountKeyId);
    let filter = AccountKeyFilter::default();
    let (keys, has_more) =
        visit.app().list_account_keys(&visit.by, account, filter, after, PAGE_ROWS).await?;
    let next = keys.last().filter(|_| has_more).map(|last| query(&[("after", &last.id.to_string())]));
    let now = visit.app().now();
    let rows = keys.into_iter().map(|key| key_row(key, now)).collect();
    page_with(status, &ListPage { layout, list: LIST, rows, next, problem, shown, once: once::new_once() })
}

pub(crate) fn key_row(key: AccountKey, now: Timestamp) -> KeyRow {
    let ended = match &key {
        AccountKey { revoked_at: Some(_), .. } => Some("Revoked"),
        AccountKey { expires_at: Some(at), .. } if *at <= now => Some("Expired"),
        _ => None,
    };
    let scopes: Vec<String> = key.scopes.iter().map(ToString::to_string).collect();
    KeyRow {
        id: key.id.0,
        scopes: scopes.join(", "),
        ended,
        last_used_at: key.last_used_at.map(When),
        created_at: When(key.created_at),
        name: key.name,
    }
}

/// The field `scopes`: words, empty for all.
pub(crate) fn read_scopes(fields: &Fields) -> Result<Vec<AccountScope>, Problem> {
    let words = fields.text("scopes").split([',', ' ']).filter(|word| !word.is_empty());
    let scopes: Option<Vec<AccountScope>> = words.map(AccountScope::parse).collect();
    scopes.ok_or_else(|| {
        Problem::Invalid("Scopes are full, read, or groups such as servers, domains:read.".to_owned())
    })
}

async fn create(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let created = match read_scopes(&fields) {
        Ok(scopes) => {
            let request = AccountKeyRequest {
                name: fields.text("name").to_owned(),
                scopes,
                ..AccountKeyRequest::default()
            };
            let account = Some(visit.person.user.account_id);
            let key = once::creation_key(&fields);
            let created =
                visit.app().create_account_key_once(&visit.by, account, request, key.as_ref()).await;
            created.map_err(Problem::from)
        }
        Err(problem) => Err(problem),
    };
    match created {
        Ok(created) => {
            let (api_key, _) = created.value;
            list(&visit, StatusCode::OK, None, api_key.map_or(Shown::Before, Shown::New)).await
        }
        Err(problem) => {
            let text = Some(problem.into_form_text()?);
            list(&visit, StatusCode::UNPROCESSABLE_ENTITY, text, Shown::Nothing).await
        }
    }
}

async fn revoke(Path(key): Path<i64>, form: Form) -> Answer {
    let account = Some(form.visit.person.user.account_id);
    form.visit.app().revoke_account_key(&form.visit.by, account, AccountKeyId(key)).await?;
    Ok(see_other(&format!("{LIST}?done=revoked")))
}
