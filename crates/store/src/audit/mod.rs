//! Audit log: one entry for each change, written in the change's own transaction. Entries of an account form a hash
//! chain, which reveals removed or changed entries.

pub(crate) mod append;
mod chain;
mod queues;
mod read;
mod subject;

use std::net::IpAddr;
use std::sync::Arc;

use postroad_model::{AccountId, Timestamp};
use serde_json::Value;

pub(crate) use queues::{AuditPermit, AuditQueues};
pub use read::{AuditFilter, AuditPage, AuditVerdict, HiddenActors};
pub use subject::AuditSubject;

use crate::Store;
use crate::setup::NewCreation;

/// The account under which changes of the installation itself are recorded.
pub const INSTALLATION: AccountId = AccountId(0);

/// Facts about a change, known before it is made.
#[derive(Debug, Clone)]
pub struct Audit {
    /// Kind of the actor, such as `account_key`, and its id.
    pub actor: (&'static str, Option<i64>),
    pub address: Option<IpAddr>,
    /// Name of the operation: `group/action`.
    pub operation: &'static str,
    pub subject: AuditSubject,
    /// Idempotency key of a call that creates the subject.
    pub creation: Option<NewCreation>,
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    pub account_id: AccountId,
    /// 1, 2, 3 … for each account.
    pub seq: i64,
    pub at: Timestamp,
    pub actor: String,
    pub actor_id: Option<i64>,
    pub address: Option<String>,
    pub operation: String,
    pub subject: String,
    pub subject_id: Option<i64>,
    /// The subject before and after the change, without secrets. `None` where the subject did not exist. `before` is
    /// also `None` for changes that the subject's row does not show.
    pub before: Option<Value>,
    pub after: Option<Value>,
}

impl Store {
    /// Returns a copy of the store for one change; the copy records this change in the audit log. A change that leaves
    /// the subject as it was adds no entry.
    #[must_use]
    pub fn audited(&self, audit: Audit) -> Self {
        Self { audit: Some(Arc::new(audit)), ..self.clone() }
    }
}
