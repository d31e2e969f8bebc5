//! Things of which an account may have a limited number: their counts, and the check before one is added.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, CountedThing, LimitPeriod, ServerId, Timestamp};

use super::notices;
use crate::accept::account_limits::count_event;
use crate::accept::hourly_limit::crossed_lines;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// Query for the ceiling of an account.
const fn ceiling_text(what: CountedThing) -> &'static str {
    match what {
        CountedThing::Servers => "SELECT servers_max FROM accounts WHERE id = $1",
        CountedThing::Domains => "SELECT domains_max FROM accounts WHERE id = $1",
        CountedThing::Webhooks => "SELECT webhooks_max FROM accounts WHERE id = $1",
        CountedThing::Users => "SELECT users_max FROM accounts WHERE id = $1",
    }
}

/// Query for the count of an account's things, up to the second parameter.
const fn count_text(what: CountedThing) -> &'static str {
    match what {
        CountedThing::Servers => {
            "SELECT count(*) FROM (SELECT id FROM servers WHERE account_id = $1 LIMIT $2) AS found"
        }
        CountedThing::Domains => {
            "SELECT count(*) FROM (SELECT id FROM domains WHERE account_id = $1 LIMIT $2) AS found"
        }
        CountedThing::Webhooks => {
            "SELECT count(*) FROM (SELECT w.id FROM servers s JOIN webhooks w ON w.server_id = s.id
                                   WHERE s.account_id = $1 LIMIT $2) AS found"
        }
        CountedThing::Users => {
            "SELECT count(*) FROM (SELECT id FROM users WHERE account_id = $1
                                   UNION ALL
                                   SELECT -id FROM invitations WHERE account_id = $1 AND expires_at > $3
                                   LIMIT $2) AS found"
        }
    }
}

/// Messages of an account in its present periods, by `LimitPeriod::ALL`; `None` where nothing was counted.
pub type PeriodCounts = [Option<i64>; 3];

#[boxed_futures]
impl Store {
    /// How many of the things an account has, counted up to `most`.
    pub async fn count_things(
        &self,
        account_id: AccountId,
        what: CountedThing,
        most: usize,
    ) -> Result<usize> {
        let now = self.clock.now();
        let counted = self.read(move |sql| Box::pin(count(sql, account_id, what, most as i64, now))).await?;
        Ok(counted as usize)
    }

    pub async fn account_period_counts(&self, account_id: AccountId) -> Result<PeriodCounts> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(period_counts(sql, account_id, now))).await
    }
}

async fn count(
    sql: &Sql<'_>,
    account_id: AccountId,
    what: CountedThing,
    most: i64,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let mut params = vec![account_id.0.into(), most.into()];
    if what == CountedThing::Users {
        params.push(now.into());
    }
    sql.query_opt(count_text(what), &params).await?.map_or(Ok(0), |row| row.int(0))
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

/// Checks that the account may have one more, in the transaction that adds it; notes that a line was crossed. `CeilingReached`
/// if not.
pub(crate) async fn make_room(
    sql: &Sql<'_>,
    account_id: AccountId,
    what: CountedThing,
    now: Timestamp,
) -> Result<(), StoreError> {
    let ceiling = |row: Option<crate::sql::Row>| row.map_or(Ok(None), |row| row.int_opt(0));
    if ceiling(sql.query_opt(ceiling_text(what), &[account_id.0.into()]).await?)?.is_none() {
        return Ok(());
    }
    if !sql.is_sqlite() {
        // Two calls take turns, so that both count what the other added.
        let text = "SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE";
        sql.query_opt(text, &[account_id.0.into()]).await?;
    }
    let most = ceiling(sql.query_opt(ceiling_text(what), &[account_id.0.into()]).await?)?;
    let Some(most) = most.and_then(|most| u32::try_from(most).ok()) else { return Ok(()) };
    let before = count(sql, account_id, what, i64::from(most), now).await?;
    if before >= i64::from(most) {
        return Err(StoreError::CeilingReached { what, most });
    }
    for kind in crossed_lines(most, before, before + 1) {
        let event = count_event(kind, what.as_str(), most, before + 1);
        notices::add(sql, account_id, &event, now).await?;
    }
    Ok(())
}

/// Likewise for something of a server.
pub(crate) async fn make_room_of_server(
    sql: &Sql<'_>,
    server_id: ServerId,
    what: CountedThing,
    now: Timestamp,
) -> Result<(), StoreError> {
    let text = "SELECT account_id FROM servers WHERE id = $1";
    let row = sql.query_opt(text, &[server_id.0.into()]).await?.ok_or(StoreError::NotFound)?;
    make_room(sql, AccountId(row.int(0)?), what, now).await
}
