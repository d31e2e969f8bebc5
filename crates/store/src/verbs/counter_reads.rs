//! Reading back what was added up.

use postroad_model::ServerId;

use super::counters::encoded;
use crate::counting::{Counts, Dimensions, Grain, Shape, Sums, block_start, sum_of_days};
use crate::error::StoreError;
use crate::records::CounterRow;
use crate::sql::{Row, Sql, to_json};

fn counter_row(mut row: Row) -> Result<CounterRow, StoreError> {
    let mut sums = Sums::default();
    sums.add_encoded(&encoded(&mut row, 2)?)?;
    Ok(CounterRow { dimensions: row.int(0)?, at: row.int(1)?, sums })
}

/// Of these sets of dimensions in these ranges; at most `limit` rows, in no order.
pub(crate) async fn list_counters(
    sql: &Sql<'_>,
    server_id: ServerId,
    grain: Grain,
    numbers: &[i64],
    ranges: &[(i64, i64)],
    limit: usize,
) -> Result<Vec<CounterRow>, StoreError> {
    let text = if sql.is_sqlite() {
        // A cross join keeps the order: range by range and set by set, not through all counters of the server.
        "SELECT c.dimensions, c.at, c.counts, c.first_attempt, c.sent
         FROM json_each($4) AS range CROSS JOIN json_each($3) AS wanted
         CROSS JOIN counters c ON c.server_id = $1 AND c.grain = $2 AND c.dimensions = wanted.value
                        AND c.at >= range.value ->> 0 AND c.at < range.value ->> 1 LIMIT $5"
    } else {
        "SELECT c.dimensions, c.at, c.counts, c.first_attempt, c.sent
         FROM json_array_elements(CAST($4::text AS json)) AS range (value)
         CROSS JOIN json_array_elements_text(CAST($3::text AS json)) AS wanted (number)
         JOIN counters c ON c.server_id = $1 AND c.grain = $2 AND c.dimensions = wanted.number::bigint
                        AND c.at >= (range.value ->> 0)::bigint AND c.at < (range.value ->> 1)::bigint LIMIT $5"
    };
    let params = [
        server_id.0.into(),
        grain.code().into(),
        to_json(&numbers).into(),
        to_json(&ranges).into(),
        (limit as i64).into(),
    ];
    sql.query(text, &params).await?.into_iter().map(counter_row).collect()
}

/// The sets of dimensions that were counted on this day (seconds since 1970) or later.
pub(crate) async fn list_dimensions(
    sql: &Sql<'_>,
    server_id: ServerId,
    shape: Shape,
    since_day: i64,
) -> Result<Vec<(i64, Dimensions)>, StoreError> {
    let rows = sql
        .query(
            "SELECT id, domain, tag, provider, template, pool_id, credential_id FROM counter_dimensions
             WHERE server_id = $1 AND shape = $2 AND last_day >= $3",
            &[server_id.0.into(), shape.code().into(), since_day.into()],
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

/// By recipient domain, over whole days (UTC); at most `limit` rows, each of the days of one block.
pub(crate) async fn list_recipient_domains(
    sql: &Sql<'_>,
    server_id: ServerId,
    (from, to): (i64, i64),
    limit: usize,
) -> Result<Vec<(String, Counts)>, StoreError> {
    let rows = sql
        .query(
            "SELECT domain, block, days FROM recipient_domains
             WHERE server_id = $1 AND block >= $2 AND block < $3 LIMIT $4",
            &[server_id.0.into(), block_start(from).into(), to.into(), (limit as i64).into()],
        )
        .await?;
    let counts = |mut row: Row| {
        let days = row.take_blob(2)?;
        Ok((row.text(0)?, sum_of_days(&days, row.int(1)?, (from, to))?))
    };
    rows.into_iter().map(counts).collect()
}
