//! Opens, clicks and unsubscriptions: the message's marks, the event, and the address that gets no more mail.

use std::time::Duration;

use postroad_model::{
    DomainName, EventId, EventKind, IdGenerator, MessageId, ServerId, Status, SuppressionReason, Timestamp,
};
use serde_json::json;

use super::events::EventPlace;
use super::{events, suppressions};
use crate::error::StoreError;
use crate::records::{HitKind, NewEvent, NewHit, NewSuppression};
use crate::sql::Sql;

/// Whoever got a message can fetch its links for ever; this many events of one message tell enough.
const EVENTS_PER_MESSAGE_MAX: i64 = 1_000;
/// Nobody reads and clicks as fast; scanners do.
const TOO_FAST: Duration = Duration::from_secs(1);

const OPENED: i64 = 1;
const OPENED_BY_BOT: i64 = 2;
const CLICKED: i64 = 4;
const CLICKED_BY_BOT: i64 = 8;
const UNSUBSCRIBED: i64 = 16;

/// Where the message stands.
struct Standing {
    last_seq: i64,
    marks: i64,
    rcpt_to: String,
    status: Status,
    last_delivery_at: Option<Timestamp>,
    test: bool,
}

/// What a hit comes to.
struct Told {
    marks: i64,
    event: NewEvent,
}

/// In the order of messages, as everybody locks them. Hits of unknown messages are passed over.
pub(crate) async fn record(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    mut hits: Vec<NewHit>,
    simulator_domain: &DomainName,
) -> Result<(), StoreError> {
    hits.sort_by_key(|hit| (hit.server_id, hit.message_id, hit.at));
    for hit in &hits {
        let Some(standing) = lock(sql, hit.server_id, hit.message_id).await? else { continue };
        let Some(told) = told(hit, &standing) else { continue };
        let seq = standing.last_seq + 1;
        sql.change(
            "UPDATE messages SET last_seq = $3, marks = $4 WHERE server_id = $1 AND id = $2",
            &[hit.server_id.0.into(), hit.message_id.0.into(), seq.into(), told.marks.into()],
        )
        .await?;
        let place = EventPlace {
            server_id: hit.server_id,
            message_id: hit.message_id,
            id: EventId(ids.next()),
            seq,
            at: hit.at,
            test: standing.test,
        };
        events::add(sql, place, &told.event).await?;
        if hit.kind == HitKind::Unsubscribe && !standing.test {
            suppress(sql, hit, standing.rcpt_to, simulator_domain).await?;
        }
    }
    Ok(())
}

async fn lock(sql: &Sql<'_>, server_id: ServerId, id: MessageId) -> Result<Option<Standing>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT m.last_seq, m.marks, m.rcpt_to, m.status, m.last_delivery_at, s.test FROM messages m
         JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
         WHERE m.server_id = $1 AND m.id = $2 AND s.direction = 'outgoing'"
    } else {
        "SELECT m.last_seq, m.marks, m.rcpt_to, m.status, m.last_delivery_at, s.test FROM messages m
         JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
         WHERE m.server_id = $1 AND m.id = $2 AND s.direction = 'outgoing' FOR UPDATE OF m"
    };
    let row = sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await?;
    row.map(|row| {
        Ok(Standing {
            last_seq: row.int(0)?,
            marks: row.int(1)?,
            rcpt_to: row.text(2)?,
            status: row.name(3, Status::parse)?,
            last_delivery_at: row.time_opt(4)?,
            test: row.flag(5)?,
        })
    })
    .transpose()
}

/// `None` if there is nothing to tell.
fn told(hit: &NewHit, standing: &Standing) -> Option<Told> {
    let (ip_address, user_agent) = (&hit.ip_address, &hit.user_agent);
    if hit.kind == HitKind::Unsubscribe {
        let data = json!({ "ip_address": ip_address, "user_agent": user_agent });
        let event = NewEvent { kind: EventKind::Unsubscribed, data: data.to_string() };
        let is_new = standing.marks & UNSUBSCRIBED == 0;
        return is_new.then_some(Told { marks: standing.marks | UNSUBSCRIBED, event });
    }
    if standing.last_seq >= EVENTS_PER_MESSAGE_MAX {
        return None;
    }
    let bot = hit.is_bot || is_too_fast(hit, standing);
    let (kind, by_person, by_bot) = match &hit.kind {
        HitKind::Click { .. } => (EventKind::Clicked, CLICKED, CLICKED_BY_BOT),
        _ => (EventKind::Opened, OPENED, OPENED_BY_BOT),
    };
    let mark = if bot { by_bot } else { by_person };
    let mut data = json!({
        "first": standing.marks & mark == 0,
        "bot": bot,
        "first_including_bots": standing.marks & (by_person | by_bot) == 0,
        "ip_address": ip_address,
        "user_agent": user_agent,
    });
    if let HitKind::Click { url, link } = &hit.kind {
        data["url"] = json!(url);
        data["token"] = json!(link);
    }
    let event = NewEvent { kind, data: data.to_string() };
    Some(Told { marks: standing.marks | mark, event })
}

/// A click within a second of delivery, or before it was known to be delivered.
fn is_too_fast(hit: &NewHit, standing: &Standing) -> bool {
    if !matches!(hit.kind, HitKind::Click { .. }) || standing.test {
        return false;
    }
    match standing.last_delivery_at {
        None => true,
        Some(delivered_at) => standing.status == Status::Sent && hit.at < delivered_at.plus(TOO_FAST),
    }
}

/// Simulator recipients are never suppressed by what they do.
async fn suppress(
    sql: &Sql<'_>,
    hit: &NewHit,
    address: String,
    simulator_domain: &DomainName,
) -> Result<(), StoreError> {
    let domain = address.rsplit_once('@').and_then(|(_, domain)| DomainName::parse(domain).ok());
    if domain.as_ref() == Some(simulator_domain) {
        return Ok(());
    }
    let suppression = NewSuppression {
        address,
        reason: SuppressionReason::Unsubscribe,
        details: "Unsubscribed by the link in a message".to_owned(),
        origin_message_id: Some(hit.message_id),
        expires_at: None,
    };
    suppressions::add(sql, hit.server_id, vec![suppression], hit.at).await?;
    Ok(())
}
