//! Counts the rows of every table that belong to a server or an account, directly in the database.

use std::collections::BTreeMap;
use std::path::Path;

use crate::postgres;

/// Number of rows by `table.column=id`.
pub type OwnedRows = BTreeMap<String, i64>;

const COLUMNS: [&str; 2] = ["server_id", "account_id"];

fn count_query(table: &str, column: &str) -> String {
    format!("SELECT {column}, count(*) FROM {table} WHERE {column} IS NOT NULL GROUP BY {column}")
}

/// Panics if the file cannot be read.
pub fn owned_rows_of_sqlite(path: &Path) -> OwnedRows {
    read_sqlite(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

fn read_sqlite(path: &Path) -> Result<OwnedRows, rusqlite::Error> {
    let connection = rusqlite::Connection::open(path)?;
    let text =
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'";
    let mut statement = connection.prepare(text)?;
    let all = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let mut found = OwnedRows::new();
    for owner in all {
        let (table, column) = owner?;
        if !COLUMNS.contains(&column.as_str()) {
            continue;
        }
        let mut statement = connection.prepare(&count_query(&table, &column))?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
        for row in rows {
            let (id, count) = row?;
            found.insert(format!("{table}.{column}={id}"), count);
        }
    }
    Ok(found)
}

/// Panics if the database cannot be read.
pub fn owned_rows_of_postgres(url: &str) -> OwnedRows {
    let mut found = OwnedRows::new();
    for (table, column) in postgres::columns_named(url, &COLUMNS) {
        for (id, count) in postgres::pairs(url, &count_query(&table, &column)) {
            found.insert(format!("{table}.{column}={id}"), count);
        }
    }
    found
}
