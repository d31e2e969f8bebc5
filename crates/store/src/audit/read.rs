//! Reads audit entries, and checks that none was changed or removed.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, Timestamp};

use super::{AuditEntry, chain};
use crate::error::StoreError;
use crate::sql::{Row, Sql, Value};
use crate::{Result, Store};

/// Number of entries checked in one read.
const VERIFY_PAGE_ENTRIES: i64 = 1_000;
/// Maximum number of entries examined for one page. If few of them pass the filter, the page is not full.
const SCANNED_ENTRIES_MAX: i64 = 5_000;

/// Filter of an account's entries; `None` in a field matches all.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub operation: Option<String>,
    pub subject: Option<String>,
    pub subject_id: Option<i64>,
    pub actor: Option<String>,
    /// Id of the key or person.
    pub actor_id: Option<i64>,
    /// Actors whose entries a search by `actor_id` omits, because the reader must not learn who made them. Set it only
    /// with `actor_id`.
    pub hidden_actors: HiddenActors,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HiddenActors {
    #[default]
    Nobody,
    OperatorKeys,
    OperatorKeysAndPeople,
}

/// A page of entries. `next` is the argument `before` or `after` of the next call, if there may be more.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditPage {
    pub entries: Vec<AuditEntry>,
    pub next: Option<i64>,
}

/// Result of checking a part of one account's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditVerdict {
    pub account_id: AccountId,
    /// Number of entries from the account's first one on that exist unchanged. Includes the entries up to the argument
    /// `after`, which are not checked again.
    pub intact_count: i64,
    /// Hash of the last intact entry, in hexadecimal. A copy kept elsewhere can prove later that no entry up to this
    /// one was changed or removed.
    pub hash: String,
    /// The number of the first entry that is missing or changed.
    pub broken_at: Option<i64>,
    /// Whether more entries follow that were not checked yet.
    pub has_more: bool,
}

impl AuditVerdict {
    fn new(account_id: AccountId, intact_count: i64, hash: &[u8], broken_at: Option<i64>) -> Self {
        Self { account_id, intact_count, hash: chain::hex(hash), broken_at, has_more: false }
    }
}

#[boxed_futures]
impl Store {
    /// Entries before the entry `before`, newest first. A page may have fewer entries than `limit`, even none, although
    /// more follow.
    pub async fn list_audit(
        &self,
        account_id: AccountId,
        filter: AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<AuditPage> {
        self.read(move |sql| Box::pin(list(sql, account_id, filter, before, limit))).await
    }

    /// Entries after the entry `after`, oldest first. As with `list_audit`, a page may have fewer entries than `limit`.
    pub async fn export_audit(
        &self,
        account_id: AccountId,
        filter: AuditFilter,
        after: i64,
        limit: usize,
    ) -> Result<AuditPage> {
        self.read(move |sql| Box::pin(export(sql, account_id, filter, after, limit))).await
    }

    /// Accounts after `after` that have entries or a chain head.
    pub async fn list_audited_accounts(&self, after: AccountId, limit: usize) -> Result<Vec<AccountId>> {
        let text = "SELECT account_id FROM audit_heads WHERE account_id > $1
                    UNION SELECT account_id FROM audit WHERE account_id > $1
                    ORDER BY account_id LIMIT $2";
        let params = vec![after.0.into(), (limit as i64).into()];
        self.fetch_all(text, params, |row| row.int(0).map(AccountId)).await
    }

    /// Follows the chain of an account for a thousand entries, or to its head. Begins after the entry `after`, whose
    /// hash an earlier call returned; 0 begins with the first entry.
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
        let may_have_more = entries.len() as i64 == VERIFY_PAGE_ENTRIES;
        let is_up_to_head = |entry: &ChainEntry| entry.0.seq <= head_seq;
        for (entry, before_json, after_json, stored_hash) in entries.into_iter().take_while(is_up_to_head) {
            let expected = chain::hash(&previous, &entry, before_json.as_deref(), after_json.as_deref());
            if entry.seq != seq + 1 || expected != stored_hash {
                return Ok(AuditVerdict::new(account_id, seq, &previous, Some(seq + 1)));
            }
            (seq, previous) = (entry.seq, stored_hash);
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

/// An entry, its columns `before` and `after` as stored, and its hash.
type ChainEntry = (AuditEntry, Option<String>, Option<String>, Vec<u8>);

async fn read_chain(sql: &Sql<'_>, account_id: AccountId, after: i64) -> Result<Vec<ChainEntry>, StoreError> {
    let rows = sql
        .query(
            "SELECT account_id, seq, at, actor, actor_id, address, operation, subject, subject_id, before, after, hash
             FROM audit WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            &[account_id.0.into(), after.into(), VERIFY_PAGE_ENTRIES.into()],
        )
        .await?;
    rows.iter().map(|row| Ok((read(row)?, row.text_opt(9)?, row.text_opt(10)?, row.blob(11)?))).collect()
}

/// Id of the actor. The entry of a person who accepts an invitation has the actor 0, because accepting creates the
/// person: the subject's id is used instead.
macro_rules! actor_id_column {
    () => {
        "(CASE WHEN actor_id = 0 AND actor = 'user' AND subject = 'user' THEN subject_id ELSE actor_id END)"
    };
}

macro_rules! columns {
    () => {
        "account_id, seq, at, actor, actor_id, address, operation, subject, subject_id, before, after"
    };
}

/// The conditions of a filter, for the parameters `$2` to `$9`.
macro_rules! filter_conditions {
    () => {
        concat!(
            " (CAST($2 AS TEXT) IS NULL OR operation = $2)
              AND (CAST($3 AS TEXT) IS NULL OR subject = $3)
              AND (CAST($4 AS BIGINT) IS NULL OR subject_id = $4)
              AND (CAST($5 AS TEXT) IS NULL OR actor = $5)
              AND at >= $6 AND at < $7
              AND (CAST($8 AS BIGINT) IS NULL OR ",
            actor_id_column!(),
            " = $8)
              AND (CAST($9 AS BIGINT) < 1 OR actor <> 'operator_key')
              AND (CAST($9 AS BIGINT) < 2 OR actor <> 'user') "
        )
    };
}

const ALL_ENTRIES: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM (SELECT ",
    columns!(),
    " FROM audit WHERE account_id = $1 AND at >= $6 AND at < $7 AND (at, seq) < ($10, $11)
      ORDER BY at DESC, seq DESC LIMIT $12) a WHERE ",
    filter_conditions!(),
    "ORDER BY at DESC, seq DESC LIMIT $13"
);

/// SQL statements that find entries by one index: `page` reads a page, `last_scanned` finds the last entry examined for
/// that page.
struct ByIndex {
    page: &'static str,
    last_scanned: &'static str,
    /// Value to find in the index.
    value: Value,
}

macro_rules! by_index {
    ([$($column:tt)+], $param:literal, $value:expr) => {
        ByIndex {
            page: concat!(
                "SELECT ",
                columns!(),
                " FROM (SELECT ",
                columns!(),
                " FROM audit WHERE account_id = $1 AND ",
                $($column)+,
                " = ",
                $param,
                " AND at >= $6 AND at < $7 AND (at, seq) < ($10, $11) ORDER BY at DESC, seq DESC LIMIT $12) a WHERE ",
                filter_conditions!(),
                "ORDER BY at DESC, seq DESC LIMIT $13"
            ),
            last_scanned: concat!(
                "SELECT seq FROM audit WHERE account_id = $1 AND ",
                $($column)+,
                " = $2 AND at >= $3 AND at < $4 AND (at, seq) < ($5, $6) ORDER BY at DESC, seq DESC LIMIT 1 OFFSET $7"
            ),
            value: $value.into(),
        }
    };
}

/// The index for the condition of the filter that probably matches the fewest entries; `None` if the filter has no
/// conditions, or only times.
fn index_for(filter: &AuditFilter) -> Option<ByIndex> {
    Some(match filter {
        AuditFilter { subject_id: Some(id), .. } => by_index!(["subject_id"], "$4", *id),
        AuditFilter { actor_id: Some(id), .. } => by_index!([actor_id_column!()], "$8", *id),
        AuditFilter { operation: Some(name), .. } => by_index!(["operation"], "$2", name.as_str()),
        AuditFilter { subject: Some(kind), .. } => by_index!(["subject"], "$3", kind.as_str()),
        AuditFilter { actor: Some(kind), .. } => by_index!(["actor"], "$5", kind.as_str()),
        _ => return None,
    })
}

/// Lists entries by time, because every index ends with the time. The order by `seq` differs if the clock was set back.
async fn list(
    sql: &Sql<'_>,
    account_id: AccountId,
    filter: AuditFilter,
    before: Option<i64>,
    limit: usize,
) -> Result<AuditPage, StoreError> {
    let seq = before.unwrap_or(i64::MAX);
    let found = sql
        .query_opt(
            "SELECT at FROM audit WHERE account_id = $1 AND seq = $2",
            &[account_id.0.into(), seq.into()],
        )
        .await?;
    let at = found.map_or(Ok(i64::MAX), |row| row.int(0))?;
    let index = index_for(&filter);
    let (page, scanned) = match &index {
        Some(index) => (index.page, SCANNED_ENTRIES_MAX.max(limit as i64 + 1)),
        // Without other conditions every entry of the time range passes.
        None => (ALL_ENTRIES, limit as i64 + 1),
    };
    let mut params = filter_params(account_id, filter);
    let (since, until) = (params[5].clone(), params[6].clone());
    params.extend([at.into(), seq.into(), scanned.into(), (limit as i64 + 1).into()]);
    let mut entries: Vec<AuditEntry> =
        sql.query(page, &params).await?.iter().map(read).collect::<Result<_, _>>()?;
    if entries.len() > limit {
        entries.truncate(limit);
        let next = entries.last().map(|last| last.seq);
        return Ok(AuditPage { entries, next });
    }
    let Some(ByIndex { last_scanned, value, .. }) = index else {
        return Ok(AuditPage { entries, next: None });
    };
    let params = [account_id.0.into(), value, since, until, at.into(), seq.into(), (scanned - 1).into()];
    let last = sql.query_opt(last_scanned, &params).await?;
    let next = last.map(|row| row.int(0)).transpose()?;
    Ok(AuditPage { entries, next })
}

/// Lists entries by `seq`, so that a reader that continues after the last entry misses none.
async fn export(
    sql: &Sql<'_>,
    account_id: AccountId,
    filter: AuditFilter,
    after: i64,
    limit: usize,
) -> Result<AuditPage, StoreError> {
    let newest = sql
        .query_opt("SELECT max(seq) FROM audit WHERE account_id = $1", &[account_id.0.into()])
        .await?
        .map_or(Ok(None), |row| row.int_opt(0))?
        .unwrap_or(0);
    let scanned_to = after.saturating_add(SCANNED_ENTRIES_MAX);
    let mut params = filter_params(account_id, filter);
    params.extend([after.into(), scanned_to.into(), (limit as i64).into()]);
    let text = concat!(
        "SELECT ",
        columns!(),
        " FROM audit WHERE account_id = $1 AND seq > $10 AND seq <= $11 AND ",
        filter_conditions!(),
        "ORDER BY seq LIMIT $12"
    );
    let entries: Vec<AuditEntry> =
        sql.query(text, &params).await?.iter().map(read).collect::<Result<_, _>>()?;
    let next = match entries.last() {
        Some(last) if entries.len() == limit => Some(last.seq),
        _ => Some(scanned_to),
    };
    Ok(AuditPage { entries, next: next.filter(|next| *next < newest) })
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
        filter.actor_id.into(),
        (filter.hidden_actors as i64).into(),
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
