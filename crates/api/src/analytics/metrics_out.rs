//! JSON forms of analytics counts, rates and latencies.

use crate::documented::ToSchema;
use postroad_app::analytics::{Figures, Metric, Percentiles};
use serde::Serialize;

/// Number of each event. `soft_fail` counts attempts; `opened` and `clicked` count every occurrence; the others
/// count messages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CountsOut {
    /// Accepted by Postroad.
    accepted: u64,
    sent: u64,
    soft_fail: u64,
    /// Refused permanently, or given up.
    hard_fail: u64,
    /// Accepted by the receiver and returned later.
    bounced: u64,
    held: u64,
    complained: u64,
    /// Held because the address is suppressed; also in `held`.
    suppressed: u64,
    opened: u64,
    unique_opened: u64,
    clicked: u64,
    unique_clicked: u64,
    unsubscribed: u64,
}

/// Seconds since Postroad accepted a message, or since its scheduled time. Accurate to 3.2 %.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LatencyOut {
    /// Until the first attempt began.
    first_attempt: PercentilesOut,
    /// Until the receiving server accepted it.
    sent: PercentilesOut,
}

/// 50th, 90th and 99th percentiles; null without messages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PercentilesOut {
    #[schema(example = 0.031)]
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
}

/// Rates as fractions (0.5 is 50 %); null if the divisor is 0. In short ranges they can exceed 1, because events count
/// when they happen.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "they are the names on the wire")]
pub(crate) struct RatesOut {
    /// Messages sent and not returned, divided by messages sent or failed permanently.
    #[schema(example = 0.987)]
    delivery_rate: Option<f64>,
    /// Messages failed permanently or returned, divided by messages sent or failed permanently.
    bounce_rate: Option<f64>,
    /// Complaints, divided by messages sent.
    complaint_rate: Option<f64>,
    /// Messages opened, divided by messages sent.
    open_rate: Option<f64>,
    /// Messages with a click, divided by messages sent.
    click_rate: Option<f64>,
    /// Unsubscriptions, divided by messages sent.
    unsubscribe_rate: Option<f64>,
}

/// Counts with latencies.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FiguresOut {
    #[serde(flatten)]
    counts: CountsOut,
    latency: LatencyOut,
}

impl From<&Figures> for FiguresOut {
    fn from(figures: &Figures) -> Self {
        let count = |metric| figures.count(metric);
        Self {
            counts: CountsOut {
                accepted: count(Metric::Accepted),
                sent: count(Metric::Sent),
                soft_fail: count(Metric::SoftFail),
                hard_fail: count(Metric::HardFail),
                bounced: count(Metric::Bounced),
                held: count(Metric::Held),
                complained: count(Metric::Complained),
                suppressed: count(Metric::Suppressed),
                opened: count(Metric::Opened),
                unique_opened: count(Metric::UniqueOpened),
                clicked: count(Metric::Clicked),
                unique_clicked: count(Metric::UniqueClicked),
                unsubscribed: count(Metric::Unsubscribed),
            },
            latency: LatencyOut {
                first_attempt: figures.latency.first_attempt.into(),
                sent: figures.latency.sent.into(),
            },
        }
    }
}

impl From<&Figures> for RatesOut {
    fn from(figures: &Figures) -> Self {
        let rates = figures.rates();
        let rounded = |rate: Option<f64>| rate.map(|rate| (rate * 1e6).round() / 1e6);
        Self {
            delivery_rate: rounded(rates.delivery),
            bounce_rate: rounded(rates.bounce),
            complaint_rate: rounded(rates.complaint),
            open_rate: rounded(rates.open),
            click_rate: rounded(rates.click),
            unsubscribe_rate: rounded(rates.unsubscribe),
        }
    }
}

impl From<Percentiles> for PercentilesOut {
    fn from(percentiles: Percentiles) -> Self {
        let Percentiles { p50, p90, p99 } = percentiles;
        Self {
            p50: rounded_to_milliseconds(p50),
            p90: rounded_to_milliseconds(p90),
            p99: rounded_to_milliseconds(p99),
        }
    }
}

/// Rounds seconds to milliseconds.
pub(super) fn rounded_to_milliseconds(seconds: Option<f64>) -> Option<f64> {
    seconds.map(|seconds| (seconds * 1e3).round() / 1e3)
}
