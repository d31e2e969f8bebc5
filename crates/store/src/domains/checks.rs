//! Checks of domains' DNS records: claims checks, records their results, and writes waiting events.
//!
//! A due check is made by the node that first moves `next_check_at`. If that node dies, the check is repeated when the
//! new time comes.

use std::collections::HashMap;
use std::time::Duration;

use postroad_model::{AccountId, DomainId, EventKind, IdGenerator, Timestamp};
use serde_json::{Value, json};

use super::lifecycle::{DomainChange, DomainState, FAILING_MAX, after_check, key_steps, name_after_check};
use super::pending_events::EVENTS_AT_ONCE;
use super::records::{DomainCheck, VerifiedBy};
use super::{keys, pending_events, statements, tracking};
use crate::error::StoreError;
use crate::sql::{Sql, to_json};

/// A claimed check without a recorded result is repeated after this time, which is longer than any check takes.
const CHECK_TIME_MAX: Duration = Duration::from_mins(3);

/// Maximum number of due domains among which `take_turns` chooses.
const DUE_READ_MAX: i64 = 200;
/// Maximum number of concurrent checks of one account: name servers that never answer must not delay other accounts.
const PER_ACCOUNT_MAX: usize = 5;

/// Claims domains whose check is due, from each account in turn. `running` counts the running checks by account.
pub(super) async fn claim_due(
    sql: &Sql<'_>,
    limit: usize,
    running: HashMap<AccountId, usize>,
    now: Timestamp,
) -> Result<Vec<(DomainId, AccountId)>, StoreError> {
    // On PostgreSQL, rows that another node is choosing now are skipped instead of waited for.
    let text = if sql.is_sqlite() {
        "SELECT id, account_id FROM domains
         WHERE next_check_at <= $1 AND account_id NOT IN (SELECT value FROM json_each($3))
         ORDER BY next_check_at LIMIT $2"
    } else {
        "SELECT id, account_id FROM domains
         WHERE next_check_at <= $1 AND account_id NOT IN (SELECT CAST(value AS BIGINT) FROM
                json_array_elements_text(CAST(CAST($3 AS TEXT) AS JSON)) ids(value))
         ORDER BY next_check_at LIMIT $2
         FOR UPDATE SKIP LOCKED"
    };
    let full = running.iter().filter(|(_, count)| **count >= PER_ACCOUNT_MAX).map(|(account, _)| account.0);
    let full: Vec<i64> = full.collect();
    let rows = sql.query(text, &[now.into(), DUE_READ_MAX.into(), to_json(&full).into()]).await?;
    let due = rows
        .iter()
        .map(|row| Ok((DomainId(row.int(0)?), AccountId(row.int(1)?))))
        .collect::<Result<_, StoreError>>()?;
    let taken = take_turns(due, running, limit);
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    let claimed: Vec<i64> = taken.iter().map(|(id, _)| id.0).collect();
    let text = if sql.is_sqlite() {
        "UPDATE domains SET next_check_at = $2, check_begun_at = $3 WHERE id IN (SELECT value FROM json_each($1))"
    } else {
        "UPDATE domains SET next_check_at = $2, check_begun_at = $3
         WHERE id IN (SELECT CAST(value AS BIGINT) FROM
                json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON)) ids(value))"
    };
    sql.execute(text, &[to_json(&claimed).into(), now.plus(CHECK_TIME_MAX).into(), now.into()]).await?;
    Ok(taken)
}

/// Up to `limit` of the due domains: the first of each account, then the second of each, and so on. Running checks
/// count as turns that the account has had.
fn take_turns(
    due: Vec<(DomainId, AccountId)>,
    mut running: HashMap<AccountId, usize>,
    limit: usize,
) -> Vec<(DomainId, AccountId)> {
    let with_turn = due.into_iter().map(|(id, account)| {
        let turn = running.entry(account).or_default();
        *turn += 1;
        (*turn, (id, account))
    });
    let mut by_turn: Vec<_> = with_turn.filter(|(turn, _)| *turn <= PER_ACCOUNT_MAX).collect();
    // Stable: within a turn the longest waiting one comes first.
    by_turn.sort_by_key(|(turn, _)| *turn);
    by_turn.into_iter().take(limit).map(|(_, due)| due).collect()
}

/// Claims a check of the domain now. `false` if another check of it began within `apart`.
pub(super) async fn claim(
    sql: &Sql<'_>,
    id: DomainId,
    apart: Duration,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // A time in the future was stored before the clock was set back.
    let claimed = sql
        .execute(
            "UPDATE domains SET check_begun_at = $3
             WHERE id = $1 AND (check_begun_at IS NULL OR check_begun_at <= $2 OR check_begun_at > $3)",
            &[id.0.into(), now.minus(apart).into(), now.into()],
        )
        .await?;
    Ok(claimed == 1)
}

/// Effect of a recorded check.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recorded {
    pub(super) affects_sending: bool,
    pub(super) has_event: bool,
}

/// Records a check with its changes to the domain and its keys, and their event. Ignores a check that began before the
/// recorded check did.
pub(super) async fn record(
    sql: &Sql<'_>,
    ids: Option<&IdGenerator>,
    check: DomainCheck,
    now: Timestamp,
) -> Result<Recorded, StoreError> {
    let domain = statements::lock(sql, check.id).await?;
    // A start in the future was stored before the clock was set back.
    if domain.result_begun_at.is_some_and(|begun_at| begun_at > check.begun_at && begun_at <= now) {
        return Ok(Recorded::default());
    }
    let before = DomainState {
        verified_by: domain.verified_by,
        verified_at: domain.verified_at,
        good_since: domain.good_since,
        failing_since: domain.failing_since,
    };
    let (after, news) = after_check(before, check.is_good, now);
    let return_path = name_after_check(domain.return_path, check.has_return_path, now);
    let track_host = name_after_check(domain.track_host, check.has_track_host, now);
    // A change during the check, such as a new key, has set its own check time. The earlier of the two times applies.
    let is_changed = domain.updated_at > check.begun_at;
    let next_check_at =
        if is_changed { check.next_check_at.min(domain.next_check_at) } else { check.next_check_at };
    sql.change(
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
        tracking::note_change(sql).await?;
    }
    let steps = key_steps(&domain.keys, &check.keys, now);
    let affects_sending = after.verified_by != before.verified_by
        || return_path.since != domain.return_path.since
        || track_host.since != domain.track_host.since
        || !steps.is_empty();
    for (id, step) in steps {
        keys::step(sql, id, step, now).await?;
    }
    let records = || serde_json::from_str::<Value>(&check.event_records).unwrap_or_default();
    let news = match (news, after.verified_at, after.failing_since) {
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
    let has_event = news.is_some();
    if has_event {
        pending_events::write(sql, ids, &domain, news, EVENTS_AT_ONCE, now).await?;
    }
    Ok(Recorded { affects_sending, has_event })
}

/// Writes pending events of some domains; returns the number of domains examined.
pub(super) async fn write_pending_events(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let waiting = pending_events::claim_waiting(sql).await?;
    let mut room = EVENTS_AT_ONCE;
    for id in &waiting {
        if let Some(domain) = statements::find_by_id(sql, *id).await? {
            room = pending_events::write(sql, Some(ids), &domain, None, room, now).await?;
        }
    }
    Ok(waiting.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_take_turns() {
        let due = [(1, 7), (2, 7), (3, 7), (4, 8), (5, 9), (6, 8)];
        let taken = |running: &[(i64, usize)], limit| {
            let due = due.map(|(id, account)| (DomainId(id), AccountId(account))).to_vec();
            let running = running.iter().map(|(account, count)| (AccountId(*account), *count)).collect();
            take_turns(due, running, limit).into_iter().map(|(id, _)| id.0).collect::<Vec<i64>>()
        };
        assert_eq!(taken(&[], 4), [1, 4, 5, 2]);
        assert_eq!(taken(&[], 100), [1, 4, 5, 2, 6, 3]);
        assert_eq!(taken(&[(7, 3), (9, 5)], 100), [4, 6, 1, 2]);
    }
}
