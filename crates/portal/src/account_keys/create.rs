//! Creates a key and shows it once.

use axum::http::StatusCode;
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
    let created = match read_request(fields) {
        Ok(request) => {
            let key = once::creation_key(fields);
            let account = Some(account.id);
            let created =
                visit.app().create_account_key_once(&visit.by, account, request, key.as_ref()).await;
            created.map_err(Problem::from)
        }
        Err(problem) => Err(problem),
    };
    match created {
        Ok(created) => {
            let (api_key, _) = created.value;
            let shown = api_key.map_or(NewKeyResult::Before, NewKeyResult::New);
            list(visit, account, StatusCode::OK, None, shown).await
        }
        Err(problem) => {
            let text = Some(problem.into_form_text()?);
            list(visit, account, StatusCode::UNPROCESSABLE_ENTITY, text, NewKeyResult::Nothing).await
        }
    }
}
