//! Message searches of a server that a person has saved.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{SavedSearchId, ServerId, Timestamp, UserId};

use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{ChangeDescription, Result, Store};

#[derive(Debug, Clone)]
pub struct NewSavedSearch {
    pub user_id: UserId,
    pub server_id: ServerId,
    pub name: String,
    /// Query string of the page that shows the search.
    pub query: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSearch {
    pub id: SavedSearchId,
    pub name: String,
    pub query: String,
}

#[boxed_futures]
impl Store {
    /// Saves a search; a search that the person already has gets the new name. `LimitReached` if the person already has
    /// `searches_max` other searches of the server.
    pub async fn save_search(&self, new: NewSavedSearch, searches_max: usize) -> Result<()> {
        let now = self.clock.now();
        self.write_described(move |sql| {
            Box::pin(async move {
                let described =
                    ChangeDescription::from_iter([("saved_search".to_owned(), new.name.clone().into())]);
                save(sql, new, searches_max as i64, now).await?;
                Ok(((), Some(described)))
            })
        })
        .await
    }

    /// A person's searches of a server, in the order they were saved.
    pub async fn list_saved_searches(
        &self,
        user_id: UserId,
        server_id: ServerId,
        limit: usize,
    ) -> Result<Vec<SavedSearch>> {
        let text = "SELECT id, name, query FROM saved_searches
                    WHERE user_id = $1 AND server_id = $2 ORDER BY id LIMIT $3";
        let params = vec![user_id.0.into(), server_id.0.into(), (limit as i64).into()];
        self.fetch_all(text, params, read).await
    }

    /// `NotFound` if the person has no such search.
    pub async fn forget_search(&self, user_id: UserId, id: SavedSearchId) -> Result<()> {
        self.write_described(move |sql| {
            Box::pin(async move {
                let text = "DELETE FROM saved_searches WHERE user_id = $1 AND id = $2 RETURNING name";
                let row = sql.query_opt(text, &[user_id.0.into(), id.0.into()]).await?;
                let name = row.ok_or(StoreError::NotFound)?.text(0)?;
                Ok(((), Some(ChangeDescription::from_iter([("forgotten_search".to_owned(), name.into())]))))
            })
        })
        .await
    }
}

async fn save(
    sql: &Sql<'_>,
    new: NewSavedSearch,
    searches_max: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    // Locks the person, so that searches are saved one after the other.
    sql.execute_one("UPDATE users SET updated_at = updated_at WHERE id = $1", &[new.user_id.0.into()])
        .await?;
    let text = "SELECT id FROM saved_searches WHERE user_id = $1 AND server_id = $2 AND query <> $3 LIMIT $4";
    let params =
        [new.user_id.0.into(), new.server_id.0.into(), new.query.as_str().into(), searches_max.into()];
    if sql.query(text, &params).await?.len() as i64 >= searches_max {
        return Err(StoreError::LimitReached);
    }
    sql.execute(
        "INSERT INTO saved_searches (user_id, server_id, name, query, created_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (user_id, server_id, query) DO UPDATE SET name = excluded.name",
        &[new.user_id.0.into(), new.server_id.0.into(), new.name.into(), new.query.into(), now.into()],
    )
    .await?;
    Ok(())
}

fn read(row: &Row) -> Result<SavedSearch, StoreError> {
    Ok(SavedSearch { id: SavedSearchId(row.int(0)?), name: row.text(1)?, query: row.text(2)? })
}
