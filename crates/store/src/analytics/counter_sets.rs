//! Numbers of sets of dimensions. Each server has its own, assigned by whoever moves its mark.

use std::collections::HashMap;

use postroad_model::ServerId;
use serde_json::json;

use super::breakdown::Breakdown;
use super::counter_sets_postgres;
use super::dimensions::Dimensions;
use super::tally::Tally;
use crate::error::StoreError;
use crate::sql::{Sql, to_json};

/// What counting a batch changes about the server's sets.
pub(crate) struct SetChanges {
    /// Of the tally's sets, in their order.
    pub(crate) numbers: Vec<i64>,
    pub(crate) new: Vec<(i64, Breakdown, Dimensions)>,
    /// Known ones that were last counted on an earlier day.
    pub(crate) touched: Vec<i64>,
    pub(crate) last_day: i64,
}

/// Numbers all sets of a tally: known ones in one question, new ones from the next free number on.
pub(crate) async fn prepare(
    sql: &Sql<'_>,
    server_id: ServerId,
    tally: &Tally,
) -> Result<SetChanges, StoreError> {
    let mut changes = SetChanges {
        numbers: Vec::with_capacity(tally.sets.len()),
        new: Vec::new(),
        touched: Vec::new(),
        last_day: tally.last_day,
    };
    let known = find_known(sql, server_id, &tally.sets).await?;
    let mut free = if known.len() < tally.sets.len() { first_free(sql, server_id).await? } else { 0 };
    for (place, (breakdown, set)) in tally.sets.iter().enumerate() {
        if let Some((number, last_day)) = known.get(&place) {
            changes.numbers.push(*number);
            if *last_day < tally.last_day {
                changes.touched.push(*number);
            }
            continue;
        }
        changes.numbers.push(free);
        changes.new.push((free, *breakdown, set.clone()));
        free += 1;
    }
    Ok(changes)
}

async fn first_free(sql: &Sql<'_>, server_id: ServerId) -> Result<i64, StoreError> {
    let text = "SELECT id FROM counter_dimensions WHERE server_id = $1 ORDER BY id DESC LIMIT 1";
    let last = sql.query_opt(text, &[server_id.0.into()]).await?;
    Ok(last.map_or(Ok(0), |row| row.int(0))? + 1)
}

/// Numbers and last days, by the place of the set.
async fn find_known(
    sql: &Sql<'_>,
    server_id: ServerId,
    sets: &[(Breakdown, Dimensions)],
) -> Result<HashMap<usize, (i64, i64)>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT wanted.key, d.id, d.last_day FROM json_each($2) AS wanted
         CROSS JOIN counter_dimensions d ON d.server_id = $1 AND d.shape = wanted.value ->> 0
             AND d.domain = wanted.value ->> 1 AND d.tag = wanted.value ->> 2 AND d.provider = wanted.value ->> 3
             AND d.template = wanted.value ->> 4 AND d.pool_id = wanted.value ->> 5
             AND d.credential_id = wanted.value ->> 6"
    } else {
        "SELECT wanted.place - 1, d.id, d.last_day
         FROM json_array_elements(CAST($2::text AS json)) WITH ORDINALITY AS wanted (value, place)
         JOIN counter_dimensions d ON d.server_id = $1 AND d.shape = (wanted.value ->> 0)::bigint
             AND d.domain = wanted.value ->> 1 AND d.tag = wanted.value ->> 2 AND d.provider = wanted.value ->> 3
             AND d.template = wanted.value ->> 4 AND d.pool_id = (wanted.value ->> 5)::bigint
             AND d.credential_id = (wanted.value ->> 6)::bigint"
    };
    let wanted: Vec<_> = sets
        .iter()
        .map(|(breakdown, set)| {
            let Dimensions { domain, tag, provider, template, pool_id, credential_id } = set;
            json!([breakdown.code(), domain, tag, provider, template, pool_id, credential_id])
        })
        .collect();
    let rows = sql.query(text, &[server_id.0.into(), to_json(&wanted).into()]).await?;
    rows.iter().map(|row| Ok((row.int(0)? as usize, (row.int(1)?, row.int(2)?)))).collect()
}

/// False if a known set was removed meanwhile: it had not been counted for very long.
pub(crate) async fn write(
    sql: &Sql<'_>,
    server_id: ServerId,
    changes: &SetChanges,
) -> Result<bool, StoreError> {
    if let Sql::Postgres(transaction) = sql {
        return counter_sets_postgres::write(transaction, server_id, changes).await;
    }
    for number in &changes.touched {
        let touched = sql
            .execute(
                "UPDATE counter_dimensions SET last_day = $3 WHERE server_id = $1 AND id = $2",
                &[server_id.0.into(), (*number).into(), changes.last_day.into()],
            )
            .await?;
        if touched == 0 {
            return Ok(false);
        }
    }
    for (number, breakdown, set) in &changes.new {
        sql.execute(
            "INSERT INTO counter_dimensions
                 (server_id, id, shape, domain, tag, provider, template, pool_id, credential_id, last_day)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            &[
                server_id.0.into(),
                (*number).into(),
                breakdown.code().into(),
                set.domain.as_str().into(),
                set.tag.as_str().into(),
                set.provider.as_str().into(),
                set.template.as_str().into(),
                set.pool_id.into(),
                set.credential_id.into(),
                changes.last_day.into(),
            ],
        )
        .await?;
    }
    Ok(true)
}
