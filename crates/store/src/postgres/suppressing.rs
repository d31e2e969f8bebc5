//! Addresses that get no more mail, many at once. The last rows that a transaction locks but for its own node's.

use std::borrow::Cow;

use postroad_model::{ServerId, Timestamp};

use super::columns::table;
use crate::sql::storable;
use crate::suppressions::NewSuppression;
use crate::suppressions::record::address_key;

// Keeps the older one, unless it is over or the new one lasts longer. Of several for one address the first counts.
table! { Suppressions, "INSERT INTO suppressions AS known
        (server_id, address, reason, details, origin_message_id, created_at, expires_at)
    SELECT DISTINCT ON (server_id, address) server_id, address, reason, details, origin, at, expires_at
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
        WITH ORDINALITY AS row (server_id, address, reason, details, origin, at, expires_at, number)
    ORDER BY server_id, address, number
    ON CONFLICT (server_id, address) DO UPDATE SET reason = excluded.reason, details = excluded.details,
        origin_message_id = excluded.origin_message_id, created_at = excluded.created_at,
        expires_at = excluded.expires_at
    WHERE known.expires_at <= excluded.created_at
        OR known.expires_at < coalesce(excluded.expires_at, 9223372036854775807)",
    server_id: i64, address: String, reason: &'a str, details: Cow<'a, str>, origin_message_id: Option<i64>,
    at: i64, expires_at: Option<i64>,
}

impl<'a> Suppressions<'a> {
    /// `now` is when it is written, which may be long after what led to it: by it `begin` finds out on other nodes what came
    /// after a message was accepted.
    pub(super) fn add(&mut self, server_id: ServerId, new: &'a NewSuppression, now: Timestamp) {
        self.server_id.push(server_id.0);
        self.address.push(address_key(&new.address));
        self.reason.push(new.reason.as_str());
        self.details.push(storable(&new.details));
        self.origin_message_id.push(new.origin_message_id.map(|id| id.0));
        self.at.push(now.as_micros());
        self.expires_at.push(new.expires_at.map(Timestamp::as_micros));
    }
}
