//! Release of a held message: the message now counts against the limits of its server and account.

use postroad_model::{EmailAddress, EventKind, IdGenerator, Status, Timestamp};
use serde_json::json;

use super::retry_result::RetryResult;
use super::waiting::{EntryChange, Key, MessageState, add_event};
use crate::accept::initial::{HoldCause, SCHEDULED, SCHEDULED_UNCOUNTED, hour_at};
use crate::accept::{AccountLimits, account_periods, hourly_limit};
use crate::error::StoreError;
use crate::events::{NewEvent, append};
use crate::messages::Message;
use crate::sql::Sql;

/// Which rules apply to a release.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReleaseRules {
    /// Whether the operator releases the message: then neither the server's hourly limit nor a ceiling on its mode
    /// applies.
    pub(super) by_operator: bool,
    /// Whether the message is exempt: no limit applies, and nothing is counted.
    pub(super) is_exempt: bool,
}

/// Queues a held message, if the limits of its server and account allow it. Scheduled messages count when they are due.
pub(super) async fn release(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    message: &Message,
    state: &MessageState,
    rules: ReleaseRules,
    now: Timestamp,
) -> Result<(RetryResult, EntryChange), StoreError> {
    let ReleaseRules { by_operator, is_exempt } = rules;
    let (server_id, _) = key;
    let unchanged = |retried| Ok((retried, EntryChange::Unchanged));
    let Some(server) = ServerLimits::find(sql, key).await? else { return unchanged(RetryResult::NotWaiting) };
    if server.is_kept_in_development && !by_operator {
        return unchanged(RetryResult::DevelopmentOnly);
    }
    let is_counted = !is_exempt && message.send_at.is_none_or(|at| at <= now);
    let hourly_limit = server.hourly_limit.filter(|_| is_counted);
    let account_limits = server.account_limits.filter(|_| is_counted);
    // Every transaction locks the hours of servers first, then the periods of accounts, and servers last.
    let mut before = 0;
    if let Some(limit) = hourly_limit {
        let counted_max = if by_operator { u32::MAX } else { limit };
        match count_in_hour(sql, key, counted_max, now).await? {
            Some(count) => before = count - 1,
            None => return unchanged(RetryResult::OverHourlyLimit { limit }),
        }
    }
    if let Some(limits) = &account_limits {
        let admission = account_periods::count(sql, limits, 1, now).await?;
        if let Some(HoldCause::OverAccountLimit { limit, period }) = admission.cause {
            uncount_hour(sql, key, hourly_limit, now).await?;
            return unchanged(RetryResult::OverAccountLimit { limit, period });
        }
    }
    let Some(due_at) = queue(sql, ids, key, message, state, is_exempt, now).await? else {
        uncount_hour(sql, key, hourly_limit, now).await?;
        if let Some(limits) = &account_limits {
            account_periods::subtract(sql, limits, 1, now).await?;
        }
        return unchanged(RetryResult::NotWaiting);
    };
    if let Some(limit) = hourly_limit {
        for event in hourly_limit::threshold_events(limit, hour_at(now), before, before + 1) {
            let event = hourly_limit::with_server(&event, server_id, Some(&server.name));
            append::append_server_event(sql, ids, server_id, &event, now).await?;
        }
    }
    Ok((RetryResult::Released, EntryChange::Queued(due_at)))
}

/// Limits that apply when a message of a server is released.
struct ServerLimits {
    name: String,
    hourly_limit: Option<u32>,
    /// Whether a ceiling of the operator or the account keeps the server in development.
    is_kept_in_development: bool,
    account_limits: Option<AccountLimits>,
}

impl ServerLimits {
    async fn find(sql: &Sql<'_>, (server_id, _): Key) -> Result<Option<Self>, StoreError> {
        let text = "SELECT a.id, a.hourly_limit, a.daily_limit, a.monthly_limit, s.hourly_limit, s.name,
                           coalesce(s.mode_ceiling, s.account_mode_ceiling)
                    FROM servers s JOIN accounts a ON a.id = s.account_id WHERE s.id = $1";
        let Some(row) = sql.query_opt(text, &[server_id.0.into()]).await? else { return Ok(None) };
        Ok(Some(Self {
            name: row.text(5)?,
            hourly_limit: row.int_opt(4)?.and_then(|limit| u32::try_from(limit).ok()),
            is_kept_in_development: row.text_opt(6)?.is_some(),
            account_limits: account_periods::read(&row, 0)?,
        }))
    }
}

/// Counts one message in the current hour of a server. Returns the new count, or `None` if the limit is reached.
async fn count_in_hour(
    sql: &Sql<'_>,
    (server_id, _): Key,
    limit: u32,
    now: Timestamp,
) -> Result<Option<i64>, StoreError> {
    if limit == 0 {
        return Ok(None);
    }
    let row = sql
        .query_opt(
            "INSERT INTO server_hours (server_id, hour, messages) VALUES ($1, $2, 1)
             ON CONFLICT (server_id, hour) DO UPDATE SET messages = server_hours.messages + 1
                 WHERE server_hours.messages < $3
             RETURNING messages",
            &[server_id.0.into(), hour_at(now).into(), i64::from(limit).into()],
        )
        .await?;
    row.map(|row| row.int(0)).transpose()
}

/// Subtracts a message from the limits that counted it at `counted_at`, because the message was rescheduled.
pub(super) async fn uncount(sql: &Sql<'_>, key: Key, counted_at: Timestamp) -> Result<(), StoreError> {
    let Some(server) = ServerLimits::find(sql, key).await? else { return Ok(()) };
    uncount_hour(sql, key, server.hourly_limit, counted_at).await?;
    match server.account_limits {
        Some(limits) => account_periods::subtract(sql, &limits, 1, counted_at).await,
        None => Ok(()),
    }
}

/// Subtracts a message from the hour of its server, if the server has an hourly limit.
async fn uncount_hour(
    sql: &Sql<'_>,
    (server_id, _): Key,
    hourly_limit: Option<u32>,
    counted_at: Timestamp,
) -> Result<(), StoreError> {
    if hourly_limit.is_some() {
        let text = "UPDATE server_hours SET messages = messages - 1
                    WHERE server_id = $1 AND hour = $2 AND messages > 0";
        sql.execute(text, &[server_id.0.into(), hour_at(counted_at).into()]).await?;
    }
    Ok(())
}

/// Queues the message; returns its due time, or `None` if somebody else changed the message first.
async fn queue(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    message: &Message,
    state: &MessageState,
    is_exempt: bool,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let (server_id, message_id) = key;
    let address = EmailAddress::parse(&message.rcpt_to).map_err(|e| {
        StoreError::Internal(format!("the recipient of held message {message_id} is no address: {e}"))
    })?;
    let options = &message.send.options;
    let due_at = message.send_at.map_or(now, |at| at.max(now));
    let is_scheduled = due_at > now;
    let status = if is_scheduled { Status::Scheduled } else { Status::Pending };
    let scheduled = match (is_scheduled, is_exempt) {
        (false, _) => 0,
        (true, false) => SCHEDULED,
        (true, true) => SCHEDULED_UNCOUNTED,
    };
    let changed = sql
        .execute(
            "UPDATE messages SET status = $4, last_seq = $5, hold_expiry = NULL
             WHERE server_id = $1 AND id = $2 AND last_seq = $3",
            &[
                server_id.0.into(),
                message_id.0.into(),
                state.last_seq.into(),
                status.as_str().into(),
                (state.last_seq + 1).into(),
            ],
        )
        .await?;
    if changed == 0 {
        return Ok(None);
    }
    let released = NewEvent { kind: EventKind::Released, data: json!({ "status": status }).to_string() };
    add_event(sql, ids, key, state, &released, now).await?;
    sql.execute(
        "INSERT INTO queue (server_id, message_id, domain, due_at, expires_at, attempts, pool_id, scheduled, released_at)
         VALUES ($1, $2, $3, $4, $5, 0, $6, $7, $8)",
        &[
            server_id.0.into(),
            message_id.0.into(),
            address.domain().as_str().into(),
            due_at.into(),
            options.expires_at.into(),
            options.pool_id.map(|id| id.0).into(),
            scheduled.into(),
            now.into(),
        ],
    )
    .await?;
    Ok(Some(due_at))
}
