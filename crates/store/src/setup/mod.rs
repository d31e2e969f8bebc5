//! The set-up by operators and customers: accounts, servers with their ceilings, credentials, settings.

mod accounts;
pub(crate) mod ceilings;
mod credentials;
mod server_update;
pub(crate) mod servers;
mod settings;

pub use accounts::Account;
pub use ceilings::{Ceiling, Ceilings, ServerUpdate};
pub use credentials::{Credential, CredentialAccess, KeyHash, NewCredential};
pub use server_update::ServerChange;
pub use servers::{NewServer, Server, ServerRetention, ServerTracking};
