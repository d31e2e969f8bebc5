//! Stored returned mail: limited per message, can be read, never queued.

use postroad_model::Status;

use super::record::NewReturn;
use crate::error::StoreError;
use crate::messages::body::INLINE_BYTES_MAX;
use crate::sql::{Sql, to_json};

/// Maximum number of returned mails stored per message: everybody who received the message knows its return path, and
/// could fill the disk.
const RETURNS_PER_MESSAGE_MAX: usize = 20;
/// Size of a body's pieces on PostgreSQL, as for sends.
const PIECE_BYTES: usize = 512 << 10;

/// Whether to store the mail: `false` for a repetition, such as after our 250 was lost, and beyond the maximum number
/// per message.
pub(crate) async fn should_store(sql: &Sql<'_>, new: &NewReturn) -> Result<bool, StoreError> {
    let stored = sql
        .query(
            "SELECT s.message_id FROM messages m JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
             WHERE m.server_id = $1 AND m.bounce_for_id = $2 AND m.bounce_for_id <> 0",
            &[new.info.server_id.0.into(), new.about.0.into()],
        )
        .await?;
    for row in &stored {
        if !new.info.message_id.is_empty() && row.text(0)? == new.info.message_id {
            return Ok(false);
        }
    }
    Ok(stored.len() < RETURNS_PER_MESSAGE_MAX)
}

/// Inserts the mail itself. It can be read, but is never queued.
pub(crate) async fn insert(sql: &Sql<'_>, new: &NewReturn, test: bool) -> Result<(), StoreError> {
    let info = &new.info;
    sql.execute(
        "INSERT INTO sends (server_id, id, credential_id, message_id, mail_from, subject, tag, metadata, options,
                            size, direction, bounce, received_with_ssl, test, created_at, from_domain)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
        &[
            info.server_id.0.into(),
            info.id.0.into(),
            info.credential_id.map(|id| id.0).into(),
            info.message_id.as_str().into(),
            info.mail_from.as_str().into(),
            info.subject.as_str().into(),
            info.tag.as_deref().into(),
            to_json(&info.metadata).into(),
            to_json(&info.options).into(),
            (info.size as i64).into(),
            info.direction.as_str().into(),
            info.bounce.into(),
            info.received_with_ssl.into(),
            test.into(),
            info.created_at.into(),
            info.from_domain.as_str().into(),
        ],
    )
    .await?;
    insert_body(sql, new).await?;
    sql.execute(
        "INSERT INTO messages (server_id, id, send_id, token, rcpt_to, status, hold_expiry, bounce_for_id,
                               last_delivery_at, last_seq)
         VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, NULL, 0)",
        &[
            info.server_id.0.into(),
            new.id.0.into(),
            info.id.0.into(),
            new.token.0.as_str().into(),
            new.rcpt_to.as_str().into(),
            // This status is final: nothing more happens to the mail.
            Status::Sent.as_str().into(),
            new.about.0.into(),
        ],
    )
    .await?;
    Ok(())
}

async fn insert_body(sql: &Sql<'_>, new: &NewReturn) -> Result<(), StoreError> {
    let (server, send, body) = (new.info.server_id.0, new.info.id.0, new.body.compressed());
    if sql.is_sqlite() {
        // A large body was already written to a file; its row has NULL.
        let inline = (body.len() <= INLINE_BYTES_MAX).then(|| body.to_vec());
        let text = "INSERT INTO bodies (send_id, data) VALUES ($1, $2)";
        sql.execute(text, &[send.into(), inline.into()]).await?;
        return Ok(());
    }
    for (number, piece) in body.chunks(PIECE_BYTES).enumerate() {
        sql.execute(
            "INSERT INTO bodies (server_id, send_id, piece, data) VALUES ($1, $2, $3, $4)",
            &[server.into(), send.into(), (number as i64).into(), piece.to_vec().into()],
        )
        .await?;
    }
    Ok(())
}
