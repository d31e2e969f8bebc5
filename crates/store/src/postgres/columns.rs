//! A batch turned into columns: one array per column, one insert per table.

use std::borrow::Cow;

use postroad_model::{EventKind, IdGenerator, MessageId, Status, Timestamp};

use super::Node;
use super::claims::Key;
use super::hold_causes::ServerEvent;
use super::outbox::Outbox;
use crate::accept::initial::{HoldCauses, InitialRow};
use crate::accept::{NewSend, SendInfo};
use crate::events::NewEvent;
use crate::sql::to_json;

/// Pieces a body is cut into; small enough that no single value strains the server.
const PIECE_BYTES: usize = 512 << 10;

/// A statement and the arrays it takes, one per column.
macro_rules! table {
    ($name:ident, $sql:literal, $first:ident: $first_kind:ty, $($column:ident: $kind:ty),* $(,)?) => {
        #[derive(Default)]
        pub(super) struct $name<'a> {
            pub(super) $first: Vec<$first_kind>,
            $(pub(super) $column: Vec<$kind>,)*
            _borrows: std::marker::PhantomData<&'a ()>,
        }

        impl $name<'_> {
            const SQL: &'static str = $sql;

            /// `None` if there is nothing to do.
            pub(super) fn statement(&self) -> Option<$crate::postgres::pipeline::Statement<'_>> {
                if self.$first.is_empty() {
                    return None;
                }
                Some((Self::SQL, vec![&self.$first $(, &self.$column)*]))
            }
        }
    };
}
pub(super) use table;

table! { Sends, "INSERT INTO sends (server_id, id, credential_id, message_id, mail_from, subject, tag, metadata, options,
        size, direction, bounce, received_with_ssl, test, created_at, from_domain)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::text[], $9::text[], $10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
        $16::text[])",
    server_id: i64, id: i64, credential_id: Option<i64>, message_id: &'a str, mail_from: &'a str, subject: &'a str,
    tag: Option<&'a str>, metadata: String, options: String, size: i64, direction: &'a str, bounce: i64,
    received_with_ssl: i64, test: i64, created_at: i64, from_domain: &'a str,
}

table! { Bodies, "INSERT INTO bodies (server_id, send_id, piece, data)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])",
    server_id: i64, send_id: i64, piece: i64, data: &'a [u8],
}

table! { Messages, "INSERT INTO messages (server_id, id, send_id, token, rcpt_to, status, hold_expiry, bounce_for_id,
        last_delivery_at, last_seq)
    SELECT server_id, id, send_id, token, rcpt_to, status, hold_expiry, 0, last_delivery_at, last_seq
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
        $9::bigint[])
    AS row (server_id, id, send_id, token, rcpt_to, status, hold_expiry, last_delivery_at, last_seq)",
    server_id: i64, id: i64, send_id: i64, token: &'a str, rcpt_to: &'a str, status: &'a str,
    hold_expiry: Option<i64>, last_delivery_at: Option<i64>, last_seq: i64,
}

table! { Queue, "INSERT INTO queue
        (server_id, message_id, domain, due_at, expires_at, attempts, pool_id, claimed_node, claimed_epoch, scheduled)
    SELECT server_id, message_id, domain, due_at, expires_at, 0, pool_id, claimed_node, claimed_epoch, scheduled
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[])
    AS row (server_id, message_id, domain, due_at, expires_at, pool_id, claimed_node, claimed_epoch, scheduled)",
    server_id: i64, message_id: i64, domain: &'a str, due_at: i64, expires_at: Option<i64>, pool_id: Option<i64>,
    claimed_node: Option<i64>, claimed_epoch: Option<i64>, scheduled: i64,
}

table! { Events, "INSERT INTO events (server_id, id, message_id, seq, kind, at, test, data)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[],
        $8::text[])",
    server_id: i64, id: i64, message_id: i64, seq: i64, kind: &'a str, at: i64, test: i64, data: Cow<'a, str>,
}

table! { Deliveries, "INSERT INTO deliveries (server_id, message_id, id, at, status, details, output, sent_with_ssl, log_id)
    SELECT server_id, message_id, id, at, status, details, '', 0, ''
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
    AS row (server_id, message_id, id, at, status, details)",
    server_id: i64, message_id: i64, id: i64, at: i64, status: &'a str, details: Cow<'a, str>,
}

/// All rows a batch of sends makes.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) sends: Sends<'a>,
    pub(super) bodies: Bodies<'a>,
    pub(super) messages: Messages<'a>,
    pub(super) queue: Queue<'a>,
    pub(super) events: Events<'a>,
    pub(super) outbox: Outbox<'a>,
    pub(super) deliveries: Deliveries<'a>,
}

/// Whether a send's body is too large to go with the batch. It goes before it, piece by piece.
pub(super) fn is_large_body(send: &NewSend) -> bool {
    send.compressed().len() > PIECE_BYTES
}

impl<'a> Bodies<'a> {
    /// The pieces of a body, each by itself.
    pub(super) fn pieces_of(send: &'a NewSend) -> impl Iterator<Item = Self> {
        send.compressed().chunks(PIECE_BYTES).enumerate().map(move |(number, piece)| {
            let mut bodies = Self::default();
            bodies.add(send, number, piece);
            bodies
        })
    }

    fn add(&mut self, send: &NewSend, number: usize, piece: &'a [u8]) {
        self.server_id.push(send.info.server_id.0);
        self.send_id.push(send.info.id.0);
        self.piece.push(number as i64);
        self.data.push(piece);
    }
}

/// What the rows of a batch are made with.
pub(super) struct RowContext<'a> {
    pub(super) ids: &'a IdGenerator,
    pub(super) causes: &'a HoldCauses,
    /// The node that claims what is pending, if it delivers.
    pub(super) claim_for: Option<&'a Node>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(sends: impl Iterator<Item = &'a NewSend>, context: &RowContext<'_>) -> Self {
        let mut columns = Self::default();
        for send in sends {
            columns.add_send(send);
            columns.add_recipients(send, context);
        }
        columns
    }

    /// The messages that are claimed from the start.
    pub(super) fn claimed(&self) -> Vec<Key> {
        let queue = &self.queue;
        let entries = queue.server_id.iter().zip(&queue.message_id).zip(&queue.claimed_node);
        entries
            .filter(|(_, node)| node.is_some())
            .map(|((server, message), _)| (postroad_model::ServerId(*server), MessageId(*message)))
            .collect()
    }

    fn add_send(&mut self, send: &'a NewSend) {
        let (to, info) = (&mut self.sends, &send.info);
        to.server_id.push(info.server_id.0);
        to.id.push(info.id.0);
        to.credential_id.push(info.credential_id.map(|id| id.0));
        to.message_id.push(&info.message_id);
        to.mail_from.push(&info.mail_from);
        to.subject.push(&info.subject);
        to.tag.push(info.tag.as_deref());
        to.metadata.push(to_json(&info.metadata));
        to.options.push(to_json(&info.options));
        to.size.push(info.size as i64);
        to.direction.push(info.direction.as_str());
        to.bounce.push(i64::from(info.bounce));
        to.received_with_ssl.push(i64::from(info.received_with_ssl));
        to.test.push(i64::from(info.test));
        to.created_at.push(info.created_at.as_micros());
        to.from_domain.push(&info.from_domain);
        if !is_large_body(send) {
            self.bodies.add(send, 0, send.compressed());
        }
    }

    fn add_recipients(&mut self, send: &'a NewSend, context: &RowContext<'_>) {
        let (server, at) = (send.info.server_id.0, send.info.created_at.as_micros());
        for recipient in &send.recipients {
            let initial = InitialRow::of(send, recipient, context.causes, context.ids);
            let message = recipient.id.0;
            let to = &mut self.messages;
            to.server_id.push(server);
            to.id.push(message);
            to.send_id.push(send.info.id.0);
            to.token.push(&recipient.token.0);
            to.rcpt_to.push(&recipient.rcpt_to);
            to.status.push(initial.status.as_str());
            to.hold_expiry.push(initial.hold_expiry.map(Timestamp::as_micros));
            to.last_delivery_at.push(initial.delivery.is_some().then_some(at));
            to.last_seq.push(initial.last_seq());
            self.add_event(send, message, context.ids.next(), 1, EventKind::Accepted, "{}".into());
            if let Some(due_at) = initial.due_at {
                let to = &mut self.queue;
                to.server_id.push(server);
                to.message_id.push(message);
                to.domain.push(recipient.domain.as_str());
                to.due_at.push(due_at.as_micros());
                to.expires_at.push(send.info.options.expires_at.map(Timestamp::as_micros));
                to.pool_id.push(send.info.options.pool_id.map(|id| id.0));
                let node = context.claim_for.filter(|_| initial.status == Status::Pending);
                to.claimed_node.push(node.map(|node| i64::from(node.number)));
                to.claimed_epoch.push(node.map(|node| node.epoch));
                to.scheduled.push(initial.scheduled);
            }
            if let Some(first) = initial.delivery {
                let to = &mut self.deliveries;
                to.server_id.push(server);
                to.message_id.push(message);
                to.id.push(first.id.0);
                to.at.push(at);
                to.status.push(initial.status.as_str());
                to.details.push(first.details);
                let NewEvent { kind, data } = first.event;
                self.add_event(send, message, context.ids.next(), 2, kind, data.into());
            }
        }
    }

    fn add_event(
        &mut self,
        send: &NewSend,
        message: i64,
        id: i64,
        seq: i64,
        kind: EventKind,
        data: Cow<'a, str>,
    ) {
        let SendInfo { server_id, created_at, test, .. } = send.info;
        self.outbox.add(server_id.0, id, created_at.as_micros(), kind);
        let to = &mut self.events;
        to.server_id.push(server_id.0);
        to.id.push(id);
        to.message_id.push(message);
        to.seq.push(seq);
        to.kind.push(kind.as_str());
        to.at.push(created_at.as_micros());
        to.test.push(i64::from(test));
        to.data.push(data);
    }

    pub(super) fn add_server_event(&mut self, id: i64, new: ServerEvent) {
        let ServerEvent { server_id, seq, at, event: NewEvent { kind, data } } = new;
        self.outbox.add(server_id.0, id, at.as_micros(), kind);
        let to = &mut self.events;
        to.server_id.push(server_id.0);
        to.id.push(id);
        to.message_id.push(0);
        to.seq.push(seq);
        to.kind.push(kind.as_str());
        to.at.push(at.as_micros());
        to.test.push(0);
        to.data.push(data.into());
    }
}
