//! JSON form of an account.

use crate::documented::ToSchema;
use postroad_model::Timestamp;
use postroad_store::Account;
use serde::Serialize;

use super::ceilings::AccountCeilingsOut;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountOut {
    id: i64,
    #[schema(example = "acme")]
    name: String,
    suspended: bool,
    suspended_reason: Option<String>,
    /// Until when a deleted account can be restored; null for others.
    delete_at: Option<String>,
    /// Incremented by every change; pass it as `if_version` to avoid overwriting a change that you have not seen.
    version: i64,
    ceilings: AccountCeilingsOut,
    created_at: String,
    updated_at: String,
}

impl From<Account> for AccountOut {
    fn from(account: Account) -> Self {
        Self {
            id: account.id.0,
            name: account.name,
            suspended: account.suspended_reason.is_some(),
            suspended_reason: account.suspended_reason,
            delete_at: account.delete_at.map(Timestamp::to_rfc3339),
            version: account.version,
            ceilings: account.ceilings.into(),
            created_at: account.created_at.to_rfc3339(),
            updated_at: account.updated_at.to_rfc3339(),
        }
    }
}
