//! Adds a batch of events to the counters, and moves the server's mark: the position up to which events are counted.
//!
//! The affected rows are first read and added up, without a lock; then everything is written at once. No other batch
//! changes these rows in between: adding to counters moves the server's mark, and if the mark has moved, nothing is
//! written.

use std::collections::HashMap;

use postroad_model::{EventCursor, ServerId};
use serde_json::json;

use super::counter_key::CounterKey;
use super::counter_sets::SetChanges;
use super::day_counts::DayCounts;
use super::dimensions::Breakdown;
use super::sums::Sums;
use super::tally::Tally;
use super::{counter_sets, counters_postgres};
use crate::error::StoreError;
use crate::sql::{Row, Sql, to_json};

/// New contents of the rows that a batch changes.
pub(crate) struct Additions {
    sets: SetChanges,
    counters: Vec<(CounterKey, [Vec<u8>; 3])>,
    /// New values of `recipient_domains.days`, by block of days and domain.
    recipient_domains: Vec<((i64, String), Vec<u8>)>,
}

/// Reads the counters and adds the batch. Called after reading the mark at which the batch begins.
pub(crate) async fn prepare(
    sql: &Sql<'_>,
    server_id: ServerId,
    tally: Tally,
) -> Result<Additions, StoreError> {
    let sets = counter_sets::prepare(sql, server_id, &tally).await?;
    let mut sums: HashMap<CounterKey, Sums> = HashMap::with_capacity(tally.counters.len());
    for (key, adds) in tally.counters {
        let (breakdown, number) =
            key.set.map_or((Breakdown::Total, 0), |index| (tally.sets[index].0, sets.numbers[index]));
        sums.insert((key.grain.code(), breakdown.code(), key.at, number), adds);
    }
    add_known_counters(sql, server_id, &mut sums).await?;
    let mut days = tally.recipient_domains;
    add_known_days(sql, server_id, &mut days).await?;
    // In table order, so that neighbouring rows are written together.
    let mut counters: Vec<_> = sums.into_iter().map(|(key, sums)| (key, sums.encode())).collect();
    counters.sort_unstable_by_key(|(key, _)| *key);
    let mut recipient_domains: Vec<_> = days.into_iter().map(|(key, days)| (key, days.encode())).collect();
    recipient_domains.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok(Additions { sets, counters, recipient_domains })
}

async fn add_known_counters(
    sql: &Sql<'_>,
    server_id: ServerId,
    sums: &mut HashMap<CounterKey, Sums>,
) -> Result<(), StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT c.grain, c.shape, c.at, c.dimensions, c.counts, c.first_attempt, c.sent FROM json_each($2) AS wanted
         CROSS JOIN counters c ON c.server_id = $1 AND c.grain = wanted.value ->> 0 AND c.shape = wanted.value ->> 1
                        AND c.at = wanted.value ->> 2 AND c.dimensions = wanted.value ->> 3"
    } else {
        "SELECT c.grain, c.shape, c.at, c.dimensions, c.counts, c.first_attempt, c.sent
         FROM json_array_elements(CAST($2::text AS json)) AS wanted (key)
         JOIN counters c ON c.server_id = $1 AND c.grain = (wanted.key ->> 0)::bigint
                        AND c.shape = (wanted.key ->> 1)::bigint AND c.at = (wanted.key ->> 2)::bigint
                        AND c.dimensions = (wanted.key ->> 3)::bigint"
    };
    let mut wanted: Vec<&CounterKey> = sums.keys().collect();
    wanted.sort_unstable();
    let rows = sql.query(text, &[server_id.0.into(), to_json(&wanted).into()]).await?;
    for mut row in rows {
        let key = (row.int(0)?, row.int(1)?, row.int(2)?, row.int(3)?);
        sums.entry(key).or_default().add_encoded(&take_encoded(&mut row, 4)?)?;
    }
    Ok(())
}

async fn add_known_days(
    sql: &Sql<'_>,
    server_id: ServerId,
    days: &mut HashMap<(i64, String), DayCounts>,
) -> Result<(), StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT r.block, r.domain, r.days FROM json_each($2) AS wanted
         CROSS JOIN recipient_domains r ON r.server_id = $1 AND r.block = wanted.value ->> 0
                        AND r.domain = wanted.value ->> 1"
    } else {
        "SELECT r.block, r.domain, r.days FROM json_array_elements(CAST($2::text AS json)) AS wanted (key)
         JOIN recipient_domains r ON r.server_id = $1 AND r.block = (wanted.key ->> 0)::bigint
                        AND r.domain = wanted.key ->> 1"
    };
    let wanted: Vec<_> = days.keys().map(|(block, domain)| json!([block, domain])).collect();
    for mut row in sql.query(text, &[server_id.0.into(), to_json(&wanted).into()]).await? {
        let key = (row.int(0)?, row.text(1)?);
        days.entry(key).or_default().add_encoded(&row.take_blob(2)?)?;
    }
    Ok(())
}

/// Writes the additions and moves the mark. Returns false, without counting, if another node counted these events
/// meanwhile, or a known set was removed.
pub(crate) async fn add(
    sql: &Sql<'_>,
    server_id: ServerId,
    from: EventCursor,
    to: EventCursor,
    additions: &Additions,
) -> Result<bool, StoreError> {
    if lock_mark(sql, server_id).await? != from
        || !counter_sets::write(sql, server_id, &additions.sets).await?
    {
        return Ok(false);
    }
    if let Sql::Postgres(transaction) = sql {
        counters_postgres::write_counters(transaction, server_id, &additions.counters).await?;
        counters_postgres::write_recipient_domains(transaction, server_id, &additions.recipient_domains)
            .await?;
    } else {
        write_counters(sql, server_id, additions).await?;
    }
    sql.execute_one(
        "UPDATE counter_marks SET xact = $2, event_id = $3 WHERE server_id = $1",
        &[server_id.0.into(), to.xact.into(), to.id.into()],
    )
    .await?;
    Ok(true)
}

async fn lock_mark(sql: &Sql<'_>, server_id: ServerId) -> Result<EventCursor, StoreError> {
    sql.execute(
        "INSERT INTO counter_marks (server_id, xact, event_id) VALUES ($1, 0, 0) ON CONFLICT (server_id) DO NOTHING",
        &[server_id.0.into()],
    )
    .await?;
    let text = if sql.is_sqlite() {
        "SELECT xact, event_id FROM counter_marks WHERE server_id = $1"
    } else {
        "SELECT xact, event_id FROM counter_marks WHERE server_id = $1 FOR UPDATE"
    };
    let row = sql.query_opt(text, &[server_id.0.into()]).await?.ok_or(StoreError::NotFound)?;
    Ok(EventCursor { xact: row.int(0)?, id: row.int(1)? })
}

async fn write_counters(sql: &Sql<'_>, server_id: ServerId, additions: &Additions) -> Result<(), StoreError> {
    for ((grain, breakdown, at, dimensions), [counts, first_attempt, sent]) in &additions.counters {
        sql.execute(
            "INSERT INTO counters (server_id, grain, shape, at, dimensions, counts, first_attempt, sent)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (server_id, grain, shape, at, dimensions) DO UPDATE SET counts = excluded.counts,
                 first_attempt = excluded.first_attempt, sent = excluded.sent",
            &[
                server_id.0.into(),
                (*grain).into(),
                (*breakdown).into(),
                (*at).into(),
                (*dimensions).into(),
                counts.clone().into(),
                first_attempt.clone().into(),
                sent.clone().into(),
            ],
        )
        .await?;
    }
    for ((block, domain), days) in &additions.recipient_domains {
        sql.execute(
            "INSERT INTO recipient_domains (server_id, block, domain, days) VALUES ($1, $2, $3, $4)
             ON CONFLICT (server_id, block, domain) DO UPDATE SET days = excluded.days",
            &[server_id.0.into(), (*block).into(), domain.as_str().into(), days.clone().into()],
        )
        .await?;
    }
    Ok(())
}

/// Takes the three encoded columns of a counter, which begin at `first`.
pub(crate) fn take_encoded(row: &mut Row, first: usize) -> Result<[Vec<u8>; 3], StoreError> {
    Ok([row.take_blob(first)?, row.take_blob(first + 1)?, row.take_blob(first + 2)?])
}
