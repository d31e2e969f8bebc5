//! Removes a person's data from the index: their address, and the subject and metadata sent to them.

use postroad_model::{MessageId, ServerId};

use super::postings::{decode_ids, encode_positions};
use super::{blocks, messages, tokens};
use crate::sql::Sql;
use crate::{Result, Store};

/// Tokens that one transaction changes: accepts wait for it.
const TOKENS_AT_ONCE: usize = 100;

impl Store {
    /// Removes the tokens of a message before its texts are erased. `copies` are all messages with the same texts.
    /// Skips a block that is being written: it has few or no postings of this message yet.
    pub(crate) async fn forget_tokens(
        &self,
        server_id: ServerId,
        id: MessageId,
        copies: &[i64],
    ) -> Result<()> {
        let wanted = copies.to_vec();
        let rows = self
            .read(move |sql| Box::pin(async move { messages::read_some(sql, server_id, &wanted).await }))
            .await?;
        for row in rows {
            let personal = tokens::of_person(&row, row.id == id.0)?;
            for some in personal.chunks(TOKENS_AT_ONCE) {
                let (message, some) = (row.id, some.to_vec());
                self.write(move |sql| {
                    Box::pin(async move { sql.overwriting(remove(sql, server_id, message, &some)).await })
                })
                .await?;
            }
        }
        Ok(())
    }
}

async fn remove(sql: &Sql<'_>, server_id: ServerId, message: i64, tokens: &[i64]) -> Result<()> {
    let text =
        "SELECT first_id, ids FROM search_blocks WHERE server_id = $1 AND first_id <= $2 AND last_id >= $2
                ORDER BY first_id DESC LIMIT 1";
    let Some(mut row) = sql.query_opt(text, &[server_id.0.into(), message.into()]).await? else {
        return Ok(());
    };
    let block = row.int(0)?;
    let ids = decode_ids(&row.take_blob(1)?)?;
    let Some(position) = ids.iter().position(|id| *id == message) else { return Ok(()) };
    let known = blocks::read_postings(sql, server_id, &[block], tokens).await?;
    let mut changed = Vec::new();
    for ((_, token), mut positions) in known {
        let before = positions.len();
        positions.retain(|known| *known as usize != position);
        if positions.is_empty() {
            let text = "DELETE FROM search_postings WHERE server_id = $1 AND block = $2 AND token = $3";
            sql.execute(text, &[server_id.0.into(), block.into(), token.into()]).await?;
        } else if positions.len() < before {
            changed.push((token, encode_positions(&positions)));
        }
    }
    blocks::write_postings(sql, server_id, block, &changed).await
}
