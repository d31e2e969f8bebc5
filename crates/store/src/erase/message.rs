//! Erases the personal data of one message: its text, recipient, transcripts, event data and webhook answers.

use std::collections::HashSet;

use postroad_boxed_futures::boxed_futures;
use postroad_model::idgen::node_of;
use postroad_model::{MessageId, SendId, ServerId, Status};

use super::event_data::without_personal_fields;
use super::spellings::{mentions_any, spellings};
use crate::error::StoreError;
use crate::search::forget;
use crate::sql::{Row, Sql, to_json};
use crate::{ChangeDescription, Engine, Result, Store};

/// `ERASED_ADDRESS` as a literal for `concat!`. Nothing that arrives later is recorded for a message with this
/// recipient.
macro_rules! erased_address {
    () => {
        "erased@erased.invalid"
    };
}
pub(crate) use erased_address;

/// Recipient of an erased message.
pub const ERASED_ADDRESS: &str = erased_address!();

/// Maximum number of messages on each side of a send's id that are searched for its recipients' copies: the ids of a
/// send and of its copies are created together, with few other ids in between.
const NEIGHBOURS_MAX: usize = 5_000;
/// Messages read in one step; nearly all sends need only one step on each side.
const NEIGHBOURS_PER_STEP: usize = 500;
/// Events changed in one transaction. Few, because accepts wait for the transaction.
const EVENTS_PER_TRANSACTION: i64 = 100;
/// Returned mails changed in one transaction.
const RETURNED_MAILS_PER_TRANSACTION: usize = 20;

/// Result of erasing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EraseResult {
    Done,
    /// Nothing was changed: the message, or another recipient's copy with the same text, is held or still queued.
    StillNeeded,
    NotFound,
}

/// A message with the copies that share its text, and the mail returned for them.
struct RelatedMessages {
    send_id: SendId,
    /// Whether the send's tag contains the recipient's address.
    has_personal_tag: bool,
    /// All recipients' copies of the send, including the message itself.
    copies: Vec<i64>,
    /// Message and send of each mail returned for one of the copies. Returned mail may quote the message with all
    /// recipients.
    returned: Vec<(i64, i64)>,
}

#[boxed_futures]
impl Store {
    /// Erases a message that is neither queued nor held. The recipient is overwritten last, so that after a crash the
    /// message still counts as not erased. If an event or returned mail was stored meanwhile, the erasure starts again;
    /// a message has a limited number of both.
    pub async fn erase_message(&self, server_id: ServerId, id: MessageId) -> Result<EraseResult> {
        loop {
            if let Some(erased) = self.try_erase_message(server_id, id).await? {
                return Ok(erased);
            }
        }
    }

    /// `None` if an event or returned mail was stored meanwhile, which is not erased yet.
    async fn try_erase_message(&self, server_id: ServerId, id: MessageId) -> Result<Option<EraseResult>> {
        let related = self.read(move |sql| Box::pin(find_related(sql, server_id, id))).await?;
        let Some(related) = related else { return Ok(Some(EraseResult::NotFound)) };
        let copies = to_json(&related.copies);
        if self.read(move |sql| Box::pin(is_any_unfinished(sql, server_id, copies))).await? {
            return Ok(Some(EraseResult::StillNeeded));
        }
        let mut sends = vec![related.send_id];
        sends.extend(related.returned.iter().map(|(_, send_id)| SendId(*send_id)));
        self.remove_bodies_of(server_id, sends).await?;
        let tokens =
            self.list_personal_tokens(server_id, id, &related.copies, related.has_personal_tag).await?;
        let are_indexed = self.forget_tokens(server_id, &tokens).await?;
        for (message_id, _) in &related.returned {
            self.erase_events(server_id, MessageId(*message_id)).await?;
        }
        let last_seq = self.erase_events(server_id, id).await?;
        for returned in related.returned.chunks(RETURNED_MAILS_PER_TRANSACTION) {
            let returned = returned.to_vec();
            self.write(move |sql| {
                Box::pin(
                    async move { sql.with_secure_delete(erase_returned(sql, server_id, &returned)).await },
                )
            })
            .await?;
        }
        let is_erased = self
            .write_described(move |sql| {
                Box::pin(async move {
                    if has_unerased_data(sql, server_id, id, &related, last_seq).await? {
                        return Ok((false, None));
                    }
                    sql.with_secure_delete(erase_send_and_rows(sql, server_id, id, &related)).await?;
                    Ok((true, Some(ChangeDescription::from_iter([("message".to_owned(), id.0.into())]))))
                })
            })
            .await?;
        if !are_indexed {
            // A block of the search index with the old texts may have been written meanwhile.
            self.forget_tokens(server_id, &tokens).await?;
        }
        Ok(is_erased.then_some(EraseResult::Done))
    }

    /// Whether the message waits, but an erasure would only cancel it and erase nothing, because another recipient's
    /// copy with the same text is held or still queued.
    pub async fn erasure_only_cancels(&self, server_id: ServerId, id: MessageId) -> Result<bool> {
        let own = to_json(&[id.0]);
        if !self.read(move |sql| Box::pin(is_any_unfinished(sql, server_id, own))).await? {
            return Ok(false);
        }
        let related = self.read(move |sql| Box::pin(find_related(sql, server_id, id))).await?;
        let copies = related.into_iter().flat_map(|related| related.copies);
        let others = to_json(&copies.filter(|copy| *copy != id.0).collect::<Vec<_>>());
        self.read(move |sql| Box::pin(is_any_unfinished(sql, server_id, others))).await
    }

    /// Erases personal data in the events of a message and in webhook answers. Returns the `seq` of the last event.
    async fn erase_events(&self, server_id: ServerId, id: MessageId) -> Result<i64> {
        let mut after = 0;
        loop {
            let text =
                "SELECT id, seq, data FROM events WHERE server_id = $1 AND message_id = $2 AND seq > $3
                 ORDER BY seq LIMIT $4";
            let params = vec![server_id.0.into(), id.0.into(), after.into(), EVENTS_PER_TRANSACTION.into()];
            let read = |row: &Row| Ok((row.int(0)?, row.int(1)?, row.text(2)?));
            let events = self.fetch_all(text, params, read).await?;
            let is_end = (events.len() as i64) < EVENTS_PER_TRANSACTION;
            if let Some((_, seq, _)) = events.last() {
                after = *seq;
                self.write(move |sql| {
                    Box::pin(async move {
                        sql.with_secure_delete(erase_some_events(sql, server_id, &events)).await
                    })
                })
                .await?;
            }
            if is_end {
                return Ok(after);
            }
        }
    }

    async fn remove_bodies_of(&self, server_id: ServerId, sends: Vec<SendId>) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => {
                engine.erase_bodies(sends).await?;
            }
            Engine::Postgres(_) => {
                for send_id in sends {
                    let text = "DELETE FROM bodies WHERE server_id = $1 AND send_id = $2";
                    self.execute(text, vec![server_id.0.into(), send_id.0.into()]).await?;
                }
            }
        }
        Ok(())
    }
}

async fn find_related(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: MessageId,
) -> Result<Option<RelatedMessages>, StoreError> {
    let text = "SELECT m.send_id, m.rcpt_to, s.tag FROM messages m
                LEFT JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
                WHERE m.server_id = $1 AND m.id = $2";
    let Some(row) = sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await? else { return Ok(None) };
    let (send_id, rcpt_to, tag) = (row.int(0)?, row.text(1)?, row.text_opt(2)?);
    let has_personal_tag = tag.is_some_and(|tag| mentions_any(&tag, &spellings(&rcpt_to)));
    let mut copies = vec![id.0];
    for text in [
        "SELECT id, send_id FROM messages WHERE server_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
        "SELECT id, send_id FROM messages WHERE server_id = $1 AND id > $2 ORDER BY id LIMIT $3",
    ] {
        copies.extend(find_copies(sql, server_id, send_id, text).await?);
    }
    let returned = find_returned(sql, server_id, &copies).await?;
    Ok(Some(RelatedMessages { send_id: SendId(send_id), has_personal_tag, copies, returned }))
}

/// Message and send of each mail returned for one of the copies.
async fn find_returned(
    sql: &Sql<'_>,
    server_id: ServerId,
    copies: &[i64],
) -> Result<Vec<(i64, i64)>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT m.id, m.send_id FROM json_each($2) AS copy
         CROSS JOIN messages m ON m.server_id = $1 AND m.bounce_for_id = copy.value AND m.bounce_for_id <> 0"
    } else {
        "SELECT m.id, m.send_id FROM json_array_elements_text(CAST($2::text AS json)) AS copy (id)
         CROSS JOIN LATERAL (SELECT * FROM messages m WHERE m.server_id = $1
                             AND m.bounce_for_id = copy.id::bigint AND m.bounce_for_id <> 0 OFFSET 0) m"
    };
    let rows = sql.query(text, &[server_id.0.into(), to_json(&copies).into()]).await?;
    rows.iter().map(|row| Ok((row.int(0)?, row.int(1)?))).collect()
}

/// Whether the message has an event after `last_seq`, or one of the copies has returned mail that is not in `related`.
/// Locks the message, so that nothing more is recorded for it until the transaction ends.
async fn has_unerased_data(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: MessageId,
    related: &RelatedMessages,
    last_seq: i64,
) -> Result<bool, StoreError> {
    if !sql.is_sqlite() {
        let text = "SELECT id FROM messages WHERE server_id = $1 AND id = $2 FOR UPDATE";
        sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await?;
    }
    let text =
        "SELECT seq FROM events WHERE server_id = $1 AND message_id = $2 AND seq > $3 ORDER BY seq LIMIT 1";
    let params = [server_id.0.into(), id.0.into(), last_seq.into()];
    if sql.query_opt(text, &params).await?.is_some() {
        return Ok(true);
    }
    let known: HashSet<i64> = related.returned.iter().map(|(message_id, _)| *message_id).collect();
    let returned = find_returned(sql, server_id, &related.copies).await?;
    Ok(returned.iter().any(|(message_id, _)| !known.contains(message_id)))
}

/// Copies on one side of the send's id. Stops after a step that read ids of the accepting node but no copy. Ids begin
/// with the second, then the node, so after a step with only ids of other nodes there may still be copies.
async fn find_copies(
    sql: &Sql<'_>,
    server_id: ServerId,
    send_id: i64,
    text: &'static str,
) -> Result<Vec<i64>, StoreError> {
    let (mut copies, mut position, mut read) = (Vec::new(), send_id, 0);
    while read < NEIGHBOURS_MAX {
        let params = [server_id.0.into(), position.into(), (NEIGHBOURS_PER_STEP as i64).into()];
        let rows = sql.query(text, &params).await?;
        let (mut has_copy, mut is_same_node) = (false, false);
        for row in &rows {
            position = row.int(0)?;
            is_same_node |= node_of(position) == node_of(send_id);
            if row.int(1)? == send_id {
                copies.push(position);
                has_copy = true;
            }
        }
        read += rows.len();
        if rows.len() < NEIGHBOURS_PER_STEP || (is_same_node && !has_copy) {
            break;
        }
    }
    Ok(copies)
}

/// Whether any of the messages is held or still queued.
async fn is_any_unfinished(sql: &Sql<'_>, server_id: ServerId, copies: String) -> Result<bool, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT status FROM messages WHERE server_id = $1 AND id IN (SELECT value FROM json_each($2))"
    } else {
        "SELECT status FROM messages WHERE server_id = $1
             AND id = ANY (ARRAY (SELECT jsonb_array_elements_text($2::text::jsonb)::bigint))"
    };
    let rows = sql.query(text, &[server_id.0.into(), copies.into()]).await?;
    for row in &rows {
        let status = row.parsed(0, Status::parse)?;
        if status == Status::Held || status.is_queued() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Erases data that all recipients of a send share: subject and metadata may name any of them.
async fn erase_send(sql: &Sql<'_>, server_id: ServerId, send_id: SendId) -> Result<(), StoreError> {
    let text = "UPDATE sends SET subject = '', metadata = '{}' WHERE server_id = $1 AND id = $2";
    sql.execute(text, &[server_id.0.into(), send_id.0.into()]).await?;
    Ok(())
}

/// Erases data of returned mail, including the sender: an automatic reply comes from the recipient.
async fn erase_returned_send(sql: &Sql<'_>, server_id: ServerId, send_id: SendId) -> Result<(), StoreError> {
    let text =
        "UPDATE sends SET subject = '', metadata = '{}', mail_from = '', message_id = '', from_domain = ''
                WHERE server_id = $1 AND id = $2";
    sql.execute(text, &[server_id.0.into(), send_id.0.into()]).await?;
    Ok(())
}

async fn erase_returned(
    sql: &Sql<'_>,
    server_id: ServerId,
    returned: &[(i64, i64)],
) -> Result<(), StoreError> {
    for (message_id, send_id) in returned {
        erase_returned_send(sql, server_id, SendId(*send_id)).await?;
        erase_rows(sql, server_id, MessageId(*message_id)).await?;
    }
    Ok(())
}

async fn erase_send_and_rows(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: MessageId,
    related: &RelatedMessages,
) -> Result<(), StoreError> {
    forget::end_writing(sql, server_id, &related.copies).await?;
    erase_send(sql, server_id, related.send_id).await?;
    if related.has_personal_tag {
        let text = "UPDATE sends SET tag = NULL WHERE server_id = $1 AND id = $2";
        sql.execute(text, &[server_id.0.into(), related.send_id.0.into()]).await?;
    }
    erase_rows(sql, server_id, id).await
}

async fn erase_rows(sql: &Sql<'_>, server_id: ServerId, id: MessageId) -> Result<(), StoreError> {
    let key = [server_id.0.into(), id.0.into()];
    sql.execute(
        "UPDATE messages SET rcpt_to = $3 WHERE server_id = $1 AND id = $2",
        &[server_id.0.into(), id.0.into(), ERASED_ADDRESS.into()],
    )
    .await?;
    let text =
        "UPDATE deliveries SET details = 'Erased', output = '' WHERE server_id = $1 AND message_id = $2";
    sql.execute(text, &key).await?;
    sql.execute("DELETE FROM delivery_transcripts WHERE server_id = $1 AND message_id = $2", &key).await?;
    Ok(())
}

async fn erase_some_events(
    sql: &Sql<'_>,
    server_id: ServerId,
    events: &[(i64, i64, String)],
) -> Result<(), StoreError> {
    for (id, _, data) in events {
        let data = without_personal_fields(data);
        let text = "UPDATE events SET data = $3 WHERE server_id = $1 AND id = $2";
        sql.execute(text, &[server_id.0.into(), (*id).into(), data.into()]).await?;
        let text = "UPDATE webhook_attempts SET answer = '' WHERE server_id = $1 AND event_id = $2";
        sql.execute(text, &[server_id.0.into(), (*id).into()]).await?;
    }
    Ok(())
}
