//! DKIM keys of domains: adds, lists and changes them.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, DomainKeyId, Timestamp};

use super::domain::{Domain, DomainKey, KeyAlgorithm, KeyState, NewDkimKey};
use super::lifecycle::KeyStep;
use crate::error::StoreError;
use crate::sql::{Row, Sql, to_json};
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Adds a key beside the keys that sign; the new key starts to sign when its DNS record is found. Replaces a
    /// pending key of the same algorithm. `Conflict` if another key of the domain has the selector.
    pub async fn rotate_domain_key(
        &self,
        id: DomainId,
        key: NewDkimKey,
        next_check_at: Timestamp,
    ) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(rotate(sql, id, key, next_check_at, now))).await
    }
}

async fn rotate(
    sql: &Sql<'_>,
    domain_id: DomainId,
    key: NewDkimKey,
    next_check_at: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.execute_one(
        "UPDATE domains SET updated_at = $2, next_check_at = $3 WHERE id = $1",
        &[domain_id.0.into(), now.into(), next_check_at.into()],
    )
    .await?;
    sql.execute(
        "DELETE FROM domain_keys WHERE domain_id = $1 AND algorithm = $2 AND state = 'pending'",
        &[domain_id.0.into(), key.algorithm.as_str().into()],
    )
    .await?;
    insert(sql, domain_id, key, KeyState::Pending, now).await
}

/// Inserts a key. `Conflict` if the domain already has a key with this selector.
pub(super) async fn insert(
    sql: &Sql<'_>,
    domain_id: DomainId,
    key: NewDkimKey,
    state: KeyState,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO domain_keys (domain_id, selector, algorithm, private_key, public_key, state, state_since,
                                  created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
        &[
            domain_id.0.into(),
            key.selector.into(),
            key.algorithm.as_str().into(),
            key.private_pkcs8.into(),
            key.public_spki.into(),
            state.as_str().into(),
            now.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Keys of the domains with these ids, in the order of their creation.
pub(super) async fn list(
    sql: &Sql<'_>,
    domain_ids: &[i64],
) -> Result<Vec<(DomainId, DomainKey)>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT domain_id, id, selector, algorithm, public_key, state, state_since, fails_since, created_at
         FROM domain_keys WHERE domain_id IN (SELECT value FROM json_each($1)) ORDER BY id"
    } else {
        "SELECT domain_id, id, selector, algorithm, public_key, state, state_since, fails_since, created_at
         FROM domain_keys WHERE domain_id IN (SELECT CAST(value AS BIGINT) FROM
                json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON)) ids(value))
         ORDER BY id"
    };
    let rows = sql.query(text, &[to_json(&domain_ids).into()]).await?;
    let read = |mut row: Row| {
        let key = DomainKey {
            id: DomainKeyId(row.int(1)?),
            selector: row.text(2)?,
            algorithm: row.parsed(3, KeyAlgorithm::parse)?,
            public_spki: row.take_blob(4)?,
            state: row.parsed(5, KeyState::parse)?,
            state_since: row.time(6)?,
            fails_since: row.time_opt(7)?,
            created_at: row.time(8)?,
        };
        Ok((DomainId(row.int(0)?), key))
    };
    rows.into_iter().map(read).collect()
}

/// Activates the pending keys of a domain that the operator has verified, unless a key of the same algorithm signs.
pub(super) async fn activate_pending(
    sql: &Sql<'_>,
    domain: &Domain,
    now: Timestamp,
) -> Result<(), StoreError> {
    let is_signing = |algorithm: KeyAlgorithm| {
        domain.keys.iter().any(|key| key.algorithm == algorithm && key.state == KeyState::Active)
    };
    for key in &domain.keys {
        if key.state == KeyState::Pending && !is_signing(key.algorithm) {
            apply_step(sql, key.id, KeyStep::Enter(KeyState::Active), now).await?;
        }
    }
    Ok(())
}

/// Applies a change to a key of a locked domain.
pub(super) async fn apply_step(
    sql: &Sql<'_>,
    id: DomainKeyId,
    step: KeyStep,
    now: Timestamp,
) -> Result<(), StoreError> {
    let changed = match step {
        KeyStep::Enter(state) => {
            let text =
                "UPDATE domain_keys SET state = $2, state_since = $3, fails_since = NULL WHERE id = $1";
            sql.execute(text, &[id.0.into(), state.as_str().into(), now.into()]).await?
        }
        KeyStep::SetFails(fails) => {
            let text = "UPDATE domain_keys SET fails_since = $2 WHERE id = $1";
            sql.execute(text, &[id.0.into(), fails.then_some(now).into()]).await?
        }
        KeyStep::Delete => sql.execute("DELETE FROM domain_keys WHERE id = $1", &[id.0.into()]).await?,
    };
    debug_assert_eq!(changed, 1, "the domain is locked");
    Ok(())
}
