//! Reads entries, and checks that none was changed or removed.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, Timestamp};

use super::{AuditEntry, chain};
use crate::error::StoreError;
use crate::sql::{Row, Sql, Value};
use crate::{Result, Store};

/// Entries checked in one read.
const VERIFY_PAGE: i64 = 1_000;

/// Entries of an account; `None` takes all.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub operation: Option<String>,
    pub subject: Option<String>,
    pub subject_id: Option<i64>,
    pub actor: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// Result of checking a part of one account's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditVerdict {
    pub account_id: AccountId,
    /// Number of entries that exist unchanged.
    pub intact_count: i64,
    /// Hash of the last of them in hexadecimal. Kept elsewhere, it can prove later that none was removed.
    pub hash: String,
    /// The number of the first entry that is missing or changed.
    pub broken_at: Option<i64>,
    /// Whether entries after these are still to be checked.
    pub has_more: bool,
}

impl AuditVerdict {
    fn new(account_id: AccountId, intact_count: i64, hash: &[u8], broken_at: Option<i64>) -> Self {
        Self { account_id, intact_count, hash: chain::hex(hash), broken_at, has_more: false }
    }
}

#[boxed_futures]
impl Store {
    /// Newest first, before the entry `before`.
    pub async fn list_audit(
        &self,
        account_id: AccountId,
        filter: AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        self.read(move |sql| Box::pin(list(sql, account_id, filter, before, limit as i64))).await
    }

    /// Oldest first, after the entry `after`.
    pub async fn export_audit(
        &self,
        account_id: AccountId,
        filter: AuditFilter,
        after: i64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        self.read(move |sql| Box::pin(export(sql, account_id, filter, after, limit as i64))).await
    }

    /// Accounts after `after` that have entries or a chain head.
    pub async fn list_audited_accounts(&self, after: AccountId, limit: usize) -> Result<Vec<AccountId>> {
        let text = "SELECT account_id FROM audit_heads WHERE account_id > $1
                    UNION SELECT account_id FROM audit WHERE account_id > $1
                    ORDER BY account_id LIMIT $2";
        let params = vec![after.0.into(), (limit as i64).into()];
        self.fetch_all(text, params, |row| row.int(0).map(AccountId)).await
    }

    /// Follows the chain of an account for a thousand entries, or to its head. Begins after the entry `after` with
    /// this hash, which an earlier part returned; 0 begins with the first.
    pub async fn verify_audit(&self, account_id: AccountId, after: i64, hash: &str) -> Result<AuditVerdict> {
        // Read the head first: entries added meanwhile come after it.
        let head = self
            .fetch_opt(
                "SELECT seq, hash FROM audit_heads WHERE account_id = $1",
                vec![account_id.0.into()],
                |row| Ok((row.int(0)?, row.blob(1)?)),
            )
            .await?;
        let (mut seq, mut previous) =
            (after, if after == 0 { chain::START.to_vec() } else { chain::from_hex(hash) });
        let Some((head_seq, head_hash)) = head else {
            // Every entry is written together with the head.
            let has_entries =
                !self.read(move |sql| Box::pin(read_chain(sql, account_id, 0))).await?.is_empty();
            return Ok(AuditVerdict::new(account_id, 0, &previous, has_entries.then_some(1)));
        };
        let entries = self.read(move |sql| Box::pin(read_chain(sql, account_id, after))).await?;
        let may_have_more = entries.len() as i64 == VERIFY_PAGE;
        let is_up_to_head = |entry: &ChainEntry| entry.0.seq <= head_seq;
        for (entry, before, after, hash) in entries.into_iter().take_while(is_up_to_head) {
            let expected = chain::hash(&previous, &entry, before.as_deref(), after.as_deref());
            if entry.seq != seq + 1 || expected != hash {
                return Ok(AuditVerdict::new(account_id, seq, &previous, Some(seq + 1)));
            }
            (seq, previous) = (entry.seq, hash);
        }
        let broken_at = if seq >= head_seq {
            (previous != head_hash).then_some(seq)
        } else {
            (!may_have_more).then_some(seq + 1)
        };
        let verdict = AuditVerdict::new(account_id, seq, &previous, broken_at);
        Ok(AuditVerdict { has_more: seq < head_seq && broken_at.is_none(), ..verdict })
    }

    /// Whether the account has an audit log. True also for deleted accounts.
    pub async fn has_audit_log(&self, account_id: AccountId) -> Result<bool> {
        let text = "SELECT account_id FROM audit_heads WHERE account_id = $1";
        Ok(self.fetch_opt(text, vec![account_id.0.into()], |row| row.int(0)).await?.is_some())
    }

    /// The hash of one entry, as hexadecimal digits.
    pub async fn find_audit_hash(&self, account_id: AccountId, seq: i64) -> Result<Option<String>> {
        let text = "SELECT hash FROM audit WHERE account_id = $1 AND seq = $2";
        let hash = self.fetch_opt(text, vec![account_id.0.into(), seq.into()], |row| row.blob(0)).await?;
        Ok(hash.map(|hash| chain::hex(&hash)))
    }
}

type ChainEntry = (AuditEntry, Option<String>, Option<String>, Vec<u8>);

async fn read_chain(sql: &Sql<'_>, account_id: AccountId, after: i64) -> Result<Vec<ChainEntry>, StoreError> {
    let rows = sql
        .query(
            "SELECT account_id, seq, at, actor, actor_id, address, operation, subject, subject_id, before, after, hash
             FROM audit WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            &[account_id.0.into(), after.into(), VERIFY_PAGE.into()],
        )
        .await?;
    rows.iter().map(|row| Ok((read(row)?, row.text_opt(9)?, row.text_opt(10)?, row.blob(11)?))).collect()
}

/// A query for entries: `$by` is the condition that uses an index, the rest are the filter's other conditions.
macro_rules! entries {
    ($by:literal, $rest:literal) => {
        concat!(
            "SELECT account_id, seq, at, actor, actor_id, address, operation, subject, subject_id, before, after
             FROM audit
             WHERE account_id = $1 ",
            $by,
            " AND (CAST($2 AS TEXT) IS NULL OR operation = $2)
              AND (CAST($3 AS TEXT) IS NULL OR subject = $3)
              AND (CAST($4 AS BIGINT) IS NULL OR subject_id = $4)
              AND (CAST($5 AS TEXT) IS NULL OR actor = $5)
              AND at >= $6 AND at < $7 ",
            $rest
        )
    };
}

/// A page of entries, newest first.
macro_rules! newest {
    ($by:literal) => {
        entries!($by, "AND (at, seq) < ($8, $9) ORDER BY at DESC, seq DESC LIMIT $10")
    };
}

/// Ordered by time, because every index ends with it. The order by `seq` differs if the clock was set back.
async fn list(
    sql: &Sql<'_>,
    account_id: AccountId,
    filter: AuditFilter,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<AuditEntry>, StoreError> {
    let text = match &filter {
        AuditFilter { subject_id: Some(_), .. } => newest!("AND subject_id = $4"),
        AuditFilter { operation: Some(_), .. } => newest!("AND operation = $2"),
        AuditFilter { subject: Some(_), .. } => newest!("AND subject = $3"),
        AuditFilter { actor: Some(_), .. } => newest!("AND actor = $5"),
        _ => newest!(""),
    };
    let seq = before.unwrap_or(i64::MAX);
    let found = sql
        .query_opt(
            "SELECT at FROM audit WHERE account_id = $1 AND seq = $2",
            &[account_id.0.into(), seq.into()],
        )
        .await?;
    let at = found.map_or(Ok(i64::MAX), |row| row.int(0))?;
    let mut params = filter_params(account_id, filter);
    params.extend([at.into(), seq.into(), limit.into()]);
    sql.query(text, &params).await?.iter().map(read).collect()
}

/// Ordered by `seq`, so that a reader that continues after the last entry misses none.
async fn export(
    sql: &Sql<'_>,
    account_id: AccountId,
    filter: AuditFilter,
    after: i64,
    limit: i64,
) -> Result<Vec<AuditEntry>, StoreError> {
    let mut params = filter_params(account_id, filter);
    params.extend([after.into(), limit.into()]);
    let text = entries!("", "AND seq > $8 ORDER BY seq LIMIT $9");
    sql.query(text, &params).await?.iter().map(read).collect()
}

fn filter_params(account_id: AccountId, filter: AuditFilter) -> Vec<Value> {
    let micros = |time: Option<Timestamp>, otherwise| time.map_or(otherwise, Timestamp::as_micros);
    vec![
        account_id.0.into(),
        filter.operation.into(),
        filter.subject.into(),
        filter.subject_id.into(),
        filter.actor.into(),
        micros(filter.since, i64::MIN).into(),
        micros(filter.until, i64::MAX).into(),
    ]
}

fn read(row: &Row) -> Result<AuditEntry, StoreError> {
    let document = |at| if row.text_opt(at)?.is_none() { Ok(None) } else { row.json(at).map(Some) };
    Ok(AuditEntry {
        account_id: AccountId(row.int(0)?),
        seq: row.int(1)?,
        at: row.time(2)?,
        actor: row.text(3)?,
        actor_id: row.int_opt(4)?,
        address: row.text_opt(5)?,
        operation: row.text(6)?,
        subject: row.text(7)?,
        subject_id: row.int_opt(8)?,
        before: document(9)?,
        after: document(10)?,
    })
}
