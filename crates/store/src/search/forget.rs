//! Removes a person's data from the index: their address, and the subject, metadata and personal tag sent to them.

use postroad_model::{MessageId, ServerId};

use super::blocks::{BLOCKS_PER_MERGE, MERGED};
use super::postings::{decode_ids, encode_positions};
use super::{blocks, messages, tokens};
use crate::sql::Sql;
use crate::{Result, Store};

/// Tokens changed in one transaction. Few, because accepts wait for the transaction.
const TOKENS_PER_TRANSACTION: usize = 100;

/// Tokens of a message that reveal something about a person.
#[derive(Debug)]
pub(crate) struct PersonalTokens {
    message: i64,
    tokens: Vec<i64>,
}

impl Store {
    /// Personal tokens of `copies`, which are the message `id` and all messages with the same texts. Tokens of the
    /// recipient's address are included only for the message itself, the token of the tag only with `with_tag`. Call
    /// this before the texts are erased.
    pub(crate) async fn list_personal_tokens(
        &self,
        server_id: ServerId,
        id: MessageId,
        copies: &[i64],
        with_tag: bool,
    ) -> Result<Vec<PersonalTokens>> {
        let wanted = copies.to_vec();
        let rows = self
            .read(move |sql| Box::pin(async move { messages::read_by_ids(sql, server_id, &wanted).await }))
            .await?;
        let personal = |row: &messages::SearchRow| {
            let mut tokens = tokens::of_person(row, row.id == id.0)?;
            tokens.extend(row.tag.as_deref().filter(|_| with_tag).map(tokens::of_tag));
            Ok(PersonalTokens { message: row.id, tokens })
        };
        rows.iter().map(personal).collect()
    }

    /// Removes the tokens from the index. `false` if a message is in no written block: its block may be written
    /// meanwhile, so call this again after the texts are erased.
    pub(crate) async fn forget_tokens(
        &self,
        server_id: ServerId,
        personal: &[PersonalTokens],
    ) -> Result<bool> {
        let mut are_indexed = true;
        for PersonalTokens { message, tokens } in personal {
            for chunk in tokens.chunks(TOKENS_PER_TRANSACTION) {
                let (message, chunk) = (*message, chunk.to_vec());
                are_indexed &= self
                    .write(move |sql| {
                        Box::pin(async move {
                            sql.with_secure_delete(remove(sql, server_id, message, &chunk)).await
                        })
                    })
                    .await?;
            }
        }
        Ok(are_indexed)
    }
}

/// Ends the claims of blocks that are being written with these messages: they would get tokens of the old texts. Call
/// this in the transaction that erases the texts; another writer then begins again. State 0 is `blocks::WRITING`.
pub(crate) async fn end_writing(sql: &Sql<'_>, server_id: ServerId, messages: &[i64]) -> Result<()> {
    let (Some(first), Some(last)) = (messages.iter().min(), messages.iter().max()) else { return Ok(()) };
    let text = "UPDATE search_blocks SET claimed_until = 0
                WHERE server_id = $1 AND state = 0 AND claimed_until > 0 AND first_id <= $3 AND last_id >= $2";
    sql.execute(text, &[server_id.0.into(), (*first).into(), (*last).into()]).await?;
    Ok(())
}

/// Removes tokens of a message; returns whether a written block has the message.
async fn remove(sql: &Sql<'_>, server_id: ServerId, message: i64, tokens: &[i64]) -> Result<bool> {
    end_merge(sql, server_id, message).await?;
    // Up to two rows: a merged block, and a part of it that is replaced but not yet removed.
    let text = "SELECT first_id, state, ids FROM search_blocks
                WHERE server_id = $1 AND first_id <= $2 AND last_id >= $2 ORDER BY first_id DESC LIMIT 2";
    let mut is_found = false;
    for mut row in sql.query(text, &[server_id.0.into(), message.into()]).await? {
        let (first_id, state) = (row.int(0)?, row.int(1)?);
        let ids = decode_ids(&row.take_blob(2)?)?;
        let Some(position) = ids.iter().position(|id| *id == message) else { continue };
        is_found = true;
        remove_from_block(sql, server_id, first_id, position, tokens).await?;
        if state == MERGED {
            remove_from_block(sql, server_id, blocks::merged_key(first_id), position, tokens).await?;
        }
    }
    Ok(is_found)
}

/// Ends a merge that may have read these postings already: the merge would write them again. Another merge begins
/// later. State 2 is `blocks::CHECKED`.
async fn end_merge(sql: &Sql<'_>, server_id: ServerId, message: i64) -> Result<()> {
    let text = "UPDATE search_blocks SET claimed_until = 0
                WHERE server_id = $1 AND state = 2 AND claimed_until > 0 AND first_id IN
                    (SELECT first_id FROM search_blocks WHERE server_id = $1 AND first_id <= $2
                     ORDER BY first_id DESC LIMIT $3)";
    sql.execute(text, &[server_id.0.into(), message.into(), (BLOCKS_PER_MERGE as i64).into()]).await?;
    Ok(())
}

async fn remove_from_block(
    sql: &Sql<'_>,
    server_id: ServerId,
    key: i64,
    position: usize,
    tokens: &[i64],
) -> Result<()> {
    let known = blocks::read_postings(sql, server_id, &[key], tokens).await?;
    let mut changed = Vec::new();
    for ((_, token), mut positions) in known {
        let before = positions.len();
        positions.retain(|known| *known as usize != position);
        if positions.is_empty() {
            let text = "DELETE FROM search_postings WHERE server_id = $1 AND block = $2 AND token = $3";
            sql.execute(text, &[server_id.0.into(), key.into(), token.into()]).await?;
        } else if positions.len() < before {
            changed.push((token, encode_positions(&positions)));
        }
    }
    blocks::write_postings(sql, server_id, key, &changed).await
}
