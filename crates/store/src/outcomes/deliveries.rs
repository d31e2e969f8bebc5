//! Delivery records: lists the records of a message with their SMTP transcripts.

use std::borrow::Cow;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DeliveryId, MessageId, ServerId, Status, Timestamp};

use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// A stored record, for example of an attempt, a hold, a cancellation, a test message or a later bounce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub record: NewDelivery,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    pub at: Timestamp,
    pub status: Status,
    /// Postroad's explanation.
    pub details: String,
    /// The remote host's reply.
    pub output: String,
    pub sent_with_ssl: bool,
    pub log_id: String,
    pub duration_us: Option<i64>,
    pub mx: Option<String>,
    pub remote_ip: Option<String>,
    pub source_ip: Option<String>,
    pub tls: Option<String>,
    /// Policy that required TLS, such as DANE; `None` if none did.
    pub tls_policy: Option<String>,
    /// DNS names of the DKIM keys that signed the message, separated by spaces.
    pub dkim: Option<String>,
    pub code: Option<i64>,
    pub enhanced_code: Option<String>,
    pub bounce_class: Option<String>,
    pub next_attempt_at: Option<Timestamp>,
    /// The message may have arrived in an earlier attempt whose reply was lost.
    pub possible_duplicate: bool,
}

impl NewDelivery {
    /// A record without network contact.
    pub fn local(at: Timestamp, status: Status, details: impl Into<String>) -> Self {
        Self {
            at,
            status,
            details: details.into(),
            output: String::new(),
            sent_with_ssl: false,
            log_id: String::new(),
            duration_us: None,
            mx: None,
            remote_ip: None,
            source_ip: None,
            tls: None,
            tls_policy: None,
            dkim: None,
            code: None,
            enhanced_code: None,
            bounce_class: None,
            next_attempt_at: None,
            possible_duplicate: false,
        }
    }
}

/// A row of `deliveries`. In each engine one function writes such rows.
pub(crate) struct DeliveryRow<'a> {
    pub(crate) server_id: ServerId,
    pub(crate) message_id: MessageId,
    pub(crate) id: DeliveryId,
    pub(crate) record: Cow<'a, NewDelivery>,
}

impl<'a> DeliveryRow<'a> {
    pub(crate) fn of(
        server_id: ServerId,
        message_id: MessageId,
        id: DeliveryId,
        record: &'a NewDelivery,
    ) -> Self {
        Self { server_id, message_id, id, record: Cow::Borrowed(record) }
    }

    /// A record without network contact.
    pub(crate) fn local(
        (server_id, message_id): (ServerId, MessageId),
        id: DeliveryId,
        at: Timestamp,
        status: Status,
        details: impl Into<String>,
    ) -> Self {
        Self { server_id, message_id, id, record: Cow::Owned(NewDelivery::local(at, status, details)) }
    }
}

#[boxed_futures]
impl Store {
    /// All deliveries of a message, in time order.
    pub async fn list_deliveries(&self, server_id: ServerId, id: MessageId) -> Result<Vec<Delivery>> {
        self.read(move |sql| Box::pin(list(sql, server_id, id, i64::MAX))).await
    }

    /// The newest deliveries of a message, at most `limit`, in time order.
    pub async fn list_newest_deliveries(
        &self,
        server_id: ServerId,
        id: MessageId,
        limit: usize,
    ) -> Result<Vec<Delivery>> {
        self.read(move |sql| Box::pin(list(sql, server_id, id, limit as i64))).await
    }

    /// The newest SMTP transcripts of a message's deliveries, at most `limit`, in time order.
    pub async fn list_newest_transcripts(
        &self,
        server_id: ServerId,
        id: MessageId,
        limit: usize,
    ) -> Result<Vec<(DeliveryId, String)>> {
        self.read(move |sql| Box::pin(list_transcripts(sql, server_id, id, limit as i64))).await
    }
}

/// The newest deliveries of a message, at most `limit`, in time order, which is the order of ids.
pub(crate) async fn list(
    sql: &Sql<'_>,
    server_id: ServerId,
    message_id: MessageId,
    limit: i64,
) -> Result<Vec<Delivery>, StoreError> {
    let rows = sql
        .query(
            "SELECT id, at, status, details, output, sent_with_ssl, log_id, duration_us, mx, remote_ip, source_ip,
                    tls, code, enhanced_code, bounce_class, next_attempt_at, possible_duplicate, tls_policy,
                    dkim
             FROM deliveries WHERE server_id = $1 AND message_id = $2 ORDER BY id DESC LIMIT $3",
            &[server_id.0.into(), message_id.0.into(), limit.into()],
        )
        .await?;
    rows.iter()
        .rev()
        .map(|row| {
            Ok(Delivery {
                id: DeliveryId(row.int(0)?),
                record: NewDelivery {
                    at: row.time(1)?,
                    status: row.parsed(2, Status::parse)?,
                    details: row.text(3)?,
                    output: row.text(4)?,
                    sent_with_ssl: row.flag(5)?,
                    log_id: row.text(6)?,
                    duration_us: row.int_opt(7)?,
                    mx: row.text_opt(8)?,
                    remote_ip: row.text_opt(9)?,
                    source_ip: row.text_opt(10)?,
                    tls: row.text_opt(11)?,
                    tls_policy: row.text_opt(17)?,
                    dkim: row.text_opt(18)?,
                    code: row.int_opt(12)?,
                    enhanced_code: row.text_opt(13)?,
                    bounce_class: row.text_opt(14)?,
                    next_attempt_at: row.time_opt(15)?,
                    possible_duplicate: row.flag(16)?,
                },
            })
        })
        .collect()
}

/// The newest transcripts of a message, at most `limit`, in time order.
pub(crate) async fn list_transcripts(
    sql: &Sql<'_>,
    server_id: ServerId,
    message_id: MessageId,
    limit: i64,
) -> Result<Vec<(DeliveryId, String)>, StoreError> {
    let rows = sql
        .query(
            "SELECT delivery_id, transcript FROM delivery_transcripts
             WHERE server_id = $1 AND message_id = $2 ORDER BY delivery_id DESC LIMIT $3",
            &[server_id.0.into(), message_id.0.into(), limit.into()],
        )
        .await?;
    rows.iter().rev().map(|row| Ok((DeliveryId(row.int(0)?), row.text(1)?))).collect()
}
