//! Sets or removes the operator's verification of a domain.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, EventKind, IdGenerator, Timestamp};
use serde_json::json;

use super::domain::VerifiedBy;
use super::pending_events::EVENTS_PER_TRANSACTION;
use super::{find, keys, pending_events, tracking};
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Sets the verification by the operator. `None` removes it; if the domain is then no longer verified, links in its
    /// mail work until `links_until`. A domain that becomes verified gets an event; if this process cannot create event
    /// ids, a node writes it later.
    pub async fn set_domain_verified(
        &self,
        id: DomainId,
        verified_at: Option<Timestamp>,
        links_until: Timestamp,
    ) -> Result<()> {
        let now = self.clock.now();
        if self.ids().is_ok() {
            self.write_with_ids(move |sql, ids| {
                Box::pin(
                    async move { set_verified(sql, Some(&ids), id, verified_at, links_until, now).await },
                )
            })
            .await?;
        } else {
            self.write(move |sql| Box::pin(set_verified(sql, None, id, verified_at, links_until, now)))
                .await?;
        }
        self.notify_change();
        self.notifier.notify_all();
        Ok(())
    }
}

/// Sets the verification by the operator; `None` removes it, and the DNS decides again. A domain that becomes verified
/// gets an event, and the operator's verification makes its pending keys sign. If the domain is no longer verified,
/// links in its mail work until `links_until`.
async fn set_verified(
    sql: &Sql<'_>,
    ids: Option<&IdGenerator>,
    id: DomainId,
    verified_at: Option<Timestamp>,
    links_until: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    let domain = find::lock(sql, id).await?;
    let by_dns = domain.good_since.map(|since| (VerifiedBy::Dns, since));
    let verified = verified_at.map(|at| (VerifiedBy::Operator, domain.verified_at.unwrap_or(at))).or(by_dns);
    if domain.is_verified() && verified.is_none() {
        tracking::keep_hosts(sql, id, links_until, now).await?;
    }
    sql.execute_one(
        "UPDATE domains SET verified_by = $2, verified_at = $3, updated_at = $4 WHERE id = $1",
        &[
            id.0.into(),
            verified.map(|(by, _)| by.as_str()).into(),
            verified.map(|(_, at)| at).into(),
            now.into(),
        ],
    )
    .await?;
    if domain.is_verified() != verified.is_some() {
        tracking::increment_hosts_version(sql).await?;
    }
    if verified_at.is_some() {
        keys::activate_pending(sql, &domain, now).await?;
    }
    if let (Some((_, at)), false) = (verified, domain.is_verified()) {
        let data = json!({ "domain": { "name": domain.name }, "verified_at": at.to_rfc3339() });
        let event = Some((EventKind::DomainVerified, data));
        pending_events::write(sql, ids, &domain, event, EVENTS_PER_TRANSACTION, now).await?;
    }
    Ok(())
}
