//! Adding to many counters in two statements: a round trip for each would take longer than the counting.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use postroad_model::ServerId;

use crate::counting::{Counts, Sums};
use crate::error::StoreError;
use crate::verbs::counters::CounterKey;

const READ_COUNTERS: &str = "SELECT known.grain, known.dimensions, known.at, counts, first_attempt, sent
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS wanted (grain, dimensions, at)
    JOIN counters AS known ON known.server_id = $1 AND known.grain = wanted.grain
        AND known.dimensions = wanted.dimensions AND known.at = wanted.at";

const WRITE_COUNTERS: &str = "INSERT INTO counters (server_id, grain, dimensions, at, counts, first_attempt, sent)
    SELECT $1, row.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[])
        AS row (grain, dimensions, at, counts, first_attempt, sent)
    ON CONFLICT (server_id, grain, dimensions, at) DO UPDATE SET counts = excluded.counts,
        first_attempt = excluded.first_attempt, sent = excluded.sent";

const READ_DOMAINS: &str = "SELECT known.day, known.domain, counts
    FROM unnest($2::bigint[], $3::text[]) AS wanted (day, domain)
    JOIN recipient_domain_days AS known
        ON known.server_id = $1 AND known.day = wanted.day AND known.domain = wanted.domain";

const WRITE_DOMAINS: &str = "INSERT INTO recipient_domain_days (server_id, day, domain, counts)
    SELECT $1, row.* FROM unnest($2::bigint[], $3::text[], $4::bytea[]) AS row (day, domain, counts)
    ON CONFLICT (server_id, day, domain) DO UPDATE SET counts = excluded.counts";

pub(crate) async fn add_counters(
    transaction: &Transaction<'_>,
    server_id: ServerId,
    mut adds: HashMap<CounterKey, Sums>,
) -> Result<(), StoreError> {
    let mut keys: Vec<CounterKey> = adds.keys().copied().collect();
    keys.sort_unstable();
    let column = |part: fn(&CounterKey) -> i64| keys.iter().map(part).collect::<Vec<i64>>();
    let (grains, dimensions, ats) = (column(|key| key.0), column(|key| key.1), column(|key| key.2));
    let read = transaction.prepare_cached(READ_COUNTERS).await?;
    for row in transaction.query(&read, &[&server_id.0, &grains, &dimensions, &ats]).await? {
        let known = [row.get(3), row.get(4), row.get(5)];
        adds.entry((row.get(0), row.get(1), row.get(2))).or_default().add_encoded(&known)?;
    }
    let (mut counts, mut first_attempts, mut sents) = (Vec::new(), Vec::new(), Vec::new());
    for key in &keys {
        let [count, first_attempt, sent] = adds[key].encode();
        counts.push(count);
        first_attempts.push(first_attempt);
        sents.push(sent);
    }
    let write = transaction.prepare_cached(WRITE_COUNTERS).await?;
    transaction
        .execute(&write, &[&server_id.0, &grains, &dimensions, &ats, &counts, &first_attempts, &sents])
        .await?;
    Ok(())
}

pub(crate) async fn add_recipient_domains(
    transaction: &Transaction<'_>,
    server_id: ServerId,
    adds: &HashMap<(i64, String), Counts>,
) -> Result<(), StoreError> {
    let mut sums: Vec<(i64, &str, Counts)> =
        adds.iter().map(|((day, domain), counts)| (*day, domain.as_str(), counts.clone())).collect();
    sums.sort_unstable_by_key(|(day, domain, _)| (*day, *domain));
    let days: Vec<i64> = sums.iter().map(|(day, ..)| *day).collect();
    let domains: Vec<&str> = sums.iter().map(|(_, domain, _)| *domain).collect();
    let read = transaction.prepare_cached(READ_DOMAINS).await?;
    for row in transaction.query(&read, &[&server_id.0, &days, &domains]).await? {
        let (day, domain): (i64, &str) = (row.get(0), row.get(1));
        if let Ok(place) = sums.binary_search_by_key(&(day, domain), |(day, domain, _)| (*day, *domain)) {
            sums[place].2.add_encoded(row.get(2))?;
        }
    }
    let counts: Vec<Vec<u8>> = sums.iter().map(|(.., counts)| counts.encode()).collect();
    let write = transaction.prepare_cached(WRITE_DOMAINS).await?;
    transaction.execute(&write, &[&server_id.0, &days, &domains, &counts]).await?;
    Ok(())
}
