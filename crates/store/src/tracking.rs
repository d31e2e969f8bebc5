//! Opens, clicks and unsubscriptions: the message's marks, the event, and the suppression of who unsubscribed.

use std::time::Duration;

use postroad_model::{
    DomainName, EventId, EventKind, IdGenerator, MessageId, ServerId, Status, SuppressionReason, Timestamp,
};
use serde_json::json;

use crate::error::StoreError;
use crate::events::append::EventPlace;
use crate::events::{NewEvent, append};
use crate::sql::Sql;
use crate::suppressions::{NewSuppression, add};
use crate::{Engine, Result, Store};

/// Whoever got a message can fetch its links for ever; this many events of one message tell enough.
const EVENTS_PER_MESSAGE_MAX: i64 = 1_000;

/// Nobody reads and clicks as fast; scanners do.
const TOO_FAST: Duration = Duration::from_secs(1);

const OPENED: i64 = 1;

const OPENED_BY_BOT: i64 = 2;

const CLICKED: i64 = 4;

const CLICKED_BY_BOT: i64 = 8;

const UNSUBSCRIBED: i64 = 16;

/// Somebody fetched a pixel, followed a link or unsubscribed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTrackingEvent {
    pub server_id: ServerId,
    pub message_id: MessageId,
    pub kind: TrackingEventKind,
    pub at: Timestamp,
    pub ip_address: String,
    pub user_agent: String,
    /// By what was known without the message.
    pub is_bot: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrackingEventKind {
    Open,
    Click {
        url: String,
        /// Names the link within its message.
        link: String,
    },
    Unsubscribe {
        /// Who gets no more mail.
        address: String,
    },
}

impl Store {
    /// Marks messages and appends events, all of them or none; who unsubscribed is suppressed, also if the message is
    /// gone, except at the simulator's domain. Keep it to a few hundred at a time.
    pub async fn record_tracking_events(
        &self,
        new: Vec<NewTrackingEvent>,
        simulator_domain: DomainName,
    ) -> Result<()> {
        let servers: Vec<ServerId> = new.iter().map(|hit| hit.server_id).collect();
        let left = new.iter().filter(|hit| matches!(hit.kind, TrackingEventKind::Unsubscribe { .. }));
        let left: Vec<ServerId> = left.map(|hit| hit.server_id).collect();
        match &*self.engine {
            Engine::Sqlite { .. } => {
                self.write_with_ids(move |sql, ids| {
                    Box::pin(async move { record(sql, &ids, new, &simulator_domain).await })
                })
                .await?;
            }
            Engine::Postgres(engine) => engine.record_tracking_events(new, &simulator_domain).await?,
        }
        self.last_suppressed.note(left, self.clock.now());
        self.notifier.notify(servers);
        Ok(())
    }
}

/// Where the message stands.
pub(crate) struct Standing {
    pub(crate) last_seq: i64,
    pub(crate) marks: i64,
    pub(crate) status: Status,
    pub(crate) last_delivery_at: Option<Timestamp>,
    pub(crate) test: bool,
}

/// In the order of messages, as everybody locks them, and of time.
pub(crate) fn sort(hits: &mut [NewTrackingEvent]) {
    hits.sort_by_key(|hit| (hit.server_id, hit.message_id, hit.at));
}

/// Of messages that are not there nothing is told.
pub(crate) async fn record(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    mut hits: Vec<NewTrackingEvent>,
    simulator_domain: &DomainName,
) -> Result<(), StoreError> {
    sort(&mut hits);
    for hit in &hits {
        let mut standing = find(sql, hit.server_id, hit.message_id).await?;
        if let Some(standing) = &mut standing
            && let Some(event) = standing.take(hit)
        {
            sql.change(
                "UPDATE messages SET last_seq = $3, marks = $4 WHERE server_id = $1 AND id = $2",
                &[
                    hit.server_id.0.into(),
                    hit.message_id.0.into(),
                    standing.last_seq.into(),
                    standing.marks.into(),
                ],
            )
            .await?;
            let place = EventPlace {
                server_id: hit.server_id,
                message_id: hit.message_id,
                id: EventId(ids.next()),
                seq: standing.last_seq,
                at: hit.at,
                test: standing.test,
            };
            append::add(sql, place, &event).await?;
        }
        if let Some(suppression) = suppression(hit, standing.as_ref(), simulator_domain) {
            add::add(sql, hit.server_id, vec![suppression], hit.at).await?;
        }
    }
    Ok(())
}

async fn find(sql: &Sql<'_>, server_id: ServerId, id: MessageId) -> Result<Option<Standing>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT m.last_seq, m.marks, m.status, m.last_delivery_at, s.test FROM messages m
             JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
             WHERE m.server_id = $1 AND m.id = $2 AND s.direction = 'outgoing'",
            &[server_id.0.into(), id.0.into()],
        )
        .await?;
    row.map(|row| {
        Ok(Standing {
            last_seq: row.int(0)?,
            marks: row.int(1)?,
            status: row.name(2, Status::parse)?,
            last_delivery_at: row.time_opt(3)?,
            test: row.flag(4)?,
        })
    })
    .transpose()
}

impl Standing {
    /// Marks the hit; the event has the number that is the last now. `None` if there is nothing to tell.
    pub(crate) fn take(&mut self, hit: &NewTrackingEvent) -> Option<NewEvent> {
        let (marks, event) = self.told(hit)?;
        self.marks |= marks;
        self.last_seq += 1;
        Some(event)
    }

    fn told(&self, hit: &NewTrackingEvent) -> Option<(i64, NewEvent)> {
        let (ip_address, user_agent) = (&hit.ip_address, &hit.user_agent);
        let (kind, by_person, by_bot) = match &hit.kind {
            TrackingEventKind::Unsubscribe { .. } => {
                let data = json!({ "ip_address": ip_address, "user_agent": user_agent }).to_string();
                let event = NewEvent { kind: EventKind::Unsubscribed, data };
                return (self.marks & UNSUBSCRIBED == 0).then_some((UNSUBSCRIBED, event));
            }
            TrackingEventKind::Click { .. } => (EventKind::Clicked, CLICKED, CLICKED_BY_BOT),
            TrackingEventKind::Open => (EventKind::Opened, OPENED, OPENED_BY_BOT),
        };
        if self.last_seq >= EVENTS_PER_MESSAGE_MAX {
            return None;
        }
        let bot = hit.is_bot || self.is_too_fast(hit);
        let mark = if bot { by_bot } else { by_person };
        let mut data = json!({
            "first": self.marks & mark == 0,
            "bot": bot,
            "first_including_bots": self.marks & (by_person | by_bot) == 0,
            "ip_address": ip_address,
            "user_agent": user_agent,
        });
        if let TrackingEventKind::Click { url, link } = &hit.kind {
            data["url"] = json!(url);
            data["token"] = json!(link);
        }
        Some((mark, NewEvent { kind, data: data.to_string() }))
    }

    /// A click within a second of delivery, or before it was known to be delivered.
    fn is_too_fast(&self, hit: &NewTrackingEvent) -> bool {
        if !matches!(hit.kind, TrackingEventKind::Click { .. }) || self.test {
            return false;
        }
        match self.last_delivery_at {
            None => true,
            Some(delivered_at) => self.status == Status::Sent && hit.at < delivered_at.plus(TOO_FAST),
        }
    }
}

/// Who unsubscribes is suppressed, however often it was told, and whether or not the message is still there. Simulator
/// recipients never are by what they do.
pub(crate) fn suppression(
    hit: &NewTrackingEvent,
    standing: Option<&Standing>,
    simulator_domain: &DomainName,
) -> Option<NewSuppression> {
    let TrackingEventKind::Unsubscribe { address } = &hit.kind else { return None };
    let domain = address.rsplit_once('@').and_then(|(_, domain)| DomainName::parse(domain).ok());
    if domain.as_ref() == Some(simulator_domain) || standing.is_some_and(|standing| standing.test) {
        return None;
    }
    Some(NewSuppression {
        address: address.clone(),
        reason: SuppressionReason::Unsubscribe,
        details: "Unsubscribed by the link in a message".to_owned(),
        origin_message_id: Some(hit.message_id),
        expires_at: None,
    })
}
