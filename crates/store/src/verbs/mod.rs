//! The verbs that both engines share: one body each, run on a `Sql` of either kind, inside one transaction.

pub(crate) mod accounts;
pub(crate) mod ceilings;
pub(crate) mod credentials;
pub(crate) mod server_change;
pub(crate) mod servers;
pub(crate) mod settings;
pub(crate) mod tracking;
