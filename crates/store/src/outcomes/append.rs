//! Adds a delivery record of a message.

use super::deliveries::DeliveryRow;
use crate::Result;
use crate::postgres::delivery_rows::DeliveryRows;
use crate::postgres::pipeline;
use crate::sql::{Sql, read_only};
use crate::sqlite::rows::insert_delivery;

/// Adds a record inside a transaction, on either engine.
pub(crate) async fn append_delivery(sql: &Sql<'_>, row: DeliveryRow<'_>) -> Result<()> {
    match sql {
        Sql::Sqlite(connection) => {
            let connection = connection.lock();
            insert_delivery(&connection, &row)
        }
        Sql::Postgres(transaction) => {
            let mut deliveries = DeliveryRows::default();
            deliveries.push(row);
            pipeline::execute_all(transaction, [deliveries.statement()]).await
        }
        Sql::PostgresRead(_) => Err(read_only()),
    }
}
