//! Several statements sent at once, without waiting for the answers in between.
//!
//! Of most of them the plan is kept: planning took a third of the database's time. That is for statements that go the same way
//! whatever the planner believes of the tables, because it believes what the last analysis said: that the queue is empty,
//! most of the time, and that a new week's tables are small. Inserts do, and so does what looks up one row for each of
//! the batch inside a `LATERAL … LIMIT 1`, which the planner cannot turn into a join of its own choice. A plain join of
//! the batch with a table is planned each time.

use std::fmt::Write as _;

use deadpool_postgres::{ClientWrapper, Object};
use futures_util::future::{BoxFuture, join_all};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::lease::{self, HandedOut};
use crate::error::StoreError;

pub(super) type Statement<'a> = (&'static str, Vec<&'a (dyn ToSql + Sync)>);

/// Begins a transaction in which plans are kept.
pub(super) const BEGIN_WITH_KEPT_PLANS: &str = "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan";
const KEEP_PLANS: &str = "SET LOCAL plan_cache_mode = force_generic_plan";
const PLAN_EACH_TIME: &str = "SET LOCAL plan_cache_mode = force_custom_plan";

/// What goes into a transaction, in this order.
pub(super) struct Flight<'a> {
    /// Without it the transaction is begun.
    pub(super) begin: Option<&'static str>,
    pub(super) planned_each_time: Vec<Statement<'a>>,
    /// None of them sees what another does.
    pub(super) with_kept_plans: Vec<Statement<'a>>,
    pub(super) handed_out: HandedOut,
}

/// Sends all statements and the COMMIT in one flight. If one of them fails, PostgreSQL turns the COMMIT into a ROLLBACK,
/// and we see the error of the one that failed.
pub(super) async fn commit(client: &ClientWrapper, flight: Flight<'_>) -> Result<(), StoreError> {
    let mut planned = Vec::with_capacity(flight.planned_each_time.len());
    for (text, params) in flight.planned_each_time {
        planned.push((client.prepare_cached(text).await?, params));
    }
    let (text, params) = joined(flight.with_kept_plans, &flight.handed_out);
    let kept = (client.prepare_cached(&text).await?, params);
    let mut sent: Vec<BoxFuture<'_, Result<(), tokio_postgres::Error>>> = Vec::new();
    sent.extend(flight.begin.map(|begin| say(client, begin)));
    if !planned.is_empty() {
        sent.push(say(client, PLAN_EACH_TIME));
        sent.extend(planned.iter().map(|prepared| run(client, prepared)));
        sent.push(say(client, KEEP_PLANS));
    }
    sent.push(run(client, &kept));
    sent.push(say(client, "COMMIT"));
    // Polled in order, and so sent in order.
    for outcome in join_all(sent).await {
        outcome.map_err(|error| match error.code() {
            Some(&SqlState::DIVISION_BY_ZERO) => lease::lost(),
            _ => StoreError::from(error).busy(),
        })?;
    }
    Ok(())
}

type Prepared<'a> = (tokio_postgres::Statement, Vec<&'a (dyn ToSql + Sync)>);

/// All statements as one, with what notes the ids: each by itself costs an answer that has to be waited for, more than a small
/// batch takes to write. There are as many such texts as kinds of batches, a few dozen.
fn joined<'a>(
    statements: Vec<Statement<'a>>,
    handed_out: &'a HandedOut,
) -> (String, Vec<&'a (dyn ToSql + Sync)>) {
    let (mut text, mut all) = (String::from("WITH "), Vec::new());
    for (number, (statement, params)) in statements.into_iter().enumerate() {
        let _ = write!(text, "part{number} AS (");
        renumber(&mut text, statement, all.len());
        text.push_str("), ");
        all.extend(params);
    }
    text.push_str("noted AS (");
    renumber(&mut text, HandedOut::NOTE, all.len());
    text.push_str(") SELECT 1 / count(*) FROM noted");
    all.extend(handed_out.params());
    (text, all)
}

/// Its `$1` becomes the one behind `before` others.
fn renumber(text: &mut String, statement: &str, before: usize) {
    let mut parts = statement.split('$');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = part[..digits].parse().unwrap_or_default();
        let _ = write!(text, "${}{}", before + number, &part[digits..]);
    }
}

fn say<'a>(
    client: &'a ClientWrapper,
    text: &'static str,
) -> BoxFuture<'a, Result<(), tokio_postgres::Error>> {
    Box::pin(client.batch_execute(text))
}

fn run<'a>(
    client: &'a ClientWrapper,
    (statement, params): &'a Prepared<'_>,
) -> BoxFuture<'a, Result<(), tokio_postgres::Error>> {
    Box::pin(async move { client.execute(statement, params).await.map(drop) })
}

/// A connection that is in the middle of something: unless that ends well, it is thrown away, and whatever was begun
/// on it is rolled back.
pub(super) struct InUse(Option<Object>);

impl InUse {
    pub(super) fn new(client: Object) -> Self {
        Self(Some(client))
    }

    pub(super) fn client(&self) -> &ClientWrapper {
        self.0.as_ref().expect("it is there until it is done")
    }

    /// It is at rest again.
    pub(super) fn done(mut self) {
        drop(self.0.take());
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_through() {
        let handed_out = HandedOut { node: 1, lane: 2, epoch: 3, last_id: 4 };
        let one: &(dyn ToSql + Sync) = &1_i64;
        let statements =
            vec![("INSERT $1, $2::text[], $1", vec![one; 2]), ("DELETE $10 + $1", vec![one; 10])];
        let (text, params) = joined(statements, &handed_out);
        assert!(text.starts_with(
            "WITH part0 AS (INSERT $1, $2::text[], $1), part1 AS (DELETE $12 + $3), noted AS ("
        ));
        assert!(text.contains("$13") && text.contains("$16") && !text.contains("$17"), "{text}");
        assert_eq!(params.len(), 16);
    }
}
