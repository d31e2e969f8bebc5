//! analytics/message: figures of one message.

use crate::documented::ToSchema;
use postroad_app::analytics::MessageMetrics;
use postroad_model::Timestamp;
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::metrics_out::rounded_to_milliseconds;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::messages::EchoedId;

/// Id of the message.
#[request_fields]
#[schema(example = json!({"id": 5_123_456_789_012_345_i64}))]
pub(crate) struct MessageAnalyticsIn {
    /// Id of the message: the integer, not the `token` or Message-ID.
    id: i64,
}

/// Figures of one message. Opens and clicks by bots are counted separately.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageAnalyticsOut {
    #[schema(example = "Sent")]
    status: &'static str,
    /// Number of delivery attempts.
    attempts: u64,
    soft_fail: u64,
    held: u64,
    complained: u64,
    unsubscribed: u64,
    opened: u64,
    /// 1 if somebody opened it, else 0.
    unique_opened: u64,
    clicked: u64,
    /// 1 if somebody clicked a link in it, else 0.
    unique_clicked: u64,
    bot_opened: u64,
    bot_clicked: u64,
    #[schema(format = DateTime)]
    first_opened_at: Option<String>,
    #[schema(format = DateTime)]
    first_clicked_at: Option<String>,
    /// Most clicked first.
    links: Vec<LinkOut>,
    latency: MessageLatencyOut,
}

/// Clicks on one link.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LinkOut {
    url: String,
    clicked: u64,
    bot_clicked: u64,
}

/// Seconds since Postroad accepted the message, or since its scheduled time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageLatencyOut {
    /// Until the first attempt began; null before it.
    first_attempt: Option<f64>,
    /// Until the receiving server accepted it; null as long as it has not.
    sent: Option<f64>,
}

/// Get a message's figures
///
/// The id of another server's message is answered like an unknown id.
#[crate::documented::path(
    post,
    path = "/api/v1/analytics/message",
    tag = "analytics",
    operation_id = "analyticsMessage",
    request_body = MessageAnalyticsIn,
    responses((status = 200, body = crate::documented::Answer<MessageAnalyticsOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<MessageAnalyticsOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = match id.message_id() {
        Ok(id) => call.app.analytics_message(&call.caller, id).await,
        Err(not_found) => Err(not_found),
    };
    let answer = found.map(MessageAnalyticsOut::from).map_err(|error| id.failure(error));
    Success::with_warnings(answer, warnings)
}

/// Parses the request; `MessageAnalyticsIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<EchoedId, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = EchoedId::read(&mut fields, findings);
    fields.finish(findings);
    Ok(id)
}

impl From<MessageMetrics> for MessageAnalyticsOut {
    fn from(figures: MessageMetrics) -> Self {
        let links = figures.links.into_iter().map(|link| LinkOut {
            url: link.url,
            clicked: link.clicks,
            bot_clicked: link.bot_clicks,
        });
        Self {
            status: figures.status.as_str(),
            attempts: figures.attempts,
            soft_fail: figures.soft_fails,
            held: figures.holds,
            complained: figures.complaints,
            unsubscribed: figures.unsubscribes,
            opened: figures.opens,
            unique_opened: figures.opens.min(1),
            clicked: figures.clicks,
            unique_clicked: figures.clicks.min(1),
            bot_opened: figures.bot_opens,
            bot_clicked: figures.bot_clicks,
            first_opened_at: figures.first_opened_at.map(Timestamp::to_rfc3339),
            first_clicked_at: figures.first_clicked_at.map(Timestamp::to_rfc3339),
            links: links.collect(),
            latency: MessageLatencyOut {
                first_attempt: rounded_to_milliseconds(figures.first_attempt_after),
                sent: rounded_to_milliseconds(figures.sent_after),
            },
        }
    }
}
