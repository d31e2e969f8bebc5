//! Accounts, servers with their ceilings, credentials and settings. What delivery reads as its setup is in
//! `delivery_setup.rs`.

pub(crate) mod account_ceilings;
mod account_keys;
pub(crate) mod accounts;
pub(crate) mod ceiling_values;
pub(crate) mod ceilings;
pub(crate) mod creations;
mod credential_list;
mod credentials;
mod deleted;
#[cfg(test)]
mod list_plans;
pub(crate) mod notices;
pub(crate) mod object_counts;
mod purge;
mod server_change;
mod server_update;
pub(crate) mod servers;
mod service_server;
mod set_by;
mod settings;

pub use account_ceilings::{AccountCeilings, AccountCeilingsChange};
pub use account_keys::{AccountKey, AccountKeyFilter, AccountKeyOwner, NewAccountKey};
pub use accounts::{Account, AccountFilter, UpdateResult};
pub use ceiling_values::{Ceiling, Ceilings};
pub use ceilings::{CeilingsChange, ServerUpdateResult};
pub use creations::{Creation, NewCreation};
pub use credential_list::{CredentialChange, CredentialFilter};
pub use credentials::{Credential, CredentialAccess, KeyHash, NewCredential};
pub use object_counts::PeriodCounts;
pub use server_change::{PoolMove, ServerChange};
pub use servers::{CeilingsBySetter, NewServer, Server, ServerFilter, ServerRetention, ServerTracking};
pub use set_by::SetBy;
