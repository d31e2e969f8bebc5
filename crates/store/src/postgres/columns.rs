//! The rows that a batch of sends inserts, as columns (`table.rs`).

use std::borrow::Cow;

use postroad_model::{EventId, EventKind, IdGenerator, MessageId, Status, Timestamp};

use super::Node;
use super::claims::Key;
use super::delivery_rows::DeliveryRows;
use super::event_rows::EventRows;
use super::hold_causes::ServerEvent;
use super::table::table;
use crate::accept::NewSend;
use crate::accept::hand_over::Sink;
use crate::accept::initial::{HoldCauses, InitialRow};
use crate::events::NewEvent;
use crate::events::event::EventRow;
use crate::outcomes::deliveries::DeliveryRow;
use crate::sql::to_json;

/// Size of a body's pieces; small enough that no single value needs much of the database's memory.
const PIECE_BYTES: usize = 512 << 10;

table! { Sends<'a> of SendRow, "INSERT INTO sends ({columns}) SELECT * FROM {arrays}",
    server_id: i64, id: i64, credential_id: Option<i64>, message_id: Cow<'a, str>, mail_from: Cow<'a, str>,
    subject: Cow<'a, str>, tag: Option<Cow<'a, str>>, metadata: Cow<'a, str>, options: Cow<'a, str>, size: i64,
    direction: Cow<'a, str>, bounce: i64, received_with_ssl: i64, test: i64, created_at: i64,
    from_domain: Cow<'a, str>, batch_id: Option<i64>,
}

table! { Bodies<'a> of BodyPieceRow, "INSERT INTO bodies ({columns}) SELECT * FROM {arrays}",
    server_id: i64, send_id: i64, piece: i64, data: &'a [u8],
}

table! { Messages<'a> of MessageRow, "INSERT INTO messages ({columns}, bounce_for_id) SELECT *, 0 FROM {arrays}",
    server_id: i64, id: i64, send_id: i64, token: Cow<'a, str>, rcpt_to: Cow<'a, str>, status: Cow<'a, str>,
    hold_expiry: Option<i64>, last_delivery_at: Option<i64>, last_seq: i64,
}

table! { Queue<'a> of QueueRow, "INSERT INTO queue ({columns}, attempts) SELECT *, 0 FROM {arrays}",
    server_id: i64, message_id: i64, domain: Cow<'a, str>, due_at: i64, expires_at: Option<i64>,
    pool_id: Option<i64>, claimed_node: Option<i64>, claimed_epoch: Option<i64>, scheduled: i64,
}

/// All rows of a batch of sends.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) sends: Sends<'a>,
    pub(super) bodies: Bodies<'a>,
    pub(super) messages: Messages<'a>,
    pub(super) queue: Queue<'a>,
    pub(super) events: EventRows<'a>,
    pub(super) deliveries: DeliveryRows<'a>,
}

/// Whether a body is too large for the batch; such a body is sent before the batch, in pieces.
pub(super) fn is_large_body(send: &NewSend) -> bool {
    send.compressed().len() > PIECE_BYTES
}

impl<'a> Bodies<'a> {
    /// The pieces of a body, one by one.
    pub(super) fn pieces_of(send: &'a NewSend) -> impl Iterator<Item = Self> {
        send.compressed().chunks(PIECE_BYTES).enumerate().map(move |(number, piece)| {
            let mut bodies = Self::default();
            bodies.add(send, number, piece);
            bodies
        })
    }

    /// Small bodies, in groups of about `PIECE_BYTES`.
    pub(super) fn in_groups(sends: impl Iterator<Item = &'a NewSend>) -> Vec<Self> {
        let (mut groups, mut bytes) = (Vec::new(), PIECE_BYTES);
        for send in sends.filter(|send| !is_large_body(send)) {
            if bytes >= PIECE_BYTES {
                groups.push(Self::default());
                bytes = 0;
            }
            bytes += send.compressed().len();
            if let Some(group) = groups.last_mut() {
                group.add(send, 0, send.compressed());
            }
        }
        groups
    }

    fn add(&mut self, send: &NewSend, number: usize, piece: &'a [u8]) {
        self.push(BodyPieceRow {
            server_id: send.info.server_id.0,
            send_id: send.info.id.0,
            piece: number as i64,
            data: piece,
        });
    }
}

/// Shared inputs for the rows of a batch.
pub(super) struct RowContext<'a> {
    pub(super) ids: &'a IdGenerator,
    pub(super) causes: &'a HoldCauses,
    pub(super) node: &'a Node,
    /// Takes pending messages, which are then claimed for this node; `None` if this node does not deliver.
    pub(super) sink: Option<&'a Sink>,
    /// Whether all bodies were sent before the batch's other rows, not only the large bodies.
    pub(super) bodies_were_sent: bool,
}

impl<'a> Columns<'a> {
    pub(super) fn of(sends: impl Iterator<Item = &'a NewSend>, context: &RowContext<'_>) -> Self {
        let mut columns = Self::default();
        for send in sends {
            columns.add_send(send);
            if !context.bodies_were_sent && !is_large_body(send) {
                columns.bodies.add(send, 0, send.compressed());
            }
            columns.add_recipients(send, context);
        }
        columns
    }

    /// The messages that are claimed when accepted.
    pub(super) fn claimed_keys(&self) -> Vec<Key> {
        let queue = &self.queue;
        let entries = queue.server_id.iter().zip(&queue.message_id).zip(&queue.claimed_node);
        entries
            .filter(|(_, node)| node.is_some())
            .map(|((server, message), _)| (postroad_model::ServerId(*server), MessageId(*message)))
            .collect()
    }

    fn add_send(&mut self, send: &'a NewSend) {
        let info = &send.info;
        self.sends.push(SendRow {
            server_id: info.server_id.0,
            id: info.id.0,
            credential_id: info.credential_id.map(|id| id.0),
            message_id: info.message_id.as_str().into(),
            mail_from: info.mail_from.as_str().into(),
            subject: info.subject.as_str().into(),
            tag: info.tag.as_deref().map(Cow::Borrowed),
            metadata: to_json(&info.metadata).into(),
            options: to_json(&info.options).into(),
            size: info.size as i64,
            direction: info.direction.as_str().into(),
            bounce: info.bounce.into(),
            received_with_ssl: info.received_with_ssl.into(),
            test: info.test.into(),
            created_at: info.created_at.as_micros(),
            from_domain: info.from_domain.as_str().into(),
            batch_id: send.batch_id.map(|id| id.0),
        });
    }

    fn add_recipients(&mut self, send: &'a NewSend, context: &RowContext<'_>) {
        let (server_id, at) = (send.info.server_id.0, send.info.created_at);
        let claimer = context.sink.filter(|sink| sink.has_room(send.info.server_id)).map(|_| context.node);
        for recipient in &send.recipients {
            let initial = InitialRow::of(send, recipient, context.causes, context.ids);
            self.messages.push(MessageRow {
                server_id,
                id: recipient.id.0,
                send_id: send.info.id.0,
                token: recipient.token.0.as_str().into(),
                rcpt_to: recipient.rcpt_to.as_str().into(),
                status: initial.status.as_str().into(),
                hold_expiry: initial.hold_expiry.map(Timestamp::as_micros),
                last_delivery_at: initial.delivery.is_some().then_some(at.as_micros()),
                last_seq: initial.last_seq(),
            });
            let event = |seq, kind, data| EventRow {
                server_id: send.info.server_id,
                message_id: recipient.id,
                id: EventId(context.ids.next()),
                seq,
                kind,
                at,
                test: send.info.test,
                data,
            };
            self.events.push(event(1, EventKind::Accepted, "{}".into()));
            if let Some(due_at) = initial.due_at {
                let node = claimer.filter(|_| initial.status == Status::Pending);
                self.queue.push(QueueRow {
                    server_id,
                    message_id: recipient.id.0,
                    domain: recipient.domain.as_str().into(),
                    due_at: due_at.as_micros(),
                    expires_at: send.info.options.expires_at.map(Timestamp::as_micros),
                    pool_id: send.info.options.pool_id.map(|id| id.0),
                    claimed_node: node.map(|node| i64::from(node.number)),
                    claimed_epoch: node.map(|node| node.epoch),
                    scheduled: initial.scheduled,
                });
            }
            if let Some(first) = initial.delivery {
                let key = (send.info.server_id, recipient.id);
                let row = DeliveryRow::local(key, first.id, at, initial.status, first.details);
                self.deliveries.push(row);
                self.events.push(event(2, first.event.kind, first.event.data.into()));
            }
        }
    }

    pub(super) fn add_server_event(&mut self, id: EventId, new: ServerEvent) {
        let ServerEvent { server_id, seq, at, event: NewEvent { kind, data } } = new;
        let message_id = MessageId(0);
        self.events.push(EventRow {
            server_id,
            message_id,
            id,
            seq,
            kind,
            at,
            test: false,
            data: data.into(),
        });
    }
}
