//! Writing down what a batch of events adds, together with how far it went.

use std::collections::HashMap;

use postroad_model::{EventCursor, ServerId};

use crate::counting::{Dimensions, Grain, Key, Sums, Tally};
use crate::error::StoreError;
use crate::postgres::counters as postgres;
use crate::sql::{Row, Sql};

/// Sets of dimensions of a server. Only tags and templates are the sender's own words, so only they can be many: those
/// beyond are counted together.
const DIMENSIONS_MAX: i64 = 10_000;
/// What their tag and template read.
pub(crate) const TOO_MANY: &str = "(other)";

/// A row of `counters` without its server: grain, set of dimensions, start of its span.
pub(crate) type CounterKey = (i64, i64, i64);

/// False if somebody else has counted these events meanwhile; then nothing is written.
pub(crate) async fn add(
    sql: &Sql<'_>,
    server_id: ServerId,
    from: EventCursor,
    to: EventCursor,
    tally: &Tally,
) -> Result<bool, StoreError> {
    if lock_mark(sql, server_id).await? != from {
        return Ok(false);
    }
    let numbers = number_dimensions(sql, server_id, tally).await?;
    let number_of = |key: &Key| key.dimensions.map_or(0, |place| numbers[place]);
    // Two sets may have become one.
    let mut adds: HashMap<CounterKey, Sums> = HashMap::with_capacity(tally.counters.len());
    for (key, sums) in &tally.counters {
        adds.entry((key.grain.code(), number_of(key), key.at)).or_default().add(sums);
    }
    add_counters(sql, server_id, adds).await?;
    add_recipient_domains(sql, server_id, tally).await?;
    sql.change(
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

/// The numbers of a tally's sets of dimensions. Whoever has the mark locked is alone here.
async fn number_dimensions(
    sql: &Sql<'_>,
    server_id: ServerId,
    tally: &Tally,
) -> Result<Vec<i64>, StoreError> {
    let days = tally.counters.keys().filter(|key| key.grain == Grain::Day).map(|key| key.at);
    let Some(last_day) = days.max() else { return Ok(Vec::new()) };
    let mut numbers = Vec::with_capacity(tally.dimensions.len());
    let mut free = None;
    for dimensions in &tally.dimensions {
        if let Some(number) = find_number(sql, server_id, dimensions, last_day).await? {
            numbers.push(number);
            continue;
        }
        let next = match free {
            Some(next) => next,
            None => first_free(sql, server_id).await?,
        };
        let number = add_dimensions(sql, server_id, dimensions, next, last_day).await?;
        free = Some(if number == next { next + 1 } else { next });
        numbers.push(number);
    }
    Ok(numbers)
}

async fn first_free(sql: &Sql<'_>, server_id: ServerId) -> Result<i64, StoreError> {
    let text = "SELECT id FROM counter_dimensions WHERE server_id = $1 ORDER BY id DESC LIMIT 1";
    let last = sql.query_opt(text, &[server_id.0.into()]).await?;
    Ok(last.map_or(Ok(0), |row| row.int(0))? + 1)
}

async fn find_number(
    sql: &Sql<'_>,
    server_id: ServerId,
    dimensions: &Dimensions,
    last_day: i64,
) -> Result<Option<i64>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT id, last_day FROM counter_dimensions WHERE server_id = $1 AND domain = $2 AND tag = $3
             AND provider = $4 AND template = $5 AND pool_id = $6 AND credential_id = $7",
            &[
                server_id.0.into(),
                dimensions.domain.as_str().into(),
                dimensions.tag.as_str().into(),
                dimensions.provider.as_str().into(),
                dimensions.template.as_str().into(),
                dimensions.pool_id.into(),
                dimensions.credential_id.into(),
            ],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let number = row.int(0)?;
    if row.int(1)? < last_day {
        let text = "UPDATE counter_dimensions SET last_day = $3 WHERE server_id = $1 AND id = $2";
        sql.change(text, &[server_id.0.into(), number.into(), last_day.into()]).await?;
    }
    Ok(Some(number))
}

/// Its number: `free`, unless there are too many of them already.
async fn add_dimensions(
    sql: &Sql<'_>,
    server_id: ServerId,
    dimensions: &Dimensions,
    free: i64,
    last_day: i64,
) -> Result<i64, StoreError> {
    let mut dimensions = dimensions.clone();
    if free > DIMENSIONS_MAX {
        for text in [&mut dimensions.tag, &mut dimensions.template] {
            if !text.is_empty() {
                TOO_MANY.clone_into(text);
            }
        }
        if let Some(number) = find_number(sql, server_id, &dimensions, last_day).await? {
            return Ok(number);
        }
    }
    sql.execute(
        "INSERT INTO counter_dimensions (server_id, id, domain, tag, provider, template, pool_id, credential_id, last_day)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &[
            server_id.0.into(),
            free.into(),
            dimensions.domain.into(),
            dimensions.tag.into(),
            dimensions.provider.into(),
            dimensions.template.into(),
            dimensions.pool_id.into(),
            dimensions.credential_id.into(),
            last_day.into(),
        ],
    )
    .await?;
    Ok(free)
}

async fn add_counters(
    sql: &Sql<'_>,
    server_id: ServerId,
    adds: HashMap<CounterKey, Sums>,
) -> Result<(), StoreError> {
    if let Sql::Postgres(transaction) = sql {
        return postgres::add_counters(transaction, server_id, adds).await;
    }
    for ((grain, dimensions, at), mut sums) in adds {
        let key = [server_id.0.into(), grain.into(), dimensions.into(), at.into()];
        let known = sql
            .query_opt(
                "SELECT counts, first_attempt, sent FROM counters
                 WHERE server_id = $1 AND grain = $2 AND dimensions = $3 AND at = $4",
                &key,
            )
            .await?;
        if let Some(mut row) = known {
            sums.add_encoded(&encoded(&mut row, 0)?)?;
        }
        let values = sums.encode().map(Into::into);
        sql.execute(
            "INSERT INTO counters (server_id, grain, dimensions, at, counts, first_attempt, sent)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (server_id, grain, dimensions, at) DO UPDATE SET counts = excluded.counts,
                 first_attempt = excluded.first_attempt, sent = excluded.sent",
            &key.into_iter().chain(values).collect::<Vec<_>>(),
        )
        .await?;
    }
    Ok(())
}

async fn add_recipient_domains(sql: &Sql<'_>, server_id: ServerId, tally: &Tally) -> Result<(), StoreError> {
    if let Sql::Postgres(transaction) = sql {
        return postgres::add_recipient_domains(transaction, server_id, &tally.recipient_domains).await;
    }
    for ((day, domain), adds) in &tally.recipient_domains {
        let key = [server_id.0.into(), (*day).into(), domain.as_str().into()];
        let mut counts = adds.clone();
        let text =
            "SELECT counts FROM recipient_domain_days WHERE server_id = $1 AND day = $2 AND domain = $3";
        if let Some(mut row) = sql.query_opt(text, &key).await? {
            counts.add_encoded(&row.take_blob(0)?)?;
        }
        sql.execute(
            "INSERT INTO recipient_domain_days (server_id, day, domain, counts) VALUES ($1, $2, $3, $4)
             ON CONFLICT (server_id, day, domain) DO UPDATE SET counts = excluded.counts",
            &key.into_iter().chain([counts.encode().into()]).collect::<Vec<_>>(),
        )
        .await?;
    }
    Ok(())
}

pub(crate) fn encoded(row: &mut Row, first: usize) -> Result<[Vec<u8>; 3], StoreError> {
    Ok([row.take_blob(first)?, row.take_blob(first + 1)?, row.take_blob(first + 2)?])
}
