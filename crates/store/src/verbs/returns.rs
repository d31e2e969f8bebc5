//! Taking what came back: the mail itself, and what it means for the message it is about.

use postroad_model::{DeliveryId, EventId, IdGenerator, MessageId, ServerId, Status};

use super::recipient_providers;
use crate::error::StoreError;
use crate::events::append;
use crate::events::append::EventPlace;
use crate::messages::body::INLINE_BYTES_MAX;
use crate::outcomes::deliveries;
use crate::pools::source_days::day_of;
use crate::records::{NewReturn, ReturnEffect, Taken};
use crate::sql::{Sql, to_json};
use crate::suppressions::add;

/// Whoever got a message knows its return path, and could fill the disk through it.
const RETURNS_PER_MESSAGE_MAX: usize = 20;

/// As for sends: no single value strains the server.
const PIECE_BYTES: usize = 512 << 10;

/// Where the message stands that it is about.
struct Standing {
    status: Status,
    last_seq: i64,
    test: bool,
}

/// `NotFound` if there is no message that it could be about.
pub(crate) async fn take(sql: &Sql<'_>, ids: &IdGenerator, new: NewReturn) -> Result<Taken, StoreError> {
    let server_id = new.info.server_id;
    let standing = lock(sql, server_id, new.about).await?.ok_or(StoreError::NotFound)?;
    let effect = new.effect.as_ref();
    let has_effect = match effect {
        Some(effect) => is_new(sql, &new, effect, &standing).await?,
        None => false,
    };
    // What has an effect is kept in any case: the event names it.
    let is_stored = has_effect || is_wanted(sql, &new).await?;
    // The body first: it may take its time, and the counts that follow are rows which others wait for.
    if is_stored {
        insert(sql, &new, standing.test).await?;
    }
    if let Some(effect) = effect.filter(|_| has_effect) {
        apply(sql, ids, &new, effect, &standing).await?;
    }
    Ok(Taken { is_stored, has_effect })
}

/// Locked against a second notice about the same message.
async fn lock(sql: &Sql<'_>, server_id: ServerId, id: MessageId) -> Result<Option<Standing>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT m.status, m.last_seq, s.test FROM messages m
         JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
         WHERE m.server_id = $1 AND m.id = $2 AND s.direction = 'outgoing'"
    } else {
        "SELECT m.status, m.last_seq, s.test FROM messages m
         JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
         WHERE m.server_id = $1 AND m.id = $2 AND s.direction = 'outgoing' FOR UPDATE OF m"
    };
    let row = sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await?;
    row.map(|row| {
        Ok(Standing { status: row.name(0, Status::parse)?, last_seq: row.int(1)?, test: row.flag(2)? })
    })
    .transpose()
}

/// A message bounces when it can, and is complained about once.
async fn is_new(
    sql: &Sql<'_>,
    new: &NewReturn,
    effect: &ReturnEffect,
    standing: &Standing,
) -> Result<bool, StoreError> {
    if let Some(delivery) = &effect.delivery {
        return Ok(standing.status.can_become(delivery.status));
    }
    let told = sql
        .query_opt(
            // In order of `seq`: else SQLite goes through all events of the server.
            "SELECT seq FROM events WHERE server_id = $1 AND message_id = $2 AND kind = $3 ORDER BY seq LIMIT 1",
            &[new.info.server_id.0.into(), new.about.0.into(), effect.event.kind.as_str().into()],
        )
        .await?;
    Ok(told.is_none())
}

async fn apply(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    new: &NewReturn,
    effect: &ReturnEffect,
    standing: &Standing,
) -> Result<(), StoreError> {
    let (server_id, about, seq) = (new.info.server_id, new.about, standing.last_seq + 1);
    let Some(delivery) = &effect.delivery else {
        let text = "UPDATE messages SET last_seq = $3 WHERE server_id = $1 AND id = $2";
        sql.change(text, &[server_id.0.into(), about.0.into(), seq.into()]).await?;
        tell(sql, ids, new, effect, standing).await?;
        return count_for_source(sql, new, effect, (0, 1)).await;
    };
    sql.change(
        "UPDATE messages SET last_seq = $3, status = $4, last_delivery_at = $5 WHERE server_id = $1 AND id = $2",
        &[
            server_id.0.into(),
            about.0.into(),
            seq.into(),
            delivery.status.as_str().into(),
            delivery.at.into(),
        ],
    )
    .await?;
    deliveries::add(sql, server_id, about, DeliveryId(ids.next()), delivery).await?;
    tell(sql, ids, new, effect, standing).await?;
    count_for_source(sql, new, effect, (1, 0)).await
}

/// The event, and the address that gets no more mail.
async fn tell(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    new: &NewReturn,
    effect: &ReturnEffect,
    standing: &Standing,
) -> Result<(), StoreError> {
    let (server_id, at) = (new.info.server_id, new.info.created_at);
    let place = EventPlace {
        server_id,
        message_id: new.about,
        id: EventId(ids.next()),
        seq: standing.last_seq + 1,
        at,
        test: standing.test,
    };
    append::add(sql, place, &effect.event).await?;
    if let Some(suppression) = &effect.suppress {
        add::add(sql, server_id, vec![suppression.clone()], at).await?;
    }
    Ok(())
}

/// Bounces and complaints slow the warm-up of the address that the message left from, if we still have it.
async fn count_for_source(
    sql: &Sql<'_>,
    new: &NewReturn,
    effect: &ReturnEffect,
    (bounced, complained): (i64, i64),
) -> Result<(), StoreError> {
    if !effect.counts_for_source {
        return Ok(());
    }
    let source = sql
        .query_opt(
            "SELECT s.id, m.rcpt_to FROM deliveries d JOIN sources s ON s.address = d.source_ip
             JOIN messages m ON m.server_id = d.server_id AND m.id = d.message_id
             WHERE d.server_id = $1 AND d.message_id = $2 AND d.status = $3 ORDER BY d.id DESC LIMIT 1",
            &[new.info.server_id.0.into(), new.about.0.into(), Status::Sent.as_str().into()],
        )
        .await?;
    let Some(source) = source else { return Ok(()) };
    let provider = recipient_providers::of_address(sql, &source.text(1)?).await?;
    sql.execute(
        "INSERT INTO source_days (source_id, provider, day, sent, bounced, complained) VALUES ($1, $5, $2, 0, $3, $4)
         ON CONFLICT (source_id, provider, day) DO UPDATE SET bounced = source_days.bounced + excluded.bounced,
             complained = source_days.complained + excluded.complained",
        &[
            source.int(0)?.into(),
            day_of(new.info.created_at).into(),
            bounced.into(),
            complained.into(),
            provider.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Not the same one again, as when our 250 was lost, and not more than anybody reads.
async fn is_wanted(sql: &Sql<'_>, new: &NewReturn) -> Result<bool, StoreError> {
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

/// The mail itself: there, read by who asks for it, and never queued.
async fn insert(sql: &Sql<'_>, new: &NewReturn, test: bool) -> Result<(), StoreError> {
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
            // It has reached its end: nothing is done with it any more.
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
        // A large one is in its file.
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
