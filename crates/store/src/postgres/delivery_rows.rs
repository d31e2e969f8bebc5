//! Writes delivery records on PostgreSQL.

use std::borrow::Cow;

use postroad_model::Timestamp;

use super::pipeline::Statement;
use super::table::table;
use crate::outcomes::deliveries::DeliveryRow;
use crate::sql::storable_cow;

table! { DeliveryTable<'a> of DeliveryColumns, "INSERT INTO deliveries ({columns}) SELECT * FROM {arrays}",
    server_id: i64, message_id: i64, id: i64, at: i64, status: Cow<'a, str>, details: Cow<'a, str>,
    output: Cow<'a, str>, sent_with_ssl: i64, log_id: Cow<'a, str>, duration_us: Option<i64>,
    mx: Option<Cow<'a, str>>, remote_ip: Option<Cow<'a, str>>, source_ip: Option<Cow<'a, str>>,
    tls: Option<Cow<'a, str>>, code: Option<i64>, enhanced_code: Option<Cow<'a, str>>,
    bounce_class: Option<Cow<'a, str>>, next_attempt_at: Option<i64>, possible_duplicate: i64,
    tls_policy: Option<Cow<'a, str>>, dkim: Option<Cow<'a, str>>,
}

/// Delivery records of a batch.
#[derive(Default)]
pub(crate) struct DeliveryRows<'a>(DeliveryTable<'a>);

impl<'a> DeliveryRows<'a> {
    pub(crate) fn push(&mut self, row: DeliveryRow<'a>) {
        let text = |text: Option<Cow<'a, str>>| text.map(storable_cow);
        self.0.push(DeliveryColumns {
            server_id: row.server_id.0,
            message_id: row.message_id.0,
            id: row.id.0,
            at: row.at.as_micros(),
            status: row.status.as_str().into(),
            details: storable_cow(row.details),
            output: storable_cow(row.output),
            sent_with_ssl: row.sent_with_ssl.into(),
            log_id: storable_cow(row.log_id),
            duration_us: row.duration_us,
            mx: text(row.mx),
            remote_ip: text(row.remote_ip),
            source_ip: text(row.source_ip),
            tls: text(row.tls),
            code: row.code,
            enhanced_code: text(row.enhanced_code),
            bounce_class: text(row.bounce_class),
            next_attempt_at: row.next_attempt_at.map(Timestamp::as_micros),
            possible_duplicate: row.possible_duplicate.into(),
            tls_policy: text(row.tls_policy),
            dkim: text(row.dkim),
        });
    }

    pub(crate) fn statement(&self) -> Option<Statement<'_>> {
        self.0.statement()
    }
}
