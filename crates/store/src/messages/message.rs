//! Finds a message by server and id, so that another server's message is reported as unknown.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{CredentialId, Direction, MessageId, MessageToken, SendId, ServerId, Status, Timestamp};

use crate::accept::{SendInfo, SendOptions};
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// Only the id and token of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSummary {
    pub id: MessageId,
    pub token: MessageToken,
}

/// A message with the data of its send.
#[derive(Debug, Clone)]
pub struct Message {
    pub id: MessageId,
    pub token: MessageToken,
    pub rcpt_to: String,
    pub status: Status,
    pub hold_expiry: Option<Timestamp>,
    /// If this is returned mail (a bounce, complaint or automatic reply): the message that the mail is about. Otherwise
    /// 0.
    pub bounce_for_id: i64,
    pub last_delivery_at: Option<Timestamp>,
    /// When the next attempt is due, if the message is queued.
    pub next_attempt_at: Option<Timestamp>,
    /// Time of sending that the sender chose: the rescheduled time, else the `send_at` of its send.
    pub send_at: Option<Timestamp>,
    /// When the message was released, if it was held and has been queued since then.
    pub released_at: Option<Timestamp>,
    pub send: Arc<SendInfo>,
}

#[boxed_futures]
impl Store {
    pub async fn find_message_summary(
        &self,
        server_id: ServerId,
        id: MessageId,
    ) -> Result<Option<MessageSummary>> {
        self.read(move |sql| Box::pin(find_summary(sql, server_id, id))).await
    }

    pub async fn find_message(&self, server_id: ServerId, id: MessageId) -> Result<Option<Message>> {
        self.read(move |sql| Box::pin(find(sql, server_id, id))).await
    }
}

pub(crate) async fn find_summary(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: MessageId,
) -> Result<Option<MessageSummary>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT token FROM messages WHERE server_id = $1 AND id = $2",
            &[server_id.0.into(), id.0.into()],
        )
        .await?;
    row.map(|row| Ok(MessageSummary { id, token: MessageToken(row.text(0)?) })).transpose()
}

pub(crate) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: MessageId,
) -> Result<Option<Message>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT m.token, m.rcpt_to, m.status, m.hold_expiry, m.bounce_for_id, m.last_delivery_at, q.due_at,
                    s.id, s.credential_id, s.message_id, s.mail_from, s.subject, s.tag, s.metadata, s.options,
                    s.size, s.direction, s.bounce, s.received_with_ssl, s.test, s.created_at, s.from_domain, m.send_at,
                    q.released_at
             FROM messages m JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
             LEFT JOIN queue q ON q.server_id = m.server_id AND q.message_id = m.id
             WHERE m.server_id = $1 AND m.id = $2",
            &[server_id.0.into(), id.0.into()],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let options: SendOptions = row.json(14)?;
    Ok(Some(Message {
        id,
        token: MessageToken(row.text(0)?),
        rcpt_to: row.text(1)?,
        status: row.parsed(2, Status::parse)?,
        hold_expiry: row.time_opt(3)?,
        bounce_for_id: row.int(4)?,
        last_delivery_at: row.time_opt(5)?,
        next_attempt_at: row.time_opt(6)?,
        send_at: row.time_opt(22)?.or(options.send_at),
        released_at: row.time_opt(23)?,
        send: Arc::new(SendInfo {
            server_id,
            id: SendId(row.int(7)?),
            credential_id: row.int_opt(8)?.map(CredentialId),
            message_id: row.text(9)?,
            mail_from: row.text(10)?,
            from_domain: row.text(21)?,
            subject: row.text(11)?,
            tag: row.text_opt(12)?,
            metadata: row.json(13)?,
            options,
            size: row.int(15)? as u64,
            direction: row.parsed(16, Direction::parse)?,
            bounce: row.flag(17)?,
            received_with_ssl: row.flag(18)?,
            test: row.flag(19)?,
            created_at: row.time(20)?,
        }),
    }))
}
