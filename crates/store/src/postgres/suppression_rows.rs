//! Writes suppressions on PostgreSQL. A transaction locks suppressions after its other rows; only counts of source
//! addresses and the node's row of created ids come later.

use std::borrow::Cow;

use postroad_model::{ServerId, Timestamp};

use super::pipeline::Statement;
use super::table::table;
use crate::sql::{storable, storable_cow};
use crate::suppressions::NewSuppression;
use crate::suppressions::record::address_key;

// Keeps an existing row, unless it has expired or the new one lasts longer. If the batch has several for one address,
// the first counts. Rows are sorted, to avoid deadlocks between nodes.
table! { SuppressionTable<'a> of SuppressionColumns, "INSERT INTO suppressions AS known
        (server_id, address, reason, details, origin_message_id, created_at, expires_at)
    SELECT DISTINCT ON (server_id, address) {columns}
    FROM {arrays} WITH ORDINALITY AS row ({columns}, number)
    ORDER BY server_id, address, number
    ON CONFLICT (server_id, address) DO UPDATE SET reason = excluded.reason, details = excluded.details,
        origin_message_id = excluded.origin_message_id, created_at = excluded.created_at,
        expires_at = excluded.expires_at
    WHERE known.expires_at <= excluded.created_at
        OR known.expires_at < coalesce(excluded.expires_at, 9223372036854775807)
    RETURNING address",
    server_id: i64, address: Cow<'a, str>, reason: Cow<'a, str>, details: Cow<'a, str>,
    origin_message_id: Option<i64>, at: i64, expires_at: Option<i64>,
}

/// Suppressions of a batch.
#[derive(Default)]
pub(crate) struct SuppressionRows<'a>(SuppressionTable<'a>);

impl<'a> SuppressionRows<'a> {
    /// Adds a suppression. `at` is the time of writing, which may be long after the cause: `begin` on other nodes
    /// compares this time with the due times of messages.
    pub(crate) fn push(&mut self, server_id: ServerId, new: &'a NewSuppression, at: Timestamp) {
        self.0.push(SuppressionColumns {
            server_id: server_id.0,
            address: storable_cow(address_key(&new.address).into()),
            reason: new.reason.as_str().into(),
            details: storable(&new.details),
            origin_message_id: new.origin_message_id.map(|id| id.0),
            at: at.as_micros(),
            expires_at: new.expires_at.map(Timestamp::as_micros),
        });
    }

    /// The statement that writes the rows; its result has the addresses that were written.
    pub(crate) fn statement(&self) -> Option<Statement<'_>> {
        self.0.statement()
    }
}
