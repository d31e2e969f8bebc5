//! Removes blocks whose messages no longer exist, in small steps.

use postroad_model::ServerId;

use super::blocks;
use crate::retention::RemovalProgress;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

/// Maximum number of postings removed in one transaction.
const POSTINGS_PER_TRANSACTION: i64 = 500;

impl Store {
    /// Removes some rows of a block whose messages are all removed.
    pub async fn remove_old_search_rows(&self) -> Result<RemovalProgress> {
        let text = "SELECT b.server_id, b.first_id FROM search_blocks b WHERE b.last_id <
                        COALESCE((SELECT m.id FROM messages m WHERE m.server_id = b.server_id ORDER BY m.id LIMIT 1),
                                 9223372036854775807)
                    ORDER BY b.server_id, b.first_id LIMIT 1";
        let read = |row: &Row| Ok((ServerId(row.int(0)?), row.int(1)?));
        let Some((server_id, block)) = self.fetch_opt(text, Vec::new(), read).await? else {
            return Ok(RemovalProgress::default());
        };
        let rows = self.write(move |sql| Box::pin(remove_some(sql, server_id, block))).await?;
        Ok(RemovalProgress { rows, has_more: true })
    }
}

/// Removes some postings of a block. The block's own row is removed last, so that no postings stay after a crash.
async fn remove_some(sql: &Sql<'_>, server_id: ServerId, block: i64) -> Result<u64> {
    // Ends a merge in progress, which must not write more. State 2 is `blocks::CHECKED`.
    let text = "UPDATE search_blocks SET claimed_until = 0
                WHERE server_id = $1 AND first_id = $2 AND state = 2 AND claimed_until > 0";
    sql.execute(text, &[server_id.0.into(), block.into()]).await?;
    for key in [block, blocks::merged_key(block)] {
        let rows = delete_some_postings(sql, server_id, key).await?;
        if rows > 0 {
            return Ok(rows);
        }
    }
    let text = "DELETE FROM search_blocks WHERE server_id = $1 AND first_id = $2";
    sql.execute(text, &[server_id.0.into(), block.into()]).await
}

/// Removes some postings of the block with this key; returns how many.
pub(super) async fn delete_some_postings(sql: &Sql<'_>, server_id: ServerId, key: i64) -> Result<u64> {
    let text = "DELETE FROM search_postings WHERE server_id = $1 AND block = $2 AND token IN
                    (SELECT token FROM search_postings WHERE server_id = $1 AND block = $2 LIMIT $3)";
    sql.execute(text, &[server_id.0.into(), key.into(), POSTINGS_PER_TRANSACTION.into()]).await
}
