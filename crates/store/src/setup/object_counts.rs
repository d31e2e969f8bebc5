//! Objects of which an account may have a limited number, such as servers and domains: their stored counts, and the
//! check before an object is added. Also reads an account's message counts.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, LimitPeriod, LimitedObject, ServerId, Timestamp};

use super::notices;
use crate::accept::account_limits::ceiling_event;
use crate::accept::hourly_limit::crossed_thresholds;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// Query for an account's ceiling on the number of these objects.
const fn ceiling_query(object: LimitedObject) -> &'static str {
    match object {
        LimitedObject::Servers => "SELECT servers_max FROM accounts WHERE id = $1",
        LimitedObject::Domains => "SELECT domains_max FROM accounts WHERE id = $1",
        LimitedObject::Webhooks => "SELECT webhooks_max FROM accounts WHERE id = $1",
        LimitedObject::Users => "SELECT users_max FROM accounts WHERE id = $1",
    }
}

/// Messages of an account in its current periods, in the order of `LimitPeriod::ALL`; `None` where nothing was counted.
pub type PeriodCounts = [Option<i64>; 3];

#[boxed_futures]
impl Store {
    /// Number of objects of this kind that an account has; open invitations count as users.
    pub async fn count_objects(&self, account_id: AccountId, object: LimitedObject) -> Result<usize> {
        let now = self.clock.now();
        let counted = self.read(move |sql| Box::pin(count(sql, account_id, object, now))).await?;
        Ok(usize::try_from(counted).unwrap_or(0))
    }

    pub async fn account_period_counts(&self, account_id: AccountId) -> Result<PeriodCounts> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(period_counts(sql, account_id, now))).await
    }
}

async fn count(
    sql: &Sql<'_>,
    account_id: AccountId,
    object: LimitedObject,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let text = "SELECT count FROM account_counts WHERE account_id = $1 AND thing = $2";
    let row = sql.query_opt(text, &[account_id.0.into(), object.as_str().into()]).await?;
    let stored = row.map_or(Ok(0), |row| row.int(0))?;
    if object != LimitedObject::Users {
        return Ok(stored);
    }
    // Open invitations count as users. They have no stored count, because they expire by themselves.
    let text = "SELECT count(*) FROM invitations WHERE account_id = $1 AND expires_at > $2";
    let row = sql.query_opt(text, &[account_id.0.into(), now.into()]).await?;
    Ok(stored + row.map_or(Ok(0), |row| row.int(0))?)
}

/// Updates the count of an account's objects, in the transaction that adds or removes some.
pub(crate) async fn adjust_count(
    sql: &Sql<'_>,
    account_id: AccountId,
    object: LimitedObject,
    change: i64,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO account_counts (account_id, thing, count) VALUES ($1, $2, $3)
         ON CONFLICT (account_id, thing) DO UPDATE SET count = account_counts.count + excluded.count",
        &[account_id.0.into(), object.as_str().into(), change.into()],
    )
    .await?;
    Ok(())
}

/// Updates the count of objects that belong to a server of the account.
pub(crate) async fn adjust_count_of_server(
    sql: &Sql<'_>,
    server_id: ServerId,
    object: LimitedObject,
    change: i64,
) -> Result<(), StoreError> {
    adjust_count(sql, account_of(sql, server_id).await?, object, change).await
}

async fn period_counts(
    sql: &Sql<'_>,
    account_id: AccountId,
    now: Timestamp,
) -> Result<PeriodCounts, StoreError> {
    let mut counts = [None; 3];
    for (at, period) in LimitPeriod::ALL.into_iter().enumerate() {
        let text =
            "SELECT messages FROM account_periods WHERE account_id = $1 AND period = $2 AND number = $3";
        let params = [account_id.0.into(), (period as i64 + 1).into(), period.number_at(now).into()];
        counts[at] = sql.query_opt(text, &params).await?.map(|row| row.int(0)).transpose()?;
    }
    Ok(counts)
}

/// Checks in the adding transaction that the account may have one more object. Adds an event at nine tenths of the
/// ceiling and at the ceiling. `CeilingReached` if the ceiling is reached already.
pub(crate) async fn check_ceiling(
    sql: &Sql<'_>,
    account_id: AccountId,
    object: LimitedObject,
    now: Timestamp,
) -> Result<(), StoreError> {
    let read = |row: Option<crate::sql::Row>| row.map_or(Ok(None), |row| row.int_opt(0));
    if read(sql.query_opt(ceiling_query(object), &[account_id.0.into()]).await?)?.is_none() {
        return Ok(());
    }
    if !sql.is_sqlite() {
        // Concurrent calls wait for each other, so that each counts what the other added.
        let text = "SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE";
        sql.query_opt(text, &[account_id.0.into()]).await?;
    }
    let ceiling = read(sql.query_opt(ceiling_query(object), &[account_id.0.into()]).await?)?;
    let Some(ceiling) = ceiling.and_then(|ceiling| u32::try_from(ceiling).ok()) else { return Ok(()) };
    let before = count(sql, account_id, object, now).await?;
    if before >= i64::from(ceiling) {
        return Err(StoreError::CeilingReached { object, ceiling });
    }
    for kind in crossed_thresholds(ceiling, before, before + 1) {
        let event = ceiling_event(kind, object.as_str(), ceiling, before + 1);
        notices::add(sql, account_id, &event, now).await?;
    }
    Ok(())
}

/// `check_ceiling` for an object of a server.
pub(crate) async fn check_ceiling_of_server(
    sql: &Sql<'_>,
    server_id: ServerId,
    object: LimitedObject,
    now: Timestamp,
) -> Result<(), StoreError> {
    check_ceiling(sql, account_of(sql, server_id).await?, object, now).await
}

async fn account_of(sql: &Sql<'_>, server_id: ServerId) -> Result<AccountId, StoreError> {
    let text = "SELECT account_id FROM servers WHERE id = $1";
    let row = sql.query_opt(text, &[server_id.0.into()]).await?.ok_or(StoreError::NotFound)?;
    row.int(0).map(AccountId)
}
