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

/// Of one shape in these ranges, and of these sets only if they are given; at most `limit` rows, in no order.
pub(crate) async fn list_counters(
    sql: &Sql<'_>,
    server_id: ServerId,
    (grain, shape): (Grain, Shape),
    numbers: Option<&[i64]>,
    ranges: &[(i64, i64)],
    limit: usize,
) -> Result<Vec<CounterRow>, StoreError> {
    macro_rules! text {
        ($ranges:literal, $from:literal, $to:literal, $sets:literal) => {
            concat!(
                "SELECT c.dimensions, c.at, c.counts, c.first_attempt, c.sent FROM ",
                $ranges,
                " JOIN counters c ON c.server_id = $1 AND c.grain = $2 AND c.shape = $3 AND c.at >= ",
                $from,
                " AND c.at < ",
                $to,
                $sets,
                " LIMIT $5"
            )
        };
    }
    macro_rules! for_engine {
        ($sqlite:literal, $postgres:literal) => {
            if sql.is_sqlite() {
                // A cross join keeps the order: range by range.
                text!("json_each($4) AS range CROSS", "range.value ->> 0", "range.value ->> 1", $sqlite)
            } else {
                text!(
                    "json_array_elements(CAST($4::text AS json)) AS range (value)",
                    "(range.value ->> 0)::bigint",
                    "(range.value ->> 1)::bigint",
                    $postgres
                )
            }
        };
    }
    let mut params = vec![
        server_id.0.into(),
        grain.code().into(),
        shape.code().into(),
        to_json(&ranges).into(),
        (limit as i64).into(),
    ];
    let text = match numbers {
        None => for_engine!("", ""),
        Some(numbers) => {
            params.push(to_json(&numbers).into());
            for_engine!(
                " AND +c.dimensions IN (SELECT value FROM json_each($6))",
                " AND c.dimensions IN (SELECT n::bigint FROM json_array_elements_text(CAST($6::text AS json)) AS wanted (n))"
            )
        }
    };
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
    rows_max: usize,
) -> Result<Option<Vec<(String, Counts)>>, StoreError> {
    let rows = sql
        .query(
            "SELECT domain, block, days FROM recipient_domains
             WHERE server_id = $1 AND block >= $2 AND block < $3 LIMIT $4",
            &[server_id.0.into(), block_start(from).into(), to.into(), (rows_max as i64 + 1).into()],
        )
        .await?;
    if rows.len() > rows_max {
        return Ok(None);
    }
    // A month is in two blocks more often than not.
    let mut sums: HashMap<String, Counts> = HashMap::with_capacity(rows.len() / 2);
    for mut row in rows {
        let (domain, days) = (row.take_text(0)?, row.take_blob(2)?);
        add_days(sums.entry(domain).or_default(), &days, row.int(1)?, (from, to))?;
    }
    Ok(Some(sums.into_iter().collect()))
}
