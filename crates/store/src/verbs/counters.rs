//! Writing down what a batch of events adds, together with how far it went; reading it back.

use std::collections::HashMap;

use postroad_model::{EventCursor, ServerId};

use crate::counting::{Counts, Dimensions, Grain, Key, Sums, Tally};
use crate::error::StoreError;
use crate::postgres::counters as postgres;
use crate::records::CounterRow;
use crate::sql::{Row, Sql, to_json};

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
    let mut next = None;
    for dimensions in &tally.dimensions {
        let number = match find_number(sql, server_id, dimensions, last_day).await? {
            Some(number) => number,
            None => {
                let free = match next {
                    Some(next) => next,
                    None => first_free(sql, server_id).await?,
                };
                let (number, is_new) = add_dimensions(sql, server_id, dimensions, free, last_day).await?;
                next = Some(if is_new { free + 1 } else { free });
                number
            }
        };
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

/// Its number, and whether that is `free`.
async fn add_dimensions(
    sql: &Sql<'_>,
    server_id: ServerId,
    dimensions: &Dimensions,
    free: i64,
    last_day: i64,
) -> Result<(i64, bool), StoreError> {
    let mut dimensions = dimensions.clone();
    if free > DIMENSIONS_MAX {
        for text in [&mut dimensions.tag, &mut dimensions.template] {
            if !text.is_empty() {
                TOO_MANY.clone_into(text);
            }
        }
        if let Some(number) = find_number(sql, server_id, &dimensions, last_day).await? {
            return Ok((number, false));
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
    Ok((free, true))
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

fn encoded(row: &mut Row, first: usize) -> Result<[Vec<u8>; 3], StoreError> {
    Ok([row.take_blob(first)?, row.take_blob(first + 1)?, row.take_blob(first + 2)?])
}

fn counter_row(mut row: Row) -> Result<CounterRow, StoreError> {
    let mut sums = Sums::default();
    sums.add_encoded(&encoded(&mut row, 2)?)?;
    Ok(CounterRow { dimensions: row.int(0)?, at: row.int(1)?, sums })
}

pub(crate) async fn list_totals(
    sql: &Sql<'_>,
    server_id: ServerId,
    grain: Grain,
    from: i64,
    to: i64,
) -> Result<Vec<CounterRow>, StoreError> {
    let rows = sql
        .query(
            "SELECT dimensions, at, counts, first_attempt, sent FROM counters
             WHERE server_id = $1 AND grain = $2 AND dimensions = 0 AND at >= $3 AND at < $4",
            &[server_id.0.into(), grain.code().into(), from.into(), to.into()],
        )
        .await?;
    rows.into_iter().map(counter_row).collect()
}

/// Of these sets of dimensions; at most `limit` rows, in no order.
pub(crate) async fn list_of_dimensions(
    sql: &Sql<'_>,
    server_id: ServerId,
    grain: Grain,
    numbers: &[i64],
    (from, to): (i64, i64),
    limit: usize,
) -> Result<Vec<CounterRow>, StoreError> {
    let text = if sql.is_sqlite() {
        // A cross join keeps the order: set by set, not through all counters of the server.
        "SELECT c.dimensions, c.at, c.counts, c.first_attempt, c.sent FROM json_each($3) AS wanted
         CROSS JOIN counters c ON c.server_id = $1 AND c.grain = $2 AND c.dimensions = wanted.value
                        AND c.at >= $4 AND c.at < $5 LIMIT $6"
    } else {
        "SELECT c.dimensions, c.at, c.counts, c.first_attempt, c.sent
         FROM json_array_elements_text(CAST($3::text AS json)) AS wanted (number)
         JOIN counters c ON c.server_id = $1 AND c.grain = $2 AND c.dimensions = wanted.number::bigint
                        AND c.at >= $4 AND c.at < $5 LIMIT $6"
    };
    let params = [
        server_id.0.into(),
        grain.code().into(),
        to_json(&numbers).into(),
        from.into(),
        to.into(),
        (limit as i64).into(),
    ];
    sql.query(text, &params).await?.into_iter().map(counter_row).collect()
}

/// The sets of dimensions that were counted on this day (seconds since 1970) or later.
pub(crate) async fn list_dimensions(
    sql: &Sql<'_>,
    server_id: ServerId,
    since_day: i64,
) -> Result<Vec<(i64, Dimensions)>, StoreError> {
    let rows = sql
        .query(
            "SELECT id, domain, tag, provider, template, pool_id, credential_id FROM counter_dimensions
             WHERE server_id = $1 AND last_day >= $2",
            &[server_id.0.into(), since_day.into()],
        )
        .await?;
    let dimensions = |row: &Row| {
        let found = Dimensions {
            domain: row.text(1)?,
            tag: row.text(2)?,
            provider: row.text(3)?,
            template: row.text(4)?,
            pool_id: row.int(5)?,
            credential_id: row.int(6)?,
        };
        Ok((row.int(0)?, found))
    };
    rows.iter().map(dimensions).collect()
}

/// By recipient domain, over whole days (UTC); at most `limit` rows.
pub(crate) async fn list_recipient_domains(
    sql: &Sql<'_>,
    server_id: ServerId,
    (from, to): (i64, i64),
    limit: usize,
) -> Result<Vec<(String, Counts)>, StoreError> {
    let rows = sql
        .query(
            "SELECT domain, counts FROM recipient_domain_days WHERE server_id = $1 AND day >= $2 AND day < $3 LIMIT $4",
            &[server_id.0.into(), from.into(), to.into(), (limit as i64).into()],
        )
        .await?;
    let counts = |mut row: Row| {
        let mut counts = Counts::default();
        counts.add_encoded(&row.take_blob(1)?)?;
        Ok((row.text(0)?, counts))
    };
    rows.into_iter().map(counts).collect()
}
