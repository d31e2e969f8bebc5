//! The verbs that both engines share: one body each, run on a `Sql` of either kind, inside one transaction.

pub(crate) mod accounts;
pub(crate) mod credentials;
pub(crate) mod deliveries;
pub(crate) mod delivery_setup;
pub(crate) mod desk;
pub(crate) mod domain_reports;
pub(crate) mod domains;
pub(crate) mod events;
pub(crate) mod finish;
pub(crate) mod gates;
pub(crate) mod idempotency;
pub(crate) mod messages;
pub(crate) mod pools;
pub(crate) mod queue_list;
pub(crate) mod returns;
pub(crate) mod server_change;
pub(crate) mod servers;
pub(crate) mod settings;
pub(crate) mod suppressions;
pub(crate) mod told;
pub(crate) mod tracking;
pub(crate) mod webhook_attempts;
pub(crate) mod webhook_queue;
pub(crate) mod webhooks;
