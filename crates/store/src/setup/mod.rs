//! The set-up by operators and customers: accounts, servers with their ceilings, credentials, settings.

mod account_keys;
mod accounts;
pub(crate) mod ceilings;
pub(crate) mod creations;
mod credential_list;
mod credentials;
mod deleted;
mod server_update;
pub(crate) mod servers;
mod settings;

pub use account_keys::{AccountKey, AccountKeyOwner, NewAccountKey};
pub use accounts::{Account, AccountFilter, Updated};
pub use ceilings::{Ceiling, Ceilings, CeilingsChange, ServerUpdate};
pub use creations::{Creation, NewCreation};
pub use credential_list::{CredentialChange, CredentialFilter};
pub use credentials::{Credential, CredentialAccess, KeyHash, NewCredential};
pub use server_update::ServerChange;
pub use servers::{NewServer, Server, ServerFilter, ServerRetention, ServerTracking};
