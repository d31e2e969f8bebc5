//! API keys of the account, for programs that manage servers, keys and domains.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, post};
use postroad_app::accounts::AccountKeyRequest;
use postroad_model::{AccountKeyId, AccountScope};
use postroad_store::{AccountKey, AccountKeyFilter};

use crate::answer::{Answer, page_with};
use crate::layout::{Layout, Section};
use crate::problem::Problem;
use crate::query::query;
use crate::redirect::see_other;
use crate::shown::When;
use crate::state::PortalState;
use crate::visit::{Form, Visit};

const PAGE_ROWS: usize = 100;

struct Row {
    id: i64,
    name: String,
    scopes: String,
    ended: Option<&'static str>,
    last_used_at: Option<When>,
    created_at: When,
}

#[derive(Template)]
#[template(path = "account_keys/list.html")]
struct ListPage {
    layout: Layout,
    rows: Vec<Row>,
    next: Option<String>,
    problem: Option<String>,
    /// A new key, shown only once.
    new_key: Option<String>,
}

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/account/keys", get(show).post(create))
        .route("/account/keys/{key}/revoke", post(revoke))
}

async fn show(visit: Visit) -> Answer {
    list(&visit, StatusCode::OK, None, None).await
}

async fn list(visit: &Visit, status: StatusCode, problem: Option<String>, new_key: Option<String>) -> Answer {
    let layout = visit.layout("Account keys", Section::AccountKeys).await?;
    let account = Some(visit.person.user.account_id);
    let after = visit.query.number("after").map(AccountKeyId);
    let filter = AccountKeyFilter::default();
    let (keys, has_more) =
        visit.app().list_account_keys(&visit.by, account, filter, after, PAGE_ROWS).await?;
    let next = keys.last().filter(|_| has_more).map(|last| query(&[("after", &last.id.to_string())]));
    let now = visit.app().now();
    let rows = keys.into_iter().map(|key| row(key, now)).collect();
    page_with(status, &ListPage { layout, rows, next, problem, new_key })
}

fn row(key: AccountKey, now: postroad_model::Timestamp) -> Row {
    let ended = match &key {
        AccountKey { revoked_at: Some(_), .. } => Some("Revoked"),
        AccountKey { expires_at: Some(at), .. } if *at <= now => Some("Expired"),
        _ => None,
    };
    let scopes: Vec<String> = key.scopes.iter().map(ToString::to_string).collect();
    Row {
        id: key.id.0,
        scopes: scopes.join(", "),
        ended,
        last_used_at: key.last_used_at.map(When),
        created_at: When(key.created_at),
        name: key.name,
    }
}

async fn create(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let scopes: Option<Vec<AccountScope>> = fields
        .text("scopes")
        .split([',', ' '])
        .filter(|word| !word.is_empty())
        .map(AccountScope::parse)
        .collect();
    let created = match scopes {
        Some(scopes) => {
            let request = AccountKeyRequest {
                name: fields.text("name").to_owned(),
                scopes,
                ..AccountKeyRequest::default()
            };
            let account = Some(visit.person.user.account_id);
            visit.app().create_account_key(&visit.by, account, request).await.map_err(Problem::from)
        }
        None => Err(Problem::Invalid(
            "Scopes are full, read, or groups such as servers, domains:read.".to_owned(),
        )),
    };
    match created {
        Ok(created) => list(&visit, StatusCode::OK, None, Some(created.api_key)).await,
        Err(problem) => {
            list(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(problem.into_form_text()?), None).await
        }
    }
}

async fn revoke(Path(key): Path<i64>, form: Form) -> Answer {
    let account = Some(form.visit.person.user.account_id);
    form.visit.app().revoke_account_key(&form.visit.by, account, AccountKeyId(key)).await?;
    Ok(see_other("/account/keys?done=revoked"))
}
