//! messages/deliveries: the delivery records of one message, such as attempts, holds and bounces.

use crate::documented::ToSchema;
use postroad_model::Timestamp;
use postroad_openapi_macros::request_fields;
use postroad_store::Delivery;
use serde::Serialize;

use super::echoed_id::EchoedId;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Id of the message.
#[request_fields]
#[schema(example = json!({"id": 5_123_456_789_012_345_i64}))]
pub(crate) struct DeliveriesIn {
    /// Id of the message: the integer, not the `token` or Message-ID.
    id: i64,
}

/// Delivery records in time order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveriesOut(Vec<DeliveryOut>);

/// One attempt, hold, failure, later bounce, or send in test mode. Times are seconds since 1970.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryOut {
    id: i64,
    #[schema(example = "Sent")]
    status: &'static str,
    /// Summary of the outcome, written by Postroad.
    details: String,
    /// Reply of the remote server.
    output: String,
    sent_with_ssl: bool,
    log_id: String,
    /// Duration in seconds.
    time: Option<f64>,
    timestamp: f64,
    mx: Option<String>,
    remote_ip: Option<String>,
    source_ip: Option<String>,
    /// Version and cipher.
    tls: Option<String>,
    /// Policy that required TLS: `dane`, `dane_encrypt` (TLSA records of which none is usable), `mta_sts`, `require_tls` or
    /// `smarthost`; null if none did.
    #[schema(example = "dane")]
    tls_policy: Option<String>,
    /// DNS names of the DKIM keys that signed the message; empty if no message was sent.
    #[schema(example = json!(["pr1._domainkey.example.com"]))]
    dkim: Vec<String>,
    /// The remote server's reply code.
    #[schema(example = 250)]
    code: Option<i64>,
    #[schema(example = "2.0.0")]
    enhanced_code: Option<String>,
    bounce_class: Option<String>,
    /// After a soft failure: time of the next attempt.
    next_attempt_at: Option<f64>,
    /// The message may have arrived although this attempt failed: its reply was lost.
    possible_duplicate: bool,
}

/// List delivery attempts
///
/// Attempts, holds and other delivery records, in time order; empty before the first. The id of another
/// server's message is answered like an unknown id.
#[crate::documented::path(
    post,
    path = "/api/v1/messages/deliveries",
    tag = "messages",
    operation_id = "listDeliveries",
    request_body = DeliveriesIn,
    responses((status = 200, body = crate::documented::Answer<DeliveriesOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<DeliveriesOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = match id.message_id() {
        Ok(id) => call.app.list_deliveries(&call.caller, id).await,
        Err(not_found) => Err(not_found),
    };
    let listed = found.map(|list| DeliveriesOut(list.into_iter().map(DeliveryOut::from).collect()));
    Success::with_warnings(listed.map_err(|error| id.failure(error)), warnings)
}

/// Parses the request; `DeliveriesIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<EchoedId, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = EchoedId::read(&mut fields, findings);
    fields.finish(findings);
    Ok(id)
}

/// DNS names of DKIM keys, which are stored as one text with spaces.
fn key_names(stored: Option<&str>) -> Vec<String> {
    stored.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

impl From<Delivery> for DeliveryOut {
    fn from(delivery: Delivery) -> Self {
        let Delivery { id, record } = delivery;
        Self {
            id: id.0,
            status: record.status.as_str(),
            details: record.details,
            output: record.output,
            sent_with_ssl: record.sent_with_ssl,
            log_id: record.log_id,
            time: record.duration_us.map(|micros| micros as f64 / 1e6),
            timestamp: record.at.as_epoch_seconds(),
            mx: record.mx,
            remote_ip: record.remote_ip,
            source_ip: record.source_ip,
            tls: record.tls,
            tls_policy: record.tls_policy,
            dkim: key_names(record.dkim.as_deref()),
            code: record.code,
            enhanced_code: record.enhanced_code,
            bounce_class: record.bounce_class,
            next_attempt_at: record.next_attempt_at.map(Timestamp::as_epoch_seconds),
            possible_duplicate: record.possible_duplicate,
        }
    }
}
