//! Writes delivery records on PostgreSQL.

use std::borrow::Cow;

use postroad_model::Timestamp;

use super::pipeline::Statement;
use super::table::table;
use crate::outcomes::NewDelivery;
use crate::outcomes::deliveries::DeliveryRow;
use crate::sql::storable;

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
        let DeliveryRow { server_id, message_id, id, record } = row;
        let text = |read: fn(&NewDelivery) -> &str| text_of(&record, read);
        let text_opt = |read: fn(&NewDelivery) -> Option<&str>| text_opt_of(&record, read);
        self.0.push(DeliveryColumns {
            server_id: server_id.0,
            message_id: message_id.0,
            id: id.0,
            at: record.at.as_micros(),
            status: record.status.as_str().into(),
            details: text(|new| &new.details),
            output: text(|new| &new.output),
            sent_with_ssl: record.sent_with_ssl.into(),
            log_id: text(|new| &new.log_id),
            duration_us: record.duration_us,
            mx: text_opt(|new| new.mx.as_deref()),
            remote_ip: text_opt(|new| new.remote_ip.as_deref()),
            source_ip: text_opt(|new| new.source_ip.as_deref()),
            tls: text_opt(|new| new.tls.as_deref()),
            code: record.code,
            enhanced_code: text_opt(|new| new.enhanced_code.as_deref()),
            bounce_class: text_opt(|new| new.bounce_class.as_deref()),
            next_attempt_at: record.next_attempt_at.map(Timestamp::as_micros),
            possible_duplicate: record.possible_duplicate.into(),
            tls_policy: text_opt(|new| new.tls_policy.as_deref()),
            dkim: text_opt(|new| new.dkim.as_deref()),
        });
    }

    pub(crate) fn statement(&self) -> Option<Statement<'_>> {
        self.0.statement()
    }
}

/// A text of the record. It is not copied if the record is borrowed, as records of attempts are.
fn text_of<'a>(record: &Cow<'a, NewDelivery>, read: fn(&NewDelivery) -> &str) -> Cow<'a, str> {
    match record {
        Cow::Borrowed(record) => storable(read(record)),
        Cow::Owned(record) => storable(read(record)).into_owned().into(),
    }
}

/// `text_of` for a text that the record may lack.
fn text_opt_of<'a>(
    record: &Cow<'a, NewDelivery>,
    read: fn(&NewDelivery) -> Option<&str>,
) -> Option<Cow<'a, str>> {
    match record {
        Cow::Borrowed(record) => read(record).map(storable),
        Cow::Owned(record) => read(record).map(|text| storable(text).into_owned().into()),
    }
}
