//! Messages sent, bounced and complained about, by source address, day and receiver group.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{SourceId, Timestamp};

use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

const DAY_MICROS: i64 = 24 * 3_600 * 1_000_000;

/// Messages sent from a source, and their outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceCounts {
    pub sent: u64,
    pub bounced: u64,
    pub complained: u64,
}

/// Counts of a source on one UTC day for one receiver group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDay {
    /// Midnight (UTC) at the start of the day.
    pub day: Timestamp,
    pub provider: String,
    pub counts: SourceCounts,
}

#[boxed_futures]
impl Store {
    /// Counts of a source, newest day first, then by receiver group. Begins after the day and receiver group in
    /// `after`.
    pub async fn list_source_days(
        &self,
        id: SourceId,
        after: Option<(Timestamp, String)>,
        limit: usize,
    ) -> Result<Vec<SourceDay>> {
        self.read(move |sql| Box::pin(list_days(sql, id, after, limit as i64))).await
    }
}

pub(crate) async fn list_days(
    sql: &Sql<'_>,
    id: SourceId,
    after: Option<(Timestamp, String)>,
    limit: i64,
) -> Result<Vec<SourceDay>, StoreError> {
    let (day, provider) = after.map_or((i64::MAX, String::new()), |(at, name)| (day_of(at), name));
    let rows = sql
        .query(
            "SELECT day, provider, sent, bounced, complained FROM source_days
             WHERE source_id = $1 AND (day < $2 OR (day = $2 AND provider > $3))
             ORDER BY day DESC, provider LIMIT $4",
            &[id.0.into(), day.into(), provider.into(), limit.into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(SourceDay {
                day: Timestamp::from_micros(row.int(0)? * DAY_MICROS),
                provider: row.text(1)?,
                counts: read_counts(row, 2)?,
            })
        })
        .collect()
}

/// Reads the columns sent, bounced and complained, from `at` on.
pub(crate) fn read_counts(row: &Row, at: usize) -> Result<SourceCounts, StoreError> {
    Ok(SourceCounts {
        sent: row.int(at)? as u64,
        bounced: row.int(at + 1)? as u64,
        complained: row.int(at + 2)? as u64,
    })
}

/// Days since 1970 UTC.
pub(crate) fn day_of(moment: Timestamp) -> i64 {
    moment.as_secs().div_euclid(24 * 3_600)
}
