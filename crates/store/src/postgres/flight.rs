//! Several statements sent at once, without waiting for the answers in between.

use deadpool_postgres::{ClientWrapper, Object};
use futures_util::future::{BoxFuture, join_all};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::lease;
use crate::error::StoreError;

pub(super) type Statement<'a> = (&'static str, Vec<&'a (dyn ToSql + Sync)>);

/// Sends all statements and the COMMIT in one flight, and the BEGIN too if it is still to come. If one of them fails,
/// PostgreSQL turns the COMMIT into a ROLLBACK, and we see the error of the one that failed.
pub(super) async fn commit(
    client: &ClientWrapper,
    statements: Vec<Statement<'_>>,
    begin: bool,
) -> Result<(), StoreError> {
    let mut prepared = Vec::with_capacity(statements.len());
    for (text, params) in statements {
        prepared.push((client.prepare_cached(text).await?, params));
    }
    let mut flight: Vec<BoxFuture<'_, Result<(), tokio_postgres::Error>>> = Vec::new();
    if begin {
        flight.push(Box::pin(client.batch_execute("BEGIN")));
    }
    for (statement, params) in &prepared {
        flight.push(Box::pin(async move { client.execute(statement, params).await.map(drop) }));
    }
    flight.push(Box::pin(client.batch_execute("COMMIT")));
    // Polled in order, and so sent in order.
    for outcome in join_all(flight).await {
        outcome.map_err(|error| match error.code() {
            Some(&SqlState::DIVISION_BY_ZERO) => lease::lost(),
            _ => StoreError::from(error).busy(),
        })?;
    }
    Ok(())
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
