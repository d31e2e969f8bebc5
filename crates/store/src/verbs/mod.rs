//! The verbs that both engines share: one body each, run on a `Sql` of either kind, inside one transaction.

pub(crate) mod accounts;
pub(crate) mod credentials;
pub(crate) mod deliveries;
pub(crate) mod domains;
pub(crate) mod events;
pub(crate) mod finish;
pub(crate) mod idempotency;
pub(crate) mod messages;
pub(crate) mod servers;
pub(crate) mod settings;
pub(crate) mod suppressions;
