//! Writes all counters of a batch in one statement per table on PostgreSQL: a round trip per row would take longer than
//! the counting.

use deadpool_postgres::Transaction;
use postroad_model::ServerId;

use super::counter_key::CounterKey;
use crate::error::StoreError;

/// The column `shape` holds the breakdown, `at` the start of the span (`CounterKey`).
const WRITE_COUNTERS: &str = "INSERT INTO counters (server_id, grain, shape, at, dimensions, counts, first_attempt, sent)
    SELECT $1, row.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[],
                                 $8::bytea[])
        AS row (grain, shape, at, dimensions, counts, first_attempt, sent)
    ON CONFLICT (server_id, grain, shape, at, dimensions) DO UPDATE SET counts = excluded.counts,
        first_attempt = excluded.first_attempt, sent = excluded.sent";
/// The column `block` holds the start of a block of 32 days, `days` the counts of each of these days (`day_counts.rs`).
const WRITE_DOMAINS: &str = "INSERT INTO recipient_domains (server_id, block, domain, days)
    SELECT $1, row.* FROM unnest($2::bigint[], $3::text[], $4::bytea[]) AS row (block, domain, days)
    ON CONFLICT (server_id, block, domain) DO UPDATE SET days = excluded.days";

pub(crate) async fn write_counters(
    transaction: &Transaction<'_>,
    server_id: ServerId,
    rows: &[(CounterKey, [Vec<u8>; 3])],
) -> Result<(), StoreError> {
    let numbers = |part: fn(&CounterKey) -> i64| rows.iter().map(|(key, _)| part(key)).collect::<Vec<i64>>();
    let (grains, breakdowns) = (numbers(|key| key.0), numbers(|key| key.1));
    let (starts, dimensions) = (numbers(|key| key.2), numbers(|key| key.3));
    let values = |part: usize| rows.iter().map(|(_, values)| values[part].as_slice()).collect::<Vec<&[u8]>>();
    let (counts, first_attempts, sents) = (values(0), values(1), values(2));
    let write = transaction.prepare_cached(WRITE_COUNTERS).await?;
    transaction
        .execute(
            &write,
            &[&server_id.0, &grains, &breakdowns, &starts, &dimensions, &counts, &first_attempts, &sents],
        )
        .await?;
    Ok(())
}

pub(crate) async fn write_recipient_domains(
    transaction: &Transaction<'_>,
    server_id: ServerId,
    rows: &[((i64, String), Vec<u8>)],
) -> Result<(), StoreError> {
    let block_starts: Vec<i64> = rows.iter().map(|((block_start, _), _)| *block_start).collect();
    let domains: Vec<&str> = rows.iter().map(|((_, domain), _)| domain.as_str()).collect();
    let days: Vec<&[u8]> = rows.iter().map(|(_, days)| days.as_slice()).collect();
    let write = transaction.prepare_cached(WRITE_DOMAINS).await?;
    transaction.execute(&write, &[&server_id.0, &block_starts, &domains, &days]).await?;
    Ok(())
}
