//! Sends several statements at once, without waiting for the results in between.

use std::fmt::Write as _;

use deadpool_postgres::{ClientWrapper, Object, Transaction};
use futures_util::future::{BoxFuture, join, join_all};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::connect::Canceller;
use super::generic_plans::BEGIN_WITH_GENERIC_PLANS;
use super::lease;
use crate::error::StoreError;

pub(crate) type Statement<'a> = (&'static str, Vec<&'a (dyn ToSql + Sync)>);

const USE_GENERIC_PLANS: &str = "SET LOCAL plan_cache_mode = force_generic_plan";
const USE_CUSTOM_PLANS: &str = "SET LOCAL plan_cache_mode = force_custom_plan";

/// Statements of a transaction, sent in the order of these fields.
#[derive(Default)]
pub(super) struct Pipeline<'a> {
    /// `None` if the transaction has already begun.
    pub(super) begin: Option<&'static str>,
    /// Statements that are planned each time, with the values of their parameters.
    pub(super) with_custom_plans: Vec<Statement<'a>>,
    /// Statements with generic plans that run in any order: they do not depend on each other and lock no rows that
    /// other transactions change.
    pub(super) together: Vec<Statement<'a>>,
    /// Statements with generic plans that run one after the other: they change rows that other transactions change too,
    /// in the common locking order.
    pub(super) in_order: Vec<Statement<'a>>,
}

/// Runs a query in a transaction with generic plans. Unless `in_transaction` is set, BEGIN is sent together with the
/// query.
pub(super) async fn query(
    client: &ClientWrapper,
    in_transaction: &mut bool,
    text: &'static str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<tokio_postgres::Row>, StoreError> {
    let statement = client.prepare_cached(text).await?;
    if std::mem::replace(in_transaction, true) {
        return Ok(client.query(&statement, params).await?);
    }
    let (begun, rows) =
        join(client.batch_execute(BEGIN_WITH_GENERIC_PLANS), client.query(&statement, params)).await;
    begun?;
    Ok(rows?)
}

/// Sends all statements and the COMMIT at once. If one of them fails, PostgreSQL turns the COMMIT into a ROLLBACK,
/// and the error of the failed statement is returned.
pub(super) async fn commit(client: &ClientWrapper, pipeline: Pipeline<'_>) -> Result<(), StoreError> {
    let custom = prepare(client, pipeline.with_custom_plans).await?;
    let mut generic = Vec::new();
    if !pipeline.together.is_empty() {
        let (text, params) = join_statements(pipeline.together);
        generic.push((client.prepare_cached(&text).await?, params));
    }
    generic.extend(prepare(client, pipeline.in_order).await?);
    let mut sent: Vec<BoxFuture<'_, Result<(), tokio_postgres::Error>>> = Vec::new();
    sent.extend(pipeline.begin.map(|begin| send(client, begin)));
    if !custom.is_empty() {
        sent.push(send(client, USE_CUSTOM_PLANS));
        sent.extend(custom.iter().map(|prepared| execute(client, prepared)));
        sent.push(send(client, USE_GENERIC_PLANS));
    }
    sent.extend(generic.iter().map(|prepared| execute(client, prepared)));
    sent.push(send(client, "COMMIT"));
    // The futures are polled in order, so the statements are sent in order.
    for result in join_all(sent).await {
        result.map_err(|error| match error.code() {
            Some(&SqlState::DIVISION_BY_ZERO) => lease::lost_error(),
            _ => StoreError::from(error),
        })?;
    }
    Ok(())
}

/// Runs statements one by one in an existing transaction.
pub(crate) async fn execute_all<'a>(
    transaction: &Transaction<'_>,
    statements: impl IntoIterator<Item = Option<Statement<'a>>>,
) -> Result<(), StoreError> {
    for (text, params) in statements.into_iter().flatten() {
        let statement = transaction.prepare_cached(text).await?;
        transaction.execute(&statement, &params).await?;
    }
    Ok(())
}

type Prepared<'a> = (tokio_postgres::Statement, Vec<&'a (dyn ToSql + Sync)>);

async fn prepare<'a>(
    client: &ClientWrapper,
    statements: Vec<Statement<'a>>,
) -> Result<Vec<Prepared<'a>>, StoreError> {
    let mut prepared = Vec::with_capacity(statements.len());
    for (text, params) in statements {
        prepared.push((client.prepare_cached(text).await?, params));
    }
    Ok(prepared)
}

/// Joins all statements into one, because receiving the result of each separate statement takes a tenth of the time of
/// a small batch. Joining gives only some dozens of different texts, so the cache of prepared statements stays small.
fn join_statements(statements: Vec<Statement<'_>>) -> (String, Vec<&(dyn ToSql + Sync)>) {
    let (mut text, mut all) = (String::new(), Vec::new());
    let last = statements.len() - 1;
    for (number, (statement, params)) in statements.into_iter().enumerate() {
        if number < last {
            let _ = write!(text, "{} part{number} AS (", if number == 0 { "WITH" } else { "," });
        }
        renumber(&mut text, statement, all.len());
        text.push_str(if number < last { ") " } else { "" });
        all.extend(params);
    }
    (text, all)
}

/// Appends `statement` with parameter numbers shifted by `params_before`: `$1` becomes the first after those.
fn renumber(text: &mut String, statement: &str, params_before: usize) {
    let mut parts = statement.split('$');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = part[..digits].parse().expect("a parameter has a number");
        let _ = write!(text, "${}{}", params_before + number, &part[digits..]);
    }
}

fn send<'a>(
    client: &'a ClientWrapper,
    text: &'static str,
) -> BoxFuture<'a, Result<(), tokio_postgres::Error>> {
    Box::pin(client.batch_execute(text))
}

fn execute<'a>(
    client: &'a ClientWrapper,
    (statement, params): &'a Prepared<'_>,
) -> BoxFuture<'a, Result<(), tokio_postgres::Error>> {
    Box::pin(async move { client.execute(statement, params).await.map(drop) })
}

/// A connection in use. Unless the work succeeds, the connection is discarded, and everything begun on it is cancelled
/// and rolled back.
pub(super) struct BusyConnection {
    client: Option<Object>,
    canceller: Canceller,
}

impl BusyConnection {
    pub(super) fn new(client: Object, canceller: Canceller) -> Self {
        Self { client: Some(client), canceller }
    }

    pub(super) fn client(&self) -> &ClientWrapper {
        self.client.as_ref().expect("the client is present until `done`")
    }

    /// Returns the connection to the pool, because the work succeeded.
    pub(super) fn done(mut self) {
        drop(self.client.take());
    }
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.canceller.discard(client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_renumbered_across_statements() {
        let one: &(dyn ToSql + Sync) = &1_i64;
        let statements = vec![
            ("INSERT $1, $2::text[], $1", vec![one; 2]),
            ("DELETE $10 + $1", vec![one; 10]),
            ("INSERT $1", vec![one]),
        ];
        let (text, params) = join_statements(statements);
        assert_eq!(text, "WITH part0 AS (INSERT $1, $2::text[], $1) , part1 AS (DELETE $12 + $3) INSERT $13");
        assert_eq!(params.len(), 13);
    }
}
