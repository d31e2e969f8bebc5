//! API keys of an account, for programs that manage its objects, such as servers, keys and domains.

mod create;
mod list;
mod row;

use std::sync::Arc;

use axum::Router;
use postroad_model::AccountKeyId;

pub(crate) use create::read_request;
pub(crate) use row::{KeyRow, NewKeyResult, key_row};

use crate::answer::Answer;
use crate::layout::Section;
use crate::page_routes::{AndPost as _, get, post};
use crate::path::Path;
use crate::redirect::see_other;
use crate::state::PortalState;
use crate::viewed_account::ViewedAccount;
use crate::visit::{Form, Visit};

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/account/keys", get(show).and_post(create))
        .route("/account/keys/{key}/revoke", post(revoke))
        .route("/operator/accounts/{account}/keys", get(show_of_customer).and_post(create_for_customer))
        .route("/operator/accounts/{account}/keys/{key}/revoke", post(revoke_of_customer))
}

fn own_account(visit: &Visit) -> ViewedAccount {
    ViewedAccount::own(visit, Section::AccountKeys)
}

async fn show(visit: Visit) -> Answer {
    list::show(&visit, own_account(&visit)).await
}

async fn show_of_customer(Path(account): Path<i64>, visit: Visit) -> Answer {
    list::show(&visit, ViewedAccount::of_customer(&visit, account).await?).await
}

async fn create(form: Form) -> Answer {
    create::submit(&form, own_account(&form.visit)).await
}

async fn create_for_customer(Path(account): Path<i64>, form: Form) -> Answer {
    create::submit(&form, ViewedAccount::of_customer(&form.visit, account).await?).await
}

async fn revoke(Path(key): Path<i64>, form: Form) -> Answer {
    revoke_of(key, &form, own_account(&form.visit)).await
}

async fn revoke_of_customer(Path((account, key)): Path<(i64, i64)>, form: Form) -> Answer {
    revoke_of(key, &form, ViewedAccount::of_customer(&form.visit, account).await?).await
}

async fn revoke_of(key: i64, form: &Form, account: ViewedAccount) -> Answer {
    let visit = &form.visit;
    visit.app().revoke_account_key(&visit.requester, Some(account.id), AccountKeyId(key)).await?;
    Ok(see_other(&format!("{}/keys?done=revoked", account.base)))
}
