//! Records opens, clicks and unsubscriptions: each marks its message and appends an event, and an unsubscription also
//! suppresses the address.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{
    DomainName, EventId, EventKind, IdGenerator, MessageId, ServerId, Status, SuppressionReason, Timestamp,
};
use serde_json::json;

use crate::erase::message::erased_address;
use crate::error::StoreError;
use crate::events::event::EventRow;
use crate::events::{NewEvent, append};
use crate::sql::Sql;
use crate::suppressions::{NewSuppression, add};
use crate::{Engine, Result, Store};

/// For a message with this many events, no further opens and clicks are recorded: anybody who received the message can
/// fetch its links forever.
const EVENTS_PER_MESSAGE_MAX: i64 = 1_000;

/// A click this soon after delivery is a scanner's: people do not read that fast.
const SCANNER_CLICK_DELAY_MAX: Duration = Duration::from_secs(1);

// Bits of `messages.marks`.
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
    /// Whether the request looks like a program's, judged by the request alone.
    pub is_bot: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrackingEventKind {
    Open,
    Click {
        url: String,
        /// Identifies the link within its message.
        link: String,
    },
    Unsubscribe {
        /// The address to suppress.
        address: String,
    },
}

#[boxed_futures]
impl Store {
    /// Marks messages and appends events, all or none. An unsubscription suppresses the address even if the message no
    /// longer exists, except for test messages and at the simulator's domain. Pass at most a few hundred at a time.
    pub async fn record_tracking_events(
        &self,
        new: Vec<NewTrackingEvent>,
        simulator_domain: DomainName,
    ) -> Result<()> {
        let servers: Vec<ServerId> = new.iter().map(|tracked_event| tracked_event.server_id).collect();
        let unsubscriptions = new
            .iter()
            .filter(|tracked_event| matches!(tracked_event.kind, TrackingEventKind::Unsubscribe { .. }));
        let unsubscribed: Vec<ServerId> =
            unsubscriptions.map(|tracked_event| tracked_event.server_id).collect();
        match &*self.engine {
            Engine::Sqlite { .. } => {
                self.write_with_ids(move |sql, ids| {
                    Box::pin(async move { record(sql, &ids, new, &simulator_domain).await })
                })
                .await?;
            }
            Engine::Postgres(engine) => engine.record_tracking_events(new, &simulator_domain).await?,
        }
        self.last_suppressed.note(unsubscribed, self.clock.now());
        self.notifier.notify(servers);
        Ok(())
    }
}

/// The part of a message's row that tracking reads and changes.
pub(crate) struct MessageState {
    pub(crate) last_seq: i64,
    pub(crate) marks: i64,
    pub(crate) status: Status,
    pub(crate) last_delivery_at: Option<Timestamp>,
    pub(crate) test: bool,
}

/// Sorts by message, which is the locking order, and then by time.
pub(crate) fn sort(tracked: &mut [NewTrackingEvent]) {
    tracked
        .sort_by_key(|tracked_event| (tracked_event.server_id, tracked_event.message_id, tracked_event.at));
}

/// Marks messages, appends their events and adds suppressions. Messages that no longer exist get no event.
pub(crate) async fn record(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    mut tracked: Vec<NewTrackingEvent>,
    simulator_domain: &DomainName,
) -> Result<(), StoreError> {
    sort(&mut tracked);
    for tracked_event in &tracked {
        let mut state = find(sql, tracked_event.server_id, tracked_event.message_id).await?;
        if let Some(state) = &mut state
            && let Some(event) = state.apply(tracked_event)
        {
            sql.execute_one(
                "UPDATE messages SET last_seq = $3, marks = $4 WHERE server_id = $1 AND id = $2",
                &[
                    tracked_event.server_id.0.into(),
                    tracked_event.message_id.0.into(),
                    state.last_seq.into(),
                    state.marks.into(),
                ],
            )
            .await?;
            let row = EventRow {
                server_id: tracked_event.server_id,
                message_id: tracked_event.message_id,
                id: EventId(ids.next()),
                seq: state.last_seq,
                at: tracked_event.at,
                test: state.test,
                kind: event.kind,
                data: event.data.into(),
            };
            append::append(sql, row).await?;
        }
        if let Some(suppression) = suppression(tracked_event, state.as_ref(), simulator_domain) {
            add::add(sql, tracked_event.server_id, vec![suppression], tracked_event.at).await?;
        }
    }
    Ok(())
}

async fn find(sql: &Sql<'_>, server_id: ServerId, id: MessageId) -> Result<Option<MessageState>, StoreError> {
    let row = sql
        .query_opt(
            concat!(
                "SELECT m.last_seq, m.marks, m.status, m.last_delivery_at, s.test FROM messages m
                 JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
                 WHERE m.server_id = $1 AND m.id = $2 AND s.direction = 'outgoing' AND m.rcpt_to <> '",
                erased_address!(),
                "'"
            ),
            &[server_id.0.into(), id.0.into()],
        )
        .await?;
    row.map(|row| {
        Ok(MessageState {
            last_seq: row.int(0)?,
            marks: row.int(1)?,
            status: row.parsed(2, Status::parse)?,
            last_delivery_at: row.time_opt(3)?,
            test: row.flag(4)?,
        })
    })
    .transpose()
}

impl MessageState {
    /// Marks the message; its event gets the next `seq`. `None` if there is no event to append.
    pub(crate) fn apply(&mut self, tracked_event: &NewTrackingEvent) -> Option<NewEvent> {
        let (marks, event) = self.event_for(tracked_event)?;
        self.marks |= marks;
        self.last_seq += 1;
        Some(event)
    }

    fn event_for(&self, tracked_event: &NewTrackingEvent) -> Option<(i64, NewEvent)> {
        let (ip_address, user_agent) = (&tracked_event.ip_address, &tracked_event.user_agent);
        let (kind, by_person, by_bot) = match &tracked_event.kind {
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
        let bot = tracked_event.is_bot || self.is_too_fast(tracked_event);
        let mark = if bot { by_bot } else { by_person };
        let mut data = json!({
            "first": self.marks & mark == 0,
            "bot": bot,
            "first_including_bots": self.marks & (by_person | by_bot) == 0,
            "ip_address": ip_address,
            "user_agent": user_agent,
        });
        if let TrackingEventKind::Click { url, link } = &tracked_event.kind {
            data["url"] = json!(url);
            data["token"] = json!(link);
        }
        Some((mark, NewEvent { kind, data: data.to_string() }))
    }

    /// Whether the event is a click within a second of delivery, or on a message that has no delivery record yet. Never
    /// for a test message.
    fn is_too_fast(&self, tracked_event: &NewTrackingEvent) -> bool {
        if !matches!(tracked_event.kind, TrackingEventKind::Click { .. }) || self.test {
            return false;
        }
        match self.last_delivery_at {
            None => true,
            Some(delivered_at) => {
                self.status == Status::Sent && tracked_event.at < delivered_at.plus(SCANNER_CLICK_DELAY_MAX)
            }
        }
    }
}

/// An unsubscription suppresses the address, however often it is repeated and even if the message no longer exists.
/// Test messages and simulator recipients are exempt.
pub(crate) fn suppression(
    tracked_event: &NewTrackingEvent,
    state: Option<&MessageState>,
    simulator_domain: &DomainName,
) -> Option<NewSuppression> {
    let TrackingEventKind::Unsubscribe { address } = &tracked_event.kind else { return None };
    let domain = address.rsplit_once('@').and_then(|(_, domain)| DomainName::parse(domain).ok());
    if domain.as_ref() == Some(simulator_domain) || state.is_some_and(|state| state.test) {
        return None;
    }
    Some(NewSuppression {
        address: address.clone(),
        reason: SuppressionReason::Unsubscribe,
        details: "Unsubscribed by the link in a message".to_owned(),
        origin_message_id: Some(tracked_event.message_id),
        expires_at: None,
    })
}
