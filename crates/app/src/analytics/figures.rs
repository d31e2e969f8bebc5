//! Presentable figures: counts, rates, percentiles.

use postroad_store::{Counts, Histogram, Metric, Sums};

#[derive(Debug, Clone, Default)]
pub struct Figures {
    counts: Counts,
    pub latency: Latency,
}

#[derive(Debug, Clone, Default)]
pub struct Latency {
    /// Time from acceptance, or from the scheduled time, to the start of the first attempt.
    pub first_attempt: Percentiles,
    /// Time from acceptance, or from the scheduled time, until the receiver accepted the message.
    pub sent: Percentiles,
}

/// Percentiles of a time, in seconds; `None` without messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Percentiles {
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
}

/// Rates, normally between 0 and 1; `None` if the divisor is 0. Events count when they happen, so a rate can exceed 1
/// for a while: last week's messages are opened today.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// Messages accepted by the receiver and not returned, divided by finished messages.
    pub delivery: Option<f64>,
    /// Messages refused, given up or returned, divided by finished messages.
    pub bounce: Option<f64>,
    /// Complaints divided by sent messages. The rates below are also divided by sent messages.
    pub complaint: Option<f64>,
    pub open: Option<f64>,
    pub click: Option<f64>,
    pub unsubscribe: Option<f64>,
}

impl Figures {
    pub(super) fn of(sums: Sums, include_bots: bool) -> Self {
        let latency = Latency {
            first_attempt: Percentiles::of(&sums.first_attempt),
            sent: Percentiles::of(&sums.sent),
        };
        let counts = if include_bots { sums.counts.including_bots() } else { sums.counts };
        Self { counts, latency }
    }

    pub fn count(&self, metric: Metric) -> u64 {
        self.counts.of(metric)
    }

    pub fn rates(&self) -> Rates {
        let of = |metric| self.counts.of(metric) as f64;
        let share = |part: f64, whole: f64| (whole > 0.0).then_some(part / whole);
        let (sent, failed, returned) = (of(Metric::Sent), of(Metric::HardFail), of(Metric::Bounced));
        Rates {
            delivery: share((sent - returned).max(0.0), sent + failed),
            bounce: share(failed + returned, sent + failed),
            complaint: share(of(Metric::Complained), sent),
            open: share(of(Metric::UniqueOpened), sent),
            click: share(of(Metric::UniqueClicked), sent),
            unsubscribe: share(of(Metric::Unsubscribed), sent),
        }
    }
}

impl Percentiles {
    fn of(histogram: &Histogram) -> Self {
        let at = |share| histogram.percentile(share).map(|taken| taken.as_secs_f64());
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    }
}
