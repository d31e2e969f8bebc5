//! Reads counters.

use std::collections::HashMap;
use std::sync::LazyLock;

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use super::counters::take_encoded;
use super::counts::Counts;
use super::day_counts::{add_days, block_start};
use super::dimensions::{Breakdown, Dimensions, each_column};
use super::grain::Grain;
use super::sums::Sums;
use crate::error::StoreError;
use crate::sql::{Row, Sql, to_json};
use crate::{Result, Store};

/// The sums of one time span and one set of dimensions.
#[derive(Debug, Clone)]
pub struct CounterRow {
    /// Number of the set of dimensions; 0 for the total.
    pub dimensions: i64,
    /// Start of the span, in seconds since 1970.
    pub at: i64,
    pub sums: Sums,
}

#[boxed_futures]
impl Store {
    /// The counters of one breakdown for spans that start in one of these ranges (start included, end excluded; seconds
    /// since 1970). At most `limit` rows, in no particular order.
    pub async fn list_counters(
        &self,
        server_id: ServerId,
        kind: (Grain, Breakdown),
        ranges: Vec<(i64, i64)>,
        limit: usize,
    ) -> Result<Vec<CounterRow>> {
        self.read(move |sql| {
            Box::pin(async move { list_counters(sql, server_id, kind, &ranges, limit).await })
        })
        .await
    }

    /// The sums of several servers over spans that start in one of these ranges (start included, end excluded; seconds
    /// since 1970), from the events counted so far. A server without counters is absent.
    pub async fn sum_totals(
        &self,
        servers: Vec<ServerId>,
        ranges: Vec<(Grain, i64, i64)>,
    ) -> Result<HashMap<ServerId, Sums>> {
        self.read(move |sql| Box::pin(async move { sum_totals(sql, &servers, &ranges).await })).await
    }

    /// The counters of these dimension sets in the spans that start at these times, each found by its key. The cost
    /// grows with sets times spans, not with the number of stored counters.
    pub async fn find_counters(
        &self,
        server_id: ServerId,
        kind: (Grain, Breakdown),
        numbers: Vec<i64>,
        spans: Vec<i64>,
    ) -> Result<Vec<CounterRow>> {
        self.read(move |sql| {
            Box::pin(async move { find_counters(sql, server_id, kind, &numbers, &spans).await })
        })
        .await
    }

    /// The dimension sets of a server that were counted on this day (seconds since 1970) or later, with their numbers.
    /// `None` if there are more than `sets_max`.
    pub async fn list_dimensions(
        &self,
        server_id: ServerId,
        breakdown: Breakdown,
        since_day: i64,
        sets_max: usize,
    ) -> Result<Option<Vec<(i64, Dimensions)>>> {
        self.read(move |sql| Box::pin(list_dimensions(sql, server_id, breakdown, since_day, sets_max))).await
    }

    /// Counts by recipient domain of the days (UTC) that begin in `range` (seconds since 1970). `None` if that would
    /// read more than `rows_max` rows: one for each domain and block of days.
    pub async fn list_recipient_domains(
        &self,
        server_id: ServerId,
        range: (i64, i64),
        rows_max: usize,
    ) -> Result<Option<Vec<(String, Counts)>>> {
        self.read(move |sql| Box::pin(list_recipient_domains(sql, server_id, range, rows_max))).await
    }
}

fn counter_row(mut row: Row) -> Result<CounterRow, StoreError> {
    let mut sums = Sums::default();
    sums.add_encoded(&take_encoded(&mut row, 2)?)?;
    Ok(CounterRow { dimensions: row.int(0)?, at: row.int(1)?, sums })
}

/// Counters of one breakdown (column `shape`) in these ranges; at most `limit` rows, in no particular order.
pub(crate) async fn list_counters(
    sql: &Sql<'_>,
    server_id: ServerId,
    (grain, breakdown): (Grain, Breakdown),
    ranges: &[(i64, i64)],
    limit: usize,
) -> Result<Vec<CounterRow>, StoreError> {
    let text = if sql.is_sqlite() {
        // SQLite does not reorder a cross join, so it reads range by range.
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
        breakdown.code().into(),
        to_json(&ranges).into(),
        (limit as i64).into(),
    ];
    sql.query(text, &params).await?.into_iter().map(counter_row).collect()
}

async fn sum_totals(
    sql: &Sql<'_>,
    servers: &[ServerId],
    ranges: &[(Grain, i64, i64)],
) -> Result<HashMap<ServerId, Sums>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT c.server_id, c.counts, c.first_attempt, c.sent FROM json_each($1) AS server
         CROSS JOIN json_each($2) AS range
         CROSS JOIN counters c ON c.server_id = server.value AND c.grain = range.value ->> 0 AND c.shape = $3
             AND c.at >= range.value ->> 1 AND c.at < range.value ->> 2"
    } else {
        "SELECT c.server_id, c.counts, c.first_attempt, c.sent
         FROM json_array_elements_text(CAST($1::text AS json)) AS server (id)
         CROSS JOIN json_array_elements(CAST($2::text AS json)) AS range (value)
         CROSS JOIN LATERAL (
             SELECT * FROM counters c WHERE c.server_id = server.id::bigint
             AND c.grain = (range.value ->> 0)::bigint AND c.shape = $3
             AND c.at >= (range.value ->> 1)::bigint AND c.at < (range.value ->> 2)::bigint
             OFFSET 0) c"
    };
    let servers: Vec<i64> = servers.iter().map(|server| server.0).collect();
    let ranges: Vec<(i64, i64, i64)> =
        ranges.iter().map(|(grain, from, to)| (grain.code(), *from, *to)).collect();
    let params = [to_json(&servers).into(), to_json(&ranges).into(), Breakdown::Total.code().into()];
    let mut sums: HashMap<ServerId, Sums> = HashMap::new();
    for mut row in sql.query(text, &params).await? {
        let of_server = sums.entry(ServerId(row.int(0)?)).or_default();
        of_server.add_encoded(&take_encoded(&mut row, 1)?)?;
    }
    Ok(sums)
}

/// Counters of these sets in these spans, each found by its key, without a scan of other counters.
pub(crate) async fn find_counters(
    sql: &Sql<'_>,
    server_id: ServerId,
    (grain, breakdown): (Grain, Breakdown),
    numbers: &[i64],
    spans: &[i64],
) -> Result<Vec<CounterRow>, StoreError> {
    // CROSS JOIN and OFFSET 0 keep the engines from scanning all counters of the breakdown.
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
        breakdown.code().into(),
        to_json(&spans).into(),
        to_json(&numbers).into(),
    ];
    sql.query(text, &params).await?.into_iter().map(counter_row).collect()
}

/// The sets of dimensions that were counted on this day (seconds since 1970) or later; `None` if there are more than
/// `sets_max`.
pub(crate) async fn list_dimensions(
    sql: &Sql<'_>,
    server_id: ServerId,
    breakdown: Breakdown,
    since_day: i64,
    sets_max: usize,
) -> Result<Option<Vec<(i64, Dimensions)>>, StoreError> {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let columns = each_column(|_, column| format!(", {}", column.name));
        format!(
            "SELECT id{columns} FROM counter_dimensions
             WHERE server_id = $1 AND shape = $2 AND last_day >= $3 LIMIT $4"
        )
    });
    let params =
        [server_id.0.into(), breakdown.code().into(), since_day.into(), (sets_max as i64 + 1).into()];
    let rows = sql.query(&TEXT, &params).await?;
    if rows.len() > sets_max {
        return Ok(None);
    }
    let dimensions = |row: &Row| Ok((row.int(0)?, Dimensions::read(row, 1)?));
    rows.iter().map(dimensions).collect::<Result<_, _>>().map(Some)
}

/// Counts by recipient domain, over whole days (UTC); `None` if that would read more than `rows_max` rows.
pub(crate) async fn list_recipient_domains(
    sql: &Sql<'_>,
    server_id: ServerId,
    (from, to): (i64, i64),
    rows_max: usize,
) -> Result<Option<Vec<(String, Counts)>>, StoreError> {
    let mut sums: HashMap<String, Counts> = HashMap::new();
    let mut rows = 0;
    sql.for_each_row(
        "SELECT domain, block, days FROM recipient_domains
         WHERE server_id = $1 AND block >= $2 AND block < $3 LIMIT $4",
        &[server_id.0.into(), block_start(from).into(), to.into(), (rows_max as i64 + 1).into()],
        |row| {
            rows += 1;
            let domain = row.text(0)?;
            // Most domains are already in the map: a month usually spans two blocks.
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
