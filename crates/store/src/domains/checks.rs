//! Checks of domains' records: whose turn it is, and what a check changed.
//!
//! Of several nodes only one checks a domain: whoever moves `next_check_at` first. A node that dies meanwhile is made up
//! for when the time it moved it to has come.

use std::time::Duration;

use postroad_model::{DomainId, EventKind, IdGenerator, Timestamp};
use serde_json::{Value, json};

use super::lifecycle::{DomainChange, DomainState, FAILING_MAX, after_check, key_steps};
use super::records::{DomainCheck, VerifiedBy};
use super::{keys, statements};
use crate::error::StoreError;
use crate::sql::Sql;

/// Longer than any check takes.
const CHECK_TIME_MAX: Duration = Duration::from_mins(3);

/// Takes the domains whose check is due, from each account in turn.
pub(super) async fn claim_due(
    sql: &Sql<'_>,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<DomainId>, StoreError> {
    let due = sql
        .query(
            "SELECT id, next_check_at FROM
               (SELECT id, next_check_at, row_number() OVER (PARTITION BY account_id ORDER BY next_check_at, id) turn
                FROM domains WHERE next_check_at <= $1) due
             ORDER BY turn, next_check_at LIMIT $2",
            &[now.into(), limit.into()],
        )
        .await?;
    let mut claimed = Vec::new();
    for row in due {
        let text =
            "UPDATE domains SET next_check_at = $3, check_begun_at = $4 WHERE id = $1 AND next_check_at = $2";
        let params = [row.int(0)?.into(), row.int(1)?.into(), now.plus(CHECK_TIME_MAX).into(), now.into()];
        if sql.execute(text, &params).await? == 1 {
            claimed.push(DomainId(row.int(0)?));
        }
    }
    Ok(claimed)
}

/// Whether the domain may be checked now: no check of it began within `apart`.
pub(super) async fn claim(
    sql: &Sql<'_>,
    id: DomainId,
    apart: Duration,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // One in the future is from before the clock was set back.
    let claimed = sql
        .execute(
            "UPDATE domains SET check_begun_at = $3
             WHERE id = $1 AND (check_begun_at IS NULL OR check_begun_at <= $2 OR check_begun_at > $3)",
            &[id.0.into(), now.minus(apart).into(), now.into()],
        )
        .await?;
    Ok(claimed == 1)
}

/// Records a check, what it changes of the domain and its keys, and, with an id of `ids`, the event that tells of it.
/// Returns whether sending is affected.
pub(super) async fn record(
    sql: &Sql<'_>,
    ids: Option<&IdGenerator>,
    check: DomainCheck,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let domain = statements::lock(sql, check.id).await?;
    let before = DomainState {
        verified_by: domain.verified_by,
        verified_at: domain.verified_at,
        good_since: domain.good_since,
        failing_since: domain.failing_since,
    };
    let (after, news) = after_check(before, check.is_good, now);
    let since = |is_good: Option<bool>, before: Option<Timestamp>| match is_good {
        None => before,
        Some(true) => before.or(Some(now)),
        Some(false) => None,
    };
    let return_path_since = since(check.has_return_path, domain.return_path_since);
    let track_host_since = since(check.has_track_host, domain.track_host_since);
    sql.change(
        "UPDATE domains SET verified_by = $2, verified_at = $3, good_since = $4, failing_since = $5, checked_at = $6,
                next_check_at = $7, records = $8, return_path_since = $9, track_host_since = $10,
                track_alias_at = coalesce($11, track_alias_at)
         WHERE id = $1",
        &[
            check.id.0.into(),
            after.verified_by.map(VerifiedBy::as_str).into(),
            after.verified_at.into(),
            after.good_since.into(),
            after.failing_since.into(),
            now.into(),
            check.next_check_at.into(),
            check.records.into(),
            return_path_since.into(),
            track_host_since.into(),
            (check.has_track_alias == Some(true)).then_some(now).into(),
        ],
    )
    .await?;
    let steps = key_steps(&domain.keys, &check.keys, now);
    let affects_sending = after.verified_by != before.verified_by
        || return_path_since != domain.return_path_since
        || track_host_since != domain.track_host_since
        || !steps.is_empty();
    for (id, step) in steps {
        keys::step(sql, id, step, now).await?;
    }
    let records = || serde_json::from_str::<Value>(&check.told_records).unwrap_or_default();
    let (kind, data) = match (news, after.verified_at, after.failing_since) {
        (Some(DomainChange::Verified), Some(at), _) => (
            EventKind::DomainVerified,
            json!({ "domain": { "name": domain.name }, "verified_at": at.to_rfc3339() }),
        ),
        (Some(DomainChange::Failing), _, Some(since)) => (
            EventKind::DomainFailing,
            json!({
                "domain": { "name": domain.name },
                "failing_since": since.to_rfc3339(),
                "sending_stops_at": since.plus(FAILING_MAX).to_rfc3339(),
                "checked_at": now.to_rfc3339(),
                "records": records(),
            }),
        ),
        _ => return Ok(affects_sending),
    };
    if let Some(ids) = ids {
        statements::add_event(sql, ids, &domain, kind, &data, now).await?;
    }
    Ok(affects_sending)
}
