//! Stores the result of a check of a domain's DNS records, with its effects on the domain and its keys.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, DomainKeyId, EventKind, IdGenerator, Timestamp};
use serde_json::{Value, json};

use super::domain::VerifiedBy;
use super::lifecycle::{DomainChange, DomainState, FAILING_MAX, after_check, key_steps, name_after_check};
use super::pending_events::EVENTS_PER_TRANSACTION;
use super::{find, keys, pending_events, tracking};
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// The result of checking a domain's records. A value is `None` if the DNS gave no answer; the stored value then stays.
#[derive(Debug, Clone)]
pub struct DomainCheck {
    pub id: DomainId,
    /// Start of the check. The check is ignored if it began before the check whose result is stored.
    pub begun_at: Timestamp,
    /// Results of the records: a JSON array, stored as it is.
    pub records: String,
    /// Records as shown in events: a JSON array.
    pub event_records: String,
    /// Whether all required records are verified.
    pub is_good: Option<bool>,
    /// Keys whose records the DNS answered for, and whether these records are verified.
    pub keys: Vec<(DomainKeyId, bool)>,
    /// Whether `rp.<domain>` is an alias (CNAME) of the installation's bounce domain.
    pub has_return_path: Option<bool>,
    /// Whether `track.<domain>` is an alias (CNAME) of the installation's tracking host.
    pub has_track_alias: Option<bool>,
    /// Whether `track.<domain>` is such an alias and answers with a valid certificate.
    pub has_track_host: Option<bool>,
    pub next_check_at: Timestamp,
}

#[boxed_futures]
impl Store {
    /// Records a check with all its changes, unless the result of a later check is already recorded. Verification and
    /// failure get an event; if this process cannot create event ids, a node writes it later. Returns whether sending
    /// is affected.
    pub async fn record_domain_check(&self, check: DomainCheck) -> Result<bool> {
        let now = self.clock.now();
        let recorded = if self.ids().is_err() {
            self.write(move |sql| Box::pin(record(sql, None, check, now))).await?
        } else {
            let recording = self.write_with_ids(move |sql, ids| {
                Box::pin(async move { record(sql, Some(&ids), check, now).await })
            });
            recording.await?
        };
        if recorded.affects_sending {
            self.notify_change();
        }
        if recorded.affects_sending || recorded.has_event {
            self.notifier.notify_all();
        }
        Ok(recorded.affects_sending)
    }
}

/// Effect of a recorded check.
#[derive(Debug, Clone, Copy, Default)]
struct CheckEffect {
    affects_sending: bool,
    has_event: bool,
}

/// Records a check with its changes to the domain and its keys, and their event. Ignores a check that began before the
/// check whose result is stored.
async fn record(
    sql: &Sql<'_>,
    ids: Option<&IdGenerator>,
    check: DomainCheck,
    now: Timestamp,
) -> Result<CheckEffect, StoreError> {
    let domain = find::lock(sql, check.id).await?;
    // A start in the future was stored before the clock was set back.
    if domain.result_begun_at.is_some_and(|begun_at| begun_at > check.begun_at && begun_at <= now) {
        return Ok(CheckEffect::default());
    }
    let before = DomainState {
        verified_by: domain.verified_by,
        verified_at: domain.verified_at,
        good_since: domain.good_since,
        failing_since: domain.failing_since,
    };
    let (after, change) = after_check(before, check.is_good, now);
    let return_path = name_after_check(domain.return_path, check.has_return_path, now);
    let track_host = name_after_check(domain.track_host, check.has_track_host, now);
    // A change during the check, such as a new key, has set `next_check_at` itself. The earlier of the two times
    // applies.
    let is_changed = domain.updated_at > check.begun_at;
    let next_check_at =
        if is_changed { check.next_check_at.min(domain.next_check_at) } else { check.next_check_at };
    sql.execute_one(
        "UPDATE domains SET verified_by = $2, verified_at = $3, good_since = $4, failing_since = $5, checked_at = $6,
                next_check_at = $7, records = $8, return_path_since = $9, return_path_fails_since = $10,
                return_path_fails = $11, track_host_since = $12, track_host_fails_since = $13, track_host_fails = $14,
                track_alias_at = coalesce($15, track_alias_at), result_begun_at = $16
         WHERE id = $1",
        &[
            check.id.0.into(),
            after.verified_by.map(VerifiedBy::as_str).into(),
            after.verified_at.into(),
            after.good_since.into(),
            after.failing_since.into(),
            now.into(),
            next_check_at.into(),
            check.records.into(),
            return_path.since.into(),
            return_path.fails_since.into(),
            i64::from(return_path.fails).into(),
            track_host.since.into(),
            track_host.fails_since.into(),
            i64::from(track_host.fails).into(),
            (check.has_track_alias == Some(true)).then_some(now).into(),
            check.begun_at.into(),
        ],
    )
    .await?;
    let becomes_verified = after.verified_by.is_some() && before.verified_by.is_none();
    if becomes_verified || check.has_track_alias == Some(true) && !domain.has_track_alias {
        tracking::increment_hosts_version(sql).await?;
    }
    let steps = key_steps(&domain.keys, &check.keys, now);
    let affects_sending = after.verified_by != before.verified_by
        || return_path.since != domain.return_path.since
        || track_host.since != domain.track_host.since
        || !steps.is_empty();
    for (id, step) in steps {
        keys::apply_step(sql, id, step, now).await?;
    }
    let records = || serde_json::from_str::<Value>(&check.event_records).unwrap_or_default();
    let event = match (change, after.verified_at, after.failing_since) {
        (Some(DomainChange::Verified), Some(at), _) => Some((
            EventKind::DomainVerified,
            json!({ "domain": { "name": domain.name }, "verified_at": at.to_rfc3339() }),
        )),
        (Some(DomainChange::Failing), _, Some(since)) => Some((
            EventKind::DomainFailing,
            json!({
                "domain": { "name": domain.name },
                "failing_since": since.to_rfc3339(),
                "sending_stops_at": since.plus(FAILING_MAX).to_rfc3339(),
                "checked_at": now.to_rfc3339(),
                "records": records(),
            }),
        )),
        _ => None,
    };
    let has_event = event.is_some();
    if has_event {
        pending_events::write(sql, ids, &domain, event, EVENTS_PER_TRANSACTION, now).await?;
    }
    Ok(CheckEffect { affects_sending, has_event })
}
