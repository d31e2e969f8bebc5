//! Creates an account key and shows it once.

use postroad_app::accounts::AccountKeyRequest;
use postroad_model::AccountScope;

use super::NewKeyResult;
use super::list::list;
use crate::answer::Answer;
use crate::fields::Fields;
use crate::keys::{read_last_day, read_networks};
use crate::once;
use crate::problem::Problem;
use crate::viewed_account::ViewedAccount;
use crate::visit::Form;

/// Reads the fields `name`, `scopes`, `allow` and `expires_at`; empty scopes mean all.
pub(crate) fn read_request(fields: &Fields) -> Result<AccountKeyRequest, Problem> {
    let words = fields.text("scopes").split([',', ' ']).filter(|word| !word.is_empty());
    let scopes: Option<Vec<AccountScope>> = words.map(AccountScope::parse).collect();
    let scopes = scopes.ok_or_else(|| {
        Problem::Invalid("Scopes are full, read, or groups such as servers, domains:read.".to_owned())
    })?;
    Ok(AccountKeyRequest {
        name: fields.text("name").to_owned(),
        scopes,
        allow: read_networks(fields).map_err(Problem::Invalid)?,
        expires_at: read_last_day(fields).map_err(Problem::Invalid)?,
    })
}

pub(super) async fn submit(form: &Form, account: ViewedAccount) -> Answer {
    let (visit, fields) = (&form.visit, &form.fields);
    let (request, key) = (read_request(fields)?, once::creation_key(fields));
    let created = visit
        .app()
        .create_account_key_once(&visit.requester, Some(account.id), request, key.as_ref())
        .await?;
    let (api_key, _) = created.value;
    list(visit, account, api_key.map_or(NewKeyResult::Before, NewKeyResult::New)).await
}
