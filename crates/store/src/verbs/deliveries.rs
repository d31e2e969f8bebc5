//! Delivery records: add one, list those of a message.

use postroad_model::{DeliveryId, MessageId, ServerId, Status};

use crate::error::StoreError;
use crate::records::{Delivery, NewDelivery};
use crate::sql::Sql;

pub(crate) async fn add(
    sql: &Sql<'_>,
    server_id: ServerId,
    message_id: MessageId,
    id: DeliveryId,
    new: &NewDelivery,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO deliveries (server_id, message_id, id, at, status, details, output, sent_with_ssl, log_id,
                                 duration_us, mx, remote_ip, source_ip, tls, code, enhanced_code, bounce_class,
                                 next_attempt_at, possible_duplicate)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
        &[
            server_id.0.into(),
            message_id.0.into(),
            id.0.into(),
            new.at.into(),
            new.status.as_str().into(),
            new.details.as_str().into(),
            new.output.as_str().into(),
            new.sent_with_ssl.into(),
            new.log_id.as_str().into(),
            new.duration_us.into(),
            new.mx.as_deref().into(),
            new.remote_ip.as_deref().into(),
            new.source_ip.as_deref().into(),
            new.tls.as_deref().into(),
            new.code.into(),
            new.enhanced_code.as_deref().into(),
            new.bounce_class.as_deref().into(),
            new.next_attempt_at.into(),
            new.possible_duplicate.into(),
        ],
    )
    .await?;
    Ok(())
}

/// In time order: ids are handed out in it.
pub(crate) async fn list(
    sql: &Sql<'_>,
    server_id: ServerId,
    message_id: MessageId,
) -> Result<Vec<Delivery>, StoreError> {
    let rows = sql
        .query(
            "SELECT id, at, status, details, output, sent_with_ssl, log_id, duration_us, mx, remote_ip, source_ip,
                    tls, code, enhanced_code, bounce_class, next_attempt_at, possible_duplicate
             FROM deliveries WHERE server_id = $1 AND message_id = $2 ORDER BY id",
            &[server_id.0.into(), message_id.0.into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Delivery {
                id: DeliveryId(row.int(0)?),
                record: NewDelivery {
                    at: row.time(1)?,
                    status: row.name(2, Status::parse)?,
                    details: row.text(3)?,
                    output: row.text(4)?,
                    sent_with_ssl: row.flag(5)?,
                    log_id: row.text(6)?,
                    duration_us: row.int_opt(7)?,
                    mx: row.text_opt(8)?,
                    remote_ip: row.text_opt(9)?,
                    source_ip: row.text_opt(10)?,
                    tls: row.text_opt(11)?,
                    code: row.int_opt(12)?,
                    enhanced_code: row.text_opt(13)?,
                    bounce_class: row.text_opt(14)?,
                    next_attempt_at: row.time_opt(15)?,
                    possible_duplicate: row.flag(16)?,
                },
            })
        })
        .collect()
}

/// In time order.
pub(crate) async fn list_transcripts(
    sql: &Sql<'_>,
    server_id: ServerId,
    message_id: MessageId,
) -> Result<Vec<(DeliveryId, String)>, StoreError> {
    let rows = sql
        .query(
            "SELECT delivery_id, transcript FROM delivery_transcripts
             WHERE server_id = $1 AND message_id = $2 ORDER BY delivery_id",
            &[server_id.0.into(), message_id.0.into()],
        )
        .await?;
    rows.iter().map(|row| Ok((DeliveryId(row.int(0)?), row.text(1)?))).collect()
}
