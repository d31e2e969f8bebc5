//! Reading back what was added up.

use std::collections::HashMap;

use postroad_model::ServerId;

use super::counters::encoded;
use crate::counting::{Counts, Dimensions, Grain, Shape, Sums, add_days, block_start};
use crate::error::StoreError;
use crate::records::CounterRow;
use crate::sql::{Row, Sql, to_json};

fn counter_row(mut row: Row) -> Result<CounterRow, StoreError> {
    let mut sums = Sums::default();
    sums.add_encoded(&encoded(&mut row, 2)?)?;
    Ok(CounterRow { dimensions: row.int(0)?, at: row.int(1)?, sums })
}

/// Of one shape in these ranges; at most `limit` rows, in no order.
pub(crate) async fn list_counters(
    sql: &Sql<'_>,
    server_id: ServerId,
    (grain, shape): (Grain, Shape),
    ranges: &[(i64, i64)],
    limit: usize,
) -> Result<Vec<CounterRow>, StoreError> {
    let text = if sql.is_sqlite() {
        // A cross join keeps the order: range by range.
        "SELECT c.dimensions, c.at, c.counts, c.first_attempt, c.sent FROM json_each($4) AS range
         CROSS JOIN counters c ON c.server_id = $1 AND c.grain = $2 AND c.shape = $3
             AND c.at >= range.value ->> 0 AND c.at < range.value ->> 1
         LIMIT $5"
    } else {
        "SELECT c.dimensions, c.at, c.counts, c.first_attempt, c.sent
         FROM json_array_elements(CAST($4::text AS json)) AS range (value)
         JOIN counters c ON c.server_id = $1 AND c.grain = $2 AND c.shape = $3
             AND c.at >= (range.value ->> 0)::bigint AND c.at < (range.value ->> 1)::bigint
         LIMIT $5"
    };
    let params = [
        server_id.0.into(),
        grain.code().into(),
        shape.code().into(),
        to_json(&ranges).into(),
        (limit as i64).into(),
    ];
    sql.query(text, &params).await?.into_iter().map(counter_row).collect()
}

/// Of these sets in these spans: each by its key, without passing over those of others.
pub(crate) async fn find_counters(
    sql: &Sql<'_>,
    server_id: ServerId,
    (grain, shape): (Grain, Shape),
    numbers: &[i64],
    spans: &[i64],
) -> Result<Vec<CounterRow>, StoreError> {
    // Left to themselves, both engines might walk through all that is of the shape.
    let text = if sql.is_sqlite() {
        "SELECT c.dimensions, c.at, c.counts, c.first_attempt, c.sent
         FROM json_each($4) AS span CROSS JOIN json_each($5) AS wanted
         CROSS JOIN counters c ON c.server_id = $1 AND c.grain = $2 AND c.shape = $3
             AND c.at = span.value AND c.dimensions = wanted.value"
    } else {
        "SELECT c.dimensions, c.at, c.counts, c.first_attempt, c.sent
         FROM json_array_elements_text(CAST($4::text AS json)) AS span (at)
         CROSS JOIN LATERAL (
             SELECT * FROM counters c WHERE c.server_id = $1 AND c.grain = $2 AND c.shape = $3
             AND c.at = span.at::bigint AND c.dimensions = ANY (ARRAY(
                 SELECT n::bigint FROM json_array_elements_text(CAST($5::text AS json)) AS wanted (n)))
             OFFSET 0) c"
    };
    let params = [
        server_id.0.into(),
        grain.code().into(),
        shape.code().into(),
        to_json(&spans).into(),
        to_json(&numbers).into(),
    ];
    sql.query(text, &params).await?.into_iter().map(counter_row).collect()
}

/// The sets of dimensions that were counted on this day (seconds since 1970) or later; `None` if there are more.
pub(crate) async fn list_dimensions(
    sql: &Sql<'_>,
    server_id: ServerId,
    shape: Shape,
    since_day: i64,
    sets_max: usize,
) -> Result<Option<Vec<(i64, Dimensions)>>, StoreError> {
    let rows = sql
        .query(
            "SELECT id, domain, tag, provider, template, pool_id, credential_id FROM counter_dimensions
             WHERE server_id = $1 AND shape = $2 AND last_day >= $3 LIMIT $4",
            &[server_id.0.into(), shape.code().into(), since_day.into(), (sets_max as i64 + 1).into()],
        )
        .await?;
    if rows.len() > sets_max {
        return Ok(None);
    }
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
    rows.iter().map(dimensions).collect::<Result<_, _>>().map(Some)
}

/// By recipient domain, over whole days (UTC); at most `limit` rows, each of the days of one block.
pub(crate) async fn list_recipient_domains(
    sql: &Sql<'_>,
    server_id: ServerId,
    (from, to): (i64, i64),
    rows_max: usize,
) -> Result<Option<Vec<(String, Counts)>>, StoreError> {
    let mut sums: HashMap<String, Counts> = HashMap::new();
    let mut rows = 0;
    sql.each(
        "SELECT domain, block, days FROM recipient_domains
         WHERE server_id = $1 AND block >= $2 AND block < $3 LIMIT $4",
        &[server_id.0.into(), block_start(from).into(), to.into(), (rows_max as i64 + 1).into()],
        |row| {
            rows += 1;
            let domain = row.text(0)?;
            // Most are known already: a month is in two blocks more often than not.
            let sum = match sums.get_mut(domain) {
                Some(sum) => sum,
                None => sums.entry(domain.to_owned()).or_default(),
            };
            add_days(sum, row.blob(2)?, row.int(1)?, (from, to))
        },
    )
    .await?;
    Ok((rows <= rows_max).then(|| sums.into_iter().collect()))
}
