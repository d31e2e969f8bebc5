//! Operations of the operator at the command line, one method of `App` each; most return JSON. Servers are named by
//! `NAME`, `ACCOUNT/NAME` or id.

mod account_keys;
mod accounts;
mod ceilings;
mod domains;
mod find;
mod gates;
mod keys;
mod pools;
mod queue;
mod servers;
mod suppressions;
mod tracking;
mod users;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, LimitedObject};
use postroad_store::StoreError;
use serde_json::{Value, json};

pub use ceilings::DaysCeiling;
pub use domains::NamedDomain;
pub use keys::NewKey;
pub use tracking::{SetDomainTracking, SetServerTracking, Switch};

use crate::accounts::AccountRefusal;
use crate::{App, Refusal};

/// Why a command failed; the text is for the operator.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AdminError {
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }
}

#[boxed_futures]
impl App {
    /// Adds a warning to the answer if the account is near its ceiling for objects of this kind.
    async fn add_ceiling_warning(&self, answer: &mut Value, account_id: AccountId, object: LimitedObject) {
        if let Some(warning) = self.ceiling_warning(account_id, object).await {
            answer["warnings"] = json!([warning]);
        }
    }
}

/// The items of a list that must be complete. If there are more, the error names their `kind`, and the `call` that
/// lists them in pages.
fn whole_list<T>(found: (Vec<T>, bool), kind: &str, call: &str) -> Result<Vec<T>, AdminError> {
    whole_list_or(found, kind, &format!("`postroad api {call}` lists them in pages"))
}

/// Like `whole_list`, for objects that no call of the API lists; the error ends with `advice`.
fn whole_list_or<T>(
    (items, has_more): (Vec<T>, bool),
    kind: &str,
    advice: &str,
) -> Result<Vec<T>, AdminError> {
    if has_more {
        let count = items.len();
        return Err(AdminError::refused(format!("there are more than {count} {kind}: {advice}")));
    }
    Ok(items)
}

/// Turns a refusal into an error. The error names the object if the object exists already, or is a pool in use.
fn error_naming(object: String) -> impl FnOnce(AccountRefusal) -> AdminError {
    move |refusal| match refusal {
        AccountRefusal::Exists(_) => AdminError::refused(format!("{object} exists already")),
        AccountRefusal::PoolInUse => AdminError::refused(format!(
            "{object} is in use: remove its addresses and give its servers another pool first"
        )),
        other => other.into(),
    }
}

impl From<AccountRefusal> for AdminError {
    fn from(refusal: AccountRefusal) -> Self {
        match refusal {
            AccountRefusal::Store(error) => error.into(),
            // Report all wrong fields, not only the first.
            AccountRefusal::Refused(Refusal::Validation(problems)) => {
                let texts: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
                Self::refused(texts.join("; "))
            }
            other => Self::refused(other.to_string()),
        }
    }
}
