//! Settings of the installation, such as maintenance mode.

use postroad_boxed_futures::boxed_futures;

use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    pub async fn find_setting(&self, key: &'static str) -> Result<Option<String>> {
        self.read(move |sql| Box::pin(find(sql, key))).await
    }

    /// `None` removes the setting.
    pub async fn set_setting(&self, key: &'static str, value: Option<String>) -> Result<()> {
        self.write(move |sql| Box::pin(set(sql, key, value))).await
    }

    /// Sets a setting unless it is already set; returns its value. Concurrent calls all return the same value.
    pub async fn find_or_insert_setting(&self, key: &'static str, value: String) -> Result<String> {
        self.write(move |sql| Box::pin(find_or_insert(sql, key, value))).await
    }
}

pub(crate) async fn find(sql: &Sql<'_>, key: &'static str) -> Result<Option<String>, StoreError> {
    let row = sql.query_opt("SELECT value FROM settings WHERE key = $1", &[key.into()]).await?;
    row.map(|row| row.text(0)).transpose()
}

/// `None` removes the setting.
pub(crate) async fn set(sql: &Sql<'_>, key: &'static str, value: Option<String>) -> Result<(), StoreError> {
    match value {
        Some(value) => {
            sql.execute(
                "INSERT INTO settings (key, value) VALUES ($1, $2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                &[key.into(), value.into()],
            )
            .await?
        }
        None => sql.execute("DELETE FROM settings WHERE key = $1", &[key.into()]).await?,
    };
    Ok(())
}

/// Sets a setting unless it is already set; returns its value.
pub(crate) async fn find_or_insert(
    sql: &Sql<'_>,
    key: &'static str,
    value: String,
) -> Result<String, StoreError> {
    sql.execute(
        "INSERT INTO settings (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING",
        &[key.into(), value.into()],
    )
    .await?;
    find(sql, key).await?.ok_or(StoreError::NotFound)
}
