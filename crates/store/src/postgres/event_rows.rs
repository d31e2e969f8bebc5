//! Writes events on PostgreSQL, with the outbox rows of the subscribed webhooks.

use std::borrow::Cow;

use super::pipeline::Statement;
use super::table::table;
use crate::events::event::EventRow;
use crate::sql::storable_cow;

table! { EventTable<'a> of EventColumns, "INSERT INTO events ({columns}) SELECT * FROM {arrays}",
    server_id: i64, id: i64, message_id: i64, seq: i64, kind: Cow<'a, str>, at: i64, test: i64, data: Cow<'a, str>,
}

table! { Outbox of OutboxColumns, "INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts)
    SELECT row.server_id, webhooks.id, row.event_id, row.at, 0
    FROM {arrays} AS row ({columns})
    CROSS JOIN LATERAL (SELECT id FROM webhooks WHERE webhooks.server_id = row.server_id AND webhooks.enabled = 1
        AND (webhooks.wants & row.kind) <> 0 OFFSET 0) AS webhooks",
    server_id: i64, event_id: i64, at: i64, kind: i64,
}

/// Events of a batch.
#[derive(Default)]
pub(crate) struct EventRows<'a> {
    events: EventTable<'a>,
    outbox: Outbox,
}

impl<'a> EventRows<'a> {
    pub(crate) fn push(&mut self, event: EventRow<'a>) {
        let EventRow { server_id, message_id, id, seq, kind, at, test, data } = event;
        self.outbox.push(OutboxColumns {
            server_id: server_id.0,
            event_id: id.0,
            at: at.as_micros(),
            kind: kind.bit(),
        });
        self.events.push(EventColumns {
            server_id: server_id.0,
            id: id.0,
            message_id: message_id.0,
            seq,
            kind: kind.as_str().into(),
            at: at.as_micros(),
            test: test.into(),
            data: storable_cow(data),
        });
    }

    pub(crate) fn statements(&self) -> [Option<Statement<'_>>; 2] {
        [self.events.statement(), self.outbox.statement()]
    }
}
