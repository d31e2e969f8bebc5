//! Sets of dimensions written in two statements on PostgreSQL, however many there are.

use deadpool_postgres::Transaction;
use postroad_model::ServerId;

use super::counter_sets::SetChanges;
use super::dimensions::Dimensions;
use crate::error::StoreError;

const TOUCH: &str =
    "UPDATE counter_dimensions SET last_day = $3 WHERE server_id = $1 AND id = ANY ($2::bigint[])";
const INSERT: &str = "INSERT INTO counter_dimensions
        (server_id, id, shape, domain, tag, provider, template, pool_id, credential_id, last_day)
    SELECT $1, row.*, $2 FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
                                     $9::bigint[], $10::bigint[])
        AS row (id, shape, domain, tag, provider, template, pool_id, credential_id)";

/// False if a known set was removed meanwhile.
pub(crate) async fn write(
    transaction: &Transaction<'_>,
    server_id: ServerId,
    changes: &SetChanges,
) -> Result<bool, StoreError> {
    if !changes.touched.is_empty() {
        let touch = transaction.prepare_cached(TOUCH).await?;
        let touched =
            transaction.execute(&touch, &[&server_id.0, &changes.touched, &changes.last_day]).await?;
        if touched < changes.touched.len() as u64 {
            return Ok(false);
        }
    }
    if changes.new.is_empty() {
        return Ok(true);
    }
    let numbers: Vec<i64> = changes.new.iter().map(|(number, ..)| *number).collect();
    let breakdowns: Vec<i64> = changes.new.iter().map(|(_, breakdown, _)| breakdown.code()).collect();
    let texts = |part: fn(&Dimensions) -> &str| -> Vec<&str> {
        changes.new.iter().map(|(.., set)| part(set)).collect()
    };
    let ids = |part: fn(&Dimensions) -> i64| -> Vec<i64> {
        changes.new.iter().map(|(.., set)| part(set)).collect()
    };
    let insert = transaction.prepare_cached(INSERT).await?;
    transaction
        .execute(
            &insert,
            &[
                &server_id.0,
                &changes.last_day,
                &numbers,
                &breakdowns,
                &texts(|set| &set.domain),
                &texts(|set| &set.tag),
                &texts(|set| &set.provider),
                &texts(|set| &set.template),
                &ids(|set| set.pool_id),
                &ids(|set| set.credential_id),
            ],
        )
        .await?;
    Ok(true)
}
