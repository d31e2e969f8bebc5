//! Schedule of messages, and statistics of their latencies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Hands out the message numbers of a run, at a fixed rate if one is set.
#[derive(Debug)]
pub(crate) struct Pace {
    total: usize,
    rate: Option<f64>,
    begun: Instant,
    next: AtomicUsize,
}

impl Pace {
    pub(crate) fn start(total: usize, rate: Option<f64>) -> Arc<Self> {
        Arc::new(Self { total, rate, begun: Instant::now(), next: AtomicUsize::new(0) })
    }

    /// Waits until the next message is due; returns its number and due time, or `None` after the last.
    pub(crate) async fn next(&self) -> Option<(usize, Instant)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.total {
            return None;
        }
        let Some(rate) = self.rate else { return Some((number, Instant::now())) };
        let due = self.begun + Duration::from_secs_f64(number as f64 / rate);
        tokio::time::sleep_until(due.into()).await;
        Some((number, due))
    }

    /// Figures of a finished run; each latency stands for `messages_each` messages.
    pub(crate) async fn figures(
        &self,
        callers: JoinSet<anyhow::Result<Vec<Duration>>>,
        messages_each: usize,
    ) -> anyhow::Result<Value> {
        let mut latencies = Vec::with_capacity(self.total);
        for caller in callers.join_all().await {
            latencies.extend(caller?);
        }
        let took = self.begun.elapsed().as_secs_f64();
        ensure!(latencies.len() == self.total, "{} of {} were answered", latencies.len(), self.total);
        let mut figures = percentiles(latencies);
        figures["messages"] = json!(self.total * messages_each);
        figures["seconds"] = json!(took);
        figures["messages_per_second"] = json!((self.total * messages_each) as f64 / took);
        Ok(figures)
    }
}

pub(crate) fn percentiles(mut latencies: Vec<Duration>) -> Value {
    latencies.sort_unstable();
    let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
    json!({ "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0) })
}
