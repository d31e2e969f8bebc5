//! List of an account's keys, with the form for a new one.

use askama::Template;
use postroad_model::AccountKeyId;
use postroad_store::AccountKeyFilter;

use super::{KeyRow, NewKeyResult, key_row};
use crate::answer::{Answer, page};
use crate::layout::Layout;
use crate::once;
use crate::query::query;
use crate::viewed_account::ViewedAccount;
use crate::visit::Visit;

const PAGE_ROWS: usize = 100;

#[derive(Template)]
#[template(path = "account_keys/list.html")]
struct ListPage {
    layout: Layout,
    account: ViewedAccount,
    /// Path of the page.
    list: String,
    rows: Vec<KeyRow>,
    next: Option<String>,
    /// Exact name to search for.
    name: String,
    /// `yes` for revoked keys, `no` for keys that are not revoked, empty for all.
    revoked: String,
    shown: NewKeyResult,
    /// Idempotency key of the form: submitting it twice creates one key.
    once: String,
}

pub(super) async fn show(visit: &Visit, account: ViewedAccount) -> Answer {
    list(visit, account, NewKeyResult::Nothing).await
}

pub(super) async fn list(visit: &Visit, account: ViewedAccount, shown: NewKeyResult) -> Answer {
    let title = if account.is_own() { "Account keys" } else { "Keys" };
    let layout = visit.layout(title, account.section).await?;
    let after = visit.query.number("after").map(AccountKeyId);
    let (name, revoked) = (visit.query.text("q").to_owned(), visit.query.text("revoked").to_owned());
    let filter = AccountKeyFilter {
        name: Some(name.clone()).filter(|name| !name.is_empty()),
        revoked: visit.query.yes_or_no("revoked"),
    };
    let (keys, has_more) =
        visit.app().list_account_keys(&visit.requester, Some(account.id), filter, after, PAGE_ROWS).await?;
    let next = keys.last().filter(|_| has_more);
    let next =
        next.map(|last| query(&[("q", &name), ("revoked", &revoked), ("after", &last.id.to_string())]));
    let now = visit.app().now();
    let rows = keys.into_iter().map(|key| key_row(key, now)).collect();
    let (list, once) = (format!("{}/keys", account.base), once::new_once());
    page(&ListPage { layout, account, list, rows, next, name, revoked, shown, once })
}
