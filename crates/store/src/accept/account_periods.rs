//! Counts an account's messages per hour, day and month, for operations that both engines share.

use postroad_model::{AccountId, Timestamp};

use super::account_limits::{Admission, WindowCount};
use super::limit_values::{AccountLimits, Window};
use crate::error::StoreError;
use crate::setup::notices;
use crate::sql::{Row, Sql};

/// Reads four columns that begin at `at`: the account id and its hourly, daily and monthly limits.
pub(crate) fn read(row: &Row, at: usize) -> Result<Option<AccountLimits>, StoreError> {
    let limit = |at| Ok::<_, StoreError>(row.int_opt(at)?.and_then(|limit| u32::try_from(limit).ok()));
    let limits = [limit(at + 1)?, limit(at + 2)?, limit(at + 3)?];
    Ok(AccountLimits::of(AccountId(row.int(at)?), limits))
}

/// Counts new messages in the account's current windows, as far as they fit.
pub(crate) async fn count(
    sql: &Sql<'_>,
    limits: &AccountLimits,
    requested: usize,
    now: Timestamp,
) -> Result<Admission, StoreError> {
    let mut counts = Vec::new();
    for window in limits.windows(now) {
        let total = add(sql, limits.account_id, &window, requested as i64).await?;
        counts.push(WindowCount { window, before: total - requested as i64 });
    }
    let admission = Admission::of(counts, requested);
    if admission.admitted < requested {
        subtract(sql, limits, requested - admission.admitted, now).await?;
    }
    for event in admission.events() {
        notices::add(sql, limits.account_id, &event, now).await?;
    }
    Ok(admission)
}

/// Subtracts messages that were counted but not sent after all. The count stays at zero or above: messages from before
/// the account had a limit were not counted.
pub(crate) async fn subtract(
    sql: &Sql<'_>,
    limits: &AccountLimits,
    messages: usize,
    now: Timestamp,
) -> Result<(), StoreError> {
    for window in limits.windows(now) {
        sql.execute(
            "UPDATE account_periods SET messages = CASE WHEN messages > $4 THEN messages - $4 ELSE 0 END
             WHERE account_id = $1 AND period = $2 AND number = $3",
            &[
                limits.account_id.0.into(),
                window.period_code().into(),
                window.number.into(),
                (messages as i64).into(),
            ],
        )
        .await?;
    }
    Ok(())
}

/// Adds to the count of a window; returns the new count. The first addition to a window deletes the windows before the
/// previous one.
async fn add(
    sql: &Sql<'_>,
    account_id: AccountId,
    window: &Window,
    messages: i64,
) -> Result<i64, StoreError> {
    let (account, period, number) = (account_id.0, window.period_code(), window.number);
    let total = sql
        .query_opt(
            "INSERT INTO account_periods (account_id, period, number, messages) VALUES ($1, $2, $3, $4)
             ON CONFLICT (account_id, period, number)
             DO UPDATE SET messages = account_periods.messages + excluded.messages
             RETURNING messages",
            &[account.into(), period.into(), number.into(), messages.into()],
        )
        .await?;
    let total = total
        .ok_or_else(|| StoreError::Internal("counting messages of an account returned no row".into()))?
        .int(0)?;
    if total == messages {
        let text = "DELETE FROM account_periods WHERE account_id = $1 AND period = $2 AND number < $3";
        sql.execute(text, &[account.into(), period.into(), (number - 1).into()]).await?;
    }
    Ok(total)
}
