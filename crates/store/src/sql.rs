//! One SQL text for two engines: values, rows and a statement runner, which is a SQLite connection, or a PostgreSQL
//! transaction or connection. Texts use `$1`; SQLite gets them as `?1`.
//!
//! On SQLite the futures never wait, so an operation written once as `async fn` also runs on the writer thread.

use std::borrow::Cow;
use std::pin::pin;

use futures_util::TryStreamExt as _;
use parking_lot::Mutex;
use postroad_boxed_futures::boxed_future;
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};

use crate::error::StoreError;
use crate::postgres::generic_plans;

type Result<T> = std::result::Result<T, StoreError>;

/// The connection or transaction that an operation runs its statements on.
pub(crate) enum Sql<'a> {
    /// In a mutex only so that the operation's future is `Send`; the mutex is never contended.
    Sqlite(&'a Mutex<rusqlite::Connection>),
    Postgres(&'a deadpool_postgres::Transaction<'a>),
    /// Connection for reads. Each query runs without an explicit transaction, which saves the round trips for its begin
    /// and end.
    PostgresRead(&'a deadpool_postgres::ClientWrapper),
}

impl Sql<'_> {
    /// Whether the engine is SQLite; for SQL texts that differ between the engines.
    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self, Sql::Sqlite(_))
    }

    #[boxed_future]
    pub(crate) async fn query(&self, text: &'static str, params: &[Value]) -> Result<Vec<Row>> {
        match self {
            Sql::Sqlite(connection) => {
                let connection = connection.lock();
                let mut statement = connection.prepare_cached(&text.replace('$', "?"))?;
                let columns = statement.column_count();
                let mut rows = statement.query(rusqlite::params_from_iter(params))?;
                let mut found = Vec::new();
                while let Some(row) = rows.next()? {
                    let values = (0..columns).map(|at| row.get_ref(at).map(Value::from_sqlite));
                    found.push(Row(values.collect::<rusqlite::Result<_>>()?));
                }
                Ok(found)
            }
            Sql::Postgres(transaction) => {
                let statement = transaction.prepare_cached(text).await?;
                let rows = transaction.query(&statement, &as_params(params)).await?;
                rows.iter().map(Row::from_postgres).collect()
            }
            Sql::PostgresRead(client) => {
                let statement = client.prepare_cached(text).await?;
                let rows = client.query(&statement, &as_params(params)).await?;
                rows.iter().map(Row::from_postgres).collect()
            }
        }
    }

    /// Like `query`, for frequent reads on PostgreSQL whose plan does not depend on table statistics
    /// (`postgres::generic_plans` says which those are). Outside a transaction the plan is kept, because planning costs
    /// more than the read.
    #[boxed_future]
    pub(crate) async fn query_with_generic_plan(
        &self,
        text: &'static str,
        params: &[Value],
    ) -> Result<Vec<Row>> {
        let Sql::PostgresRead(client) = self else { return self.query(text, params).await };
        let rows = generic_plans::query(client, text, &as_params(params)).await?;
        rows.iter().map(Row::from_postgres).collect()
    }

    /// Like `query` for large results: passes one row at a time instead of collecting them all.
    pub(crate) async fn for_each_row(
        &self,
        text: &'static str,
        params: &[Value],
        mut visit: impl FnMut(&RowView<'_>) -> Result<()>,
    ) -> Result<()> {
        let rows = match self {
            Sql::Sqlite(connection) => {
                let connection = connection.lock();
                let mut statement = connection.prepare_cached(&text.replace('$', "?"))?;
                let mut rows = statement.query(rusqlite::params_from_iter(params))?;
                while let Some(row) = rows.next()? {
                    visit(&RowView::Sqlite(row))?;
                }
                return Ok(());
            }
            Sql::Postgres(transaction) => {
                let statement = transaction.prepare_cached(text).await?;
                transaction.query_raw(&statement, params).await?
            }
            Sql::PostgresRead(client) => {
                let statement = client.prepare_cached(text).await?;
                client.query_raw(&statement, params).await?
            }
        };
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await? {
            visit(&RowView::Postgres(&row))?;
        }
        Ok(())
    }

    #[boxed_future]
    pub(crate) async fn query_opt(&self, text: &'static str, params: &[Value]) -> Result<Option<Row>> {
        Ok(self.query(text, params).await?.into_iter().next())
    }

    /// Runs a statement; returns the number of rows it changed.
    #[boxed_future]
    pub(crate) async fn execute(&self, text: &'static str, params: &[Value]) -> Result<u64> {
        match self {
            Sql::Sqlite(connection) => {
                let connection = connection.lock();
                let mut statement = connection.prepare_cached(&text.replace('$', "?"))?;
                Ok(statement.execute(rusqlite::params_from_iter(params))? as u64)
            }
            Sql::Postgres(transaction) => {
                let statement = transaction.prepare_cached(text).await?;
                Ok(transaction.execute(&statement, &as_params(params)).await?)
            }
            Sql::PostgresRead(_) => Err(read_only()),
        }
    }

    /// Runs `work` so that SQLite overwrites removed data, in rows and in freed pages. No effect on PostgreSQL.
    pub(crate) async fn with_secure_delete<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.set_secure_delete(true)?;
        let result = work.await;
        self.set_secure_delete(false)?;
        result
    }

    /// Does not use a cached statement: SQLite applies this pragma when the statement is prepared.
    fn set_secure_delete(&self, is_on: bool) -> Result<()> {
        if let Sql::Sqlite(connection) = self {
            connection.lock().pragma_update(None, "secure_delete", is_on)?;
        }
        Ok(())
    }

    /// Runs a statement that must change a row; `NotFound` if it changed none.
    #[boxed_future]
    pub(crate) async fn execute_one(&self, text: &'static str, params: &[Value]) -> Result<()> {
        match self.execute(text, params).await? {
            0 => Err(StoreError::NotFound),
            _ => Ok(()),
        }
    }
}

pub(crate) fn as_params(params: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// A column value of a type that both engines have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl Value {
    fn from_sqlite(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(int) => Self::Int(int),
            ValueRef::Real(real) => Self::Int(real as i64),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(blob) => Self::Blob(blob.to_vec()),
        }
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Int(i64::from(flag))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(if text.contains('\0') { storable(&text).into_owned() } else { text })
    }
}

/// Replaces NUL, which PostgreSQL cannot store in a text. The entry points refuse NUL, but a remote server's reply may
/// contain it, and a reply that cannot be stored would stop delivery.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// `storable` for a text that may be owned.
pub(crate) fn storable_cow(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text }
}

/// The error of a change that was attempted on a read-only connection: a bug in Postroad.
pub(crate) fn read_only() -> StoreError {
    StoreError::Internal("a change was attempted on a read-only connection".into())
}

impl From<Vec<u8>> for Value {
    fn from(blob: Vec<u8>) -> Self {
        Self::Blob(blob)
    }
}

impl From<postroad_model::Timestamp> for Value {
    fn from(moment: postroad_model::Timestamp) -> Self {
        Self::Int(moment.as_micros())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(int) => ValueRef::Integer(*int),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(blob) => ValueRef::Blob(blob),
        }))
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(int) => int.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Blob(blob) => blob.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}

/// One row of a result, read by position.
#[derive(Debug)]
pub(crate) struct Row(Vec<Value>);

impl Row {
    fn from_postgres(row: &tokio_postgres::Row) -> Result<Self> {
        let column = |at: usize, kind: &Type| -> Result<Value> {
            Ok(match *kind {
                Type::INT8 => row.try_get::<_, Option<i64>>(at)?.into(),
                Type::TEXT => row.try_get::<_, Option<String>>(at)?.into(),
                Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.into(),
                ref other => {
                    return Err(StoreError::Internal(format!(
                        "column {at} has the unsupported type {other}"
                    )));
                }
            })
        };
        let values = row.columns().iter().enumerate().map(|(at, kind)| column(at, kind.type_()));
        Ok(Self(values.collect::<Result<_>>()?))
    }

    pub(crate) fn int(&self, at: usize) -> Result<i64> {
        match &self.0[at] {
            Value::Int(int) => Ok(*int),
            other => Err(unexpected(at, other)),
        }
    }

    pub(crate) fn int_opt(&self, at: usize) -> Result<Option<i64>> {
        if self.0[at] == Value::Null { Ok(None) } else { self.int(at).map(Some) }
    }

    pub(crate) fn flag(&self, at: usize) -> Result<bool> {
        Ok(self.int(at)? != 0)
    }

    pub(crate) fn time(&self, at: usize) -> Result<postroad_model::Timestamp> {
        self.int(at).map(postroad_model::Timestamp::from_micros)
    }

    pub(crate) fn time_opt(&self, at: usize) -> Result<Option<postroad_model::Timestamp>> {
        Ok(self.int_opt(at)?.map(postroad_model::Timestamp::from_micros))
    }

    pub(crate) fn text(&self, at: usize) -> Result<String> {
        match &self.0[at] {
            Value::Text(text) => Ok(text.clone()),
            other => Err(unexpected(at, other)),
        }
    }

    pub(crate) fn text_opt(&self, at: usize) -> Result<Option<String>> {
        if self.0[at] == Value::Null { Ok(None) } else { self.text(at).map(Some) }
    }

    /// Reads a text column with a function that returns `None` for an unknown text, such as `parse` of our enums.
    pub(crate) fn parsed<T>(&self, at: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        let text = self.text(at)?;
        parse(&text)
            .ok_or_else(|| StoreError::Internal(format!("column {at} holds the unknown name {text:?}")))
    }

    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self, at: usize) -> Result<T> {
        serde_json::from_str(&self.text(at)?).map_err(|e| damaged_json(at, &e))
    }

    pub(crate) fn value(&self, at: usize) -> &Value {
        &self.0[at]
    }

    pub(crate) fn blob(&self, at: usize) -> Result<Vec<u8>> {
        match &self.0[at] {
            Value::Blob(blob) => Ok(blob.clone()),
            other => Err(unexpected(at, other)),
        }
    }

    /// Moves a blob out of the row without copying it.
    pub(crate) fn take_blob(&mut self, at: usize) -> Result<Vec<u8>> {
        match std::mem::replace(&mut self.0[at], Value::Null) {
            Value::Blob(blob) => Ok(blob),
            other => Err(unexpected(at, &other)),
        }
    }
}

/// One row in the engine's memory, without copies.
pub(crate) enum RowView<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl RowView<'_> {
    pub(crate) fn int(&self, at: usize) -> Result<i64> {
        match self {
            Self::Sqlite(row) => Ok(row.get(at)?),
            Self::Postgres(row) => Ok(row.try_get(at)?),
        }
    }

    pub(crate) fn text(&self, at: usize) -> Result<&str> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(at)?.as_str().map_err(rusqlite::Error::from)?),
            Self::Postgres(row) => Ok(row.try_get(at)?),
        }
    }

    pub(crate) fn blob(&self, at: usize) -> Result<&[u8]> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(at)?.as_blob().map_err(rusqlite::Error::from)?),
            Self::Postgres(row) => Ok(row.try_get(at)?),
        }
    }
}

/// Reports the position of the JSON error without quoting the text, because it may contain an address.
pub(crate) fn damaged_json(at: usize, error: &serde_json::Error) -> StoreError {
    let (line, column) = (error.line(), error.column());
    StoreError::Internal(format!("column {at} holds JSON that cannot be read (line {line}, column {column})"))
}

fn unexpected(at: usize, value: &Value) -> StoreError {
    let kind = match value {
        Value::Null => "NULL",
        Value::Int(_) => "an integer",
        Value::Text(_) => "a text",
        Value::Blob(_) => "a blob",
    };
    StoreError::Internal(format!("column {at} holds {kind}, not a value of the expected type"))
}

/// JSON for a text column. Our records always serialise.
pub(crate) fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our records have string keys and finite numbers")
}
