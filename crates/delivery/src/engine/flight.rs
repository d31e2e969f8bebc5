//! Journal marks of one message's flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use postroad_model::Timestamp;
use postroad_smtp::{Phase, Reply};
use tokio::sync::Notify;

use super::EngineShared;
use crate::attempt::Peer;
use crate::attempt::connection::FlightMarks;
use crate::journal::{FinalReply, FlightKey, Journal};
use crate::schedule::{CountedSource, Job};

/// Counts messages whose last bytes were sent and whose final reply is not handled yet; a stopping service waits for
/// these.
#[derive(Debug, Default)]
pub(crate) struct AwaitingReply {
    pub(super) count: AtomicUsize,
    pub(super) none_left: Notify,
}

/// Journal marks of one attempt, and its count in `AwaitingReply`.
pub(super) struct Flight {
    journal: Arc<Journal>,
    awaiting_reply: Arc<AwaitingReply>,
    pub(super) key: FlightKey,
    /// Whether the journal has the mark that precedes the last bytes.
    pub(super) is_marked: bool,
    started_at: Timestamp,
    source: Option<CountedSource>,
    ip_pool: Option<Arc<str>>,
    shared: Arc<EngineShared>,
    path: usize,
    /// Whether the connection is parked (`schedule/parking.rs`), so that it does not count towards the node's limit.
    is_parked: bool,
}

impl Flight {
    pub(super) fn new(
        shared: &Arc<EngineShared>,
        path: usize,
        key: FlightKey,
        started_at: Timestamp,
        job: &Job,
    ) -> Self {
        let (journal, awaiting_reply) = (Arc::clone(&shared.journal), Arc::clone(&shared.awaiting_reply));
        let (source, ip_pool) = (job.counted_source(), job.source.pool.clone());
        let shared = Arc::clone(shared);
        Self {
            journal,
            awaiting_reply,
            key,
            is_marked: false,
            started_at,
            source,
            ip_pool,
            shared,
            path,
            is_parked: false,
        }
    }

    /// Called right after the final reply: the acceptance of the message, or its first refusal.
    pub(super) fn mark_reply(
        &self,
        (reply, phase): (&Reply, Phase),
        rcpt_to: &str,
        peer: &Peer,
        dkim: Option<&str>,
        at: Timestamp,
    ) {
        if !self.is_marked {
            return;
        }
        let shown = |ip: Option<std::net::IpAddr>| ip.map(|ip| ip.to_string()).unwrap_or_default();
        let final_reply = FinalReply {
            accepted: (200..300).contains(&reply.code),
            at,
            code: reply.code,
            text: FinalReply::without_recipient(&reply.lines.join("\n"), rcpt_to),
            mx: peer.mx.clone(),
            remote_ip: shown(peer.remote_ip),
            source_ip: shown(peer.source_ip),
            tls: peer.tls.clone(),
            tls_policy: peer.tls_policy.as_deref().map(str::to_owned),
            without_tls: peer.without_tls.clone(),
            dkim: dkim.map(str::to_owned),
            duration_us: Some(at.since(self.started_at).as_micros() as i64),
            phase: phase.name().to_owned(),
            source_id: self.source.as_ref().map(|source| source.id),
            provider: self.source.as_ref().map(|source| source.provider.to_string()),
            ip_pool: self.ip_pool.as_deref().map(str::to_owned),
        };
        if let Err(error) = self.journal.mark_reply(self.key, &final_reply) {
            tracing::error!(%error, "flight journal write failed after a reply; a crash now may cause a duplicate");
        }
    }
}

impl FlightMarks for Flight {
    fn mark_finishing(&mut self) -> std::io::Result<()> {
        self.journal.mark_finishing(self.key)?;
        if !std::mem::replace(&mut self.is_marked, true) {
            self.awaiting_reply.count.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    fn note_late_reply(&mut self) {
        self.is_parked = self.shared.with(|schedule, now| schedule.park(self.path, now));
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.is_parked {
            self.shared.with(|schedule, _| schedule.unpark());
        }
        if self.is_marked && self.awaiting_reply.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.awaiting_reply.none_left.notify_waiters();
        }
    }
}
