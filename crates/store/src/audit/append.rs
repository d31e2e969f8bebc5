//! Writes audit entries.

use aws_lc_rs::digest::{SHA256, digest};
use futures_util::future::BoxFuture;
use postroad_model::{AccountId, Timestamp};

use super::subject::Snapshot;
use super::{Audit, AuditEntry, AuditSubject, INSTALLATION, chain};
use crate::Result;
use crate::error::StoreError;
use crate::setup::creations;
use crate::sql::{Sql, to_json};

/// Runs a change and records it in the same transaction, unless the subject is unchanged.
pub(crate) async fn record_change<'a, T>(
    sql: &'a Sql<'a>,
    audit: &Audit,
    now: Timestamp,
    change: BoxFuture<'a, Result<T>>,
) -> Result<T> {
    lock(sql, &audit.subject).await?;
    let before = audit.subject.snapshot(sql).await?;
    let result = change.await?;
    let after = audit.subject.snapshot(sql).await?;
    // A new object may have the name of an older object, whose snapshot is not an earlier state of the new one.
    let is_other_object = |old: &Snapshot| after.as_ref().is_some_and(|new| new.id != old.id);
    let before = before.filter(|before| !is_other_object(before));
    if before != after {
        if let (Some(creation), Some(subject_id)) =
            (&audit.creation, after.as_ref().and_then(|subject| subject.id))
        {
            creations::insert(sql, creation, subject_id, now).await?;
        }
        append(sql, audit, before, after, now).await?;
    }
    Ok(result)
}

/// On PostgreSQL, makes other recorded changes of the same object wait until this transaction ends, so that each entry
/// begins with the state that the previous one left.
async fn lock(sql: &Sql<'_>, subject: &AuditSubject) -> Result<(), StoreError> {
    if sql.is_sqlite() {
        return Ok(());
    }
    let name = digest(&SHA256, format!("{subject:?}").as_bytes());
    let key = name.as_ref().iter().take(8).fold(0_i64, |key, byte| (key << 8) | i64::from(*byte));
    sql.query("SELECT CAST(pg_advisory_xact_lock($1) AS TEXT)", &[key.into()]).await?;
    Ok(())
}

/// Records a change that the subject's row does not show; `changed` describes it.
pub(crate) async fn record_described(
    sql: &Sql<'_>,
    audit: &Audit,
    changed: serde_json::Map<String, serde_json::Value>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let after = audit.subject.snapshot_with(sql, changed).await?;
    append(sql, audit, None, after, now).await
}

async fn append(
    sql: &Sql<'_>,
    audit: &Audit,
    before: Option<Snapshot>,
    after: Option<Snapshot>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let known = after.as_ref().or(before.as_ref());
    let account_id: AccountId = known.map_or(INSTALLATION, |snapshot| snapshot.account_id);
    // Locks the account's head until the commit, so that entries are numbered one after the other.
    let mut head = sql
        .query_opt(
            "INSERT INTO audit_heads (account_id, seq, hash) VALUES ($1, 1, $2)
             ON CONFLICT (account_id) DO UPDATE SET seq = audit_heads.seq + 1 RETURNING seq, hash",
            &[account_id.0.into(), chain::START.to_vec().into()],
        )
        .await?
        .ok_or(StoreError::Conflict)?;
    let (actor, actor_id) = audit.actor;
    let entry = AuditEntry {
        account_id,
        seq: head.int(0)?,
        at: now,
        actor: actor.to_owned(),
        actor_id,
        address: audit.address.map(|address| address.to_string()),
        operation: audit.operation.to_owned(),
        subject: audit.subject.kind().to_owned(),
        subject_id: known.and_then(|snapshot| snapshot.id),
        before: before.map(|snapshot| snapshot.fields),
        after: after.map(|snapshot| snapshot.fields),
    };
    let (before, after) = (entry.before.as_ref().map(to_json), entry.after.as_ref().map(to_json));
    let hash = chain::hash(&head.take_blob(1)?, &entry, before.as_deref(), after.as_deref());
    sql.execute(
        "INSERT INTO audit (account_id, seq, at, actor, actor_id, address, operation, subject, subject_id, before, after, hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        &[
            account_id.0.into(),
            entry.seq.into(),
            now.into(),
            entry.actor.into(),
            entry.actor_id.into(),
            entry.address.into(),
            entry.operation.into(),
            entry.subject.into(),
            entry.subject_id.into(),
            before.into(),
            after.into(),
            hash.clone().into(),
        ],
    )
    .await?;
    sql.execute_one(
        "UPDATE audit_heads SET hash = $2 WHERE account_id = $1",
        &[account_id.0.into(), hash.into()],
    )
    .await
}
