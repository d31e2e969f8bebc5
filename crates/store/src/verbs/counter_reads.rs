//! Reading back what was added up.

use postroad_model::ServerId;

use super::counters::encoded;
use crate::counting::{Counts, Dimensions, Grain, Sums};
use crate::error::StoreError;
use crate::records::CounterRow;
use crate::sql::{Row, Sql, to_json};

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
