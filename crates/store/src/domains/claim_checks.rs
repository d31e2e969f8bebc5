//! Claims checks of domains' DNS records.
//!
//! A due check is made by the node that first moves `next_check_at`. If that node dies, the check is repeated when the
//! new time comes.

use std::collections::HashMap;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainId, Timestamp};

use crate::error::StoreError;
use crate::sql::{Sql, to_json};
use crate::{Result, Store};

/// A claimed check without a recorded result is repeated after this time, which is longer than any check takes.
const CHECK_TIME_MAX: Duration = Duration::from_mins(3);

/// Maximum number of due domains among which `choose_round_robin` chooses.
const DUE_READ_MAX: i64 = 200;

/// Maximum number of concurrent checks of one account: name servers that never answer must not delay other accounts.
const CHECKS_PER_ACCOUNT_MAX: usize = 5;

#[boxed_futures]
impl Store {
    /// Claims domains whose check is due, round-robin over their accounts; `running` counts the running checks by
    /// account. No other call returns these domains until their check is recorded or `CHECK_TIME_MAX` has passed.
    pub async fn claim_due_domain_checks(
        &self,
        limit: usize,
        running: HashMap<AccountId, usize>,
    ) -> Result<Vec<(DomainId, AccountId)>> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(claim_due(sql, limit, running, now))).await
    }

    /// Claims a check of the domain now. `false` if another check of it began within `interval`.
    pub async fn claim_domain_check(&self, id: DomainId, interval: Duration) -> Result<bool> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(claim(sql, id, interval, now))).await
    }
}

async fn claim_due(
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
    let busy = running.iter().filter(|(_, count)| **count >= CHECKS_PER_ACCOUNT_MAX);
    let busy_accounts: Vec<i64> = busy.map(|(account, _)| account.0).collect();
    let rows = sql.query(text, &[now.into(), DUE_READ_MAX.into(), to_json(&busy_accounts).into()]).await?;
    let due = rows
        .iter()
        .map(|row| Ok((DomainId(row.int(0)?), AccountId(row.int(1)?))))
        .collect::<Result<_, StoreError>>()?;
    let chosen = choose_round_robin(due, running, limit);
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let claimed: Vec<i64> = chosen.iter().map(|(id, _)| id.0).collect();
    let text = if sql.is_sqlite() {
        "UPDATE domains SET next_check_at = $2, check_begun_at = $3 WHERE id IN (SELECT value FROM json_each($1))"
    } else {
        "UPDATE domains SET next_check_at = $2, check_begun_at = $3
         WHERE id IN (SELECT CAST(value AS BIGINT) FROM
                json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON)) ids(value))"
    };
    sql.execute(text, &[to_json(&claimed).into(), now.plus(CHECK_TIME_MAX).into(), now.into()]).await?;
    Ok(chosen)
}

/// Up to `limit` of the due domains: the first of each account, then the second of each, and so on. Running checks
/// count as rounds that the account has had.
fn choose_round_robin(
    due: Vec<(DomainId, AccountId)>,
    mut running: HashMap<AccountId, usize>,
    limit: usize,
) -> Vec<(DomainId, AccountId)> {
    let with_round = due.into_iter().map(|(id, account)| {
        let round = running.entry(account).or_default();
        *round += 1;
        (*round, (id, account))
    });
    let mut by_round: Vec<_> = with_round.filter(|(round, _)| *round <= CHECKS_PER_ACCOUNT_MAX).collect();
    // The sort is stable: within a round, the domain that has waited longest comes first.
    by_round.sort_by_key(|(round, _)| *round);
    by_round.into_iter().take(limit).map(|(_, due)| due).collect()
}

async fn claim(sql: &Sql<'_>, id: DomainId, interval: Duration, now: Timestamp) -> Result<bool, StoreError> {
    // A time in the future was stored before the clock was set back.
    let claimed = sql
        .execute(
            "UPDATE domains SET check_begun_at = $3
             WHERE id = $1 AND (check_begun_at IS NULL OR check_begun_at <= $2 OR check_begun_at > $3)",
            &[id.0.into(), now.minus(interval).into(), now.into()],
        )
        .await?;
    Ok(claimed == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_chosen_from_each_account_in_rounds() {
        let due = [(1, 7), (2, 7), (3, 7), (4, 8), (5, 9), (6, 8)];
        let chosen = |running: &[(i64, usize)], limit| {
            let due = due.map(|(id, account)| (DomainId(id), AccountId(account))).to_vec();
            let running = running.iter().map(|(account, count)| (AccountId(*account), *count)).collect();
            choose_round_robin(due, running, limit).into_iter().map(|(id, _)| id.0).collect::<Vec<i64>>()
        };
        assert_eq!(chosen(&[], 4), [1, 4, 5, 2]);
        assert_eq!(chosen(&[], 100), [1, 4, 5, 2, 6, 3]);
        assert_eq!(chosen(&[(7, 3), (9, 5)], 100), [4, 6, 1, 2]);
    }
}
