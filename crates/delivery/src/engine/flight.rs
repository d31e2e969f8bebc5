//! The journal's marks of one message's flight.

use std::sync::Arc;

use postroad_model::Timestamp;
use postroad_smtp::Reply;

use crate::attempt::Peer;
use crate::attempt::connection::FlightMarks;
use crate::journal::{Answered, FlightKey, Journal};

/// Made for each attempt.
#[derive(Debug)]
pub(super) struct Flight {
    journal: Arc<Journal>,
    pub(super) key: FlightKey,
    pub(super) is_marked: bool,
    started_at: Timestamp,
}

impl Flight {
    pub(super) fn new(journal: &Arc<Journal>, key: FlightKey, started_at: Timestamp) -> Self {
        Self { journal: Arc::clone(journal), key, is_marked: false, started_at }
    }

    /// Right after the final reply.
    pub(super) fn answered(&self, reply: &Reply, accepted: bool, peer: &Peer, at: Timestamp) {
        if !self.is_marked {
            return;
        }
        let shown = |ip: Option<std::net::IpAddr>| ip.map(|ip| ip.to_string()).unwrap_or_default();
        let answered = Answered {
            accepted,
            at,
            code: reply.code,
            text: reply.lines.join("\n"),
            mx: peer.mx.clone(),
            remote_ip: shown(peer.remote_ip),
            source_ip: shown(peer.source_ip),
            tls: peer.tls.clone(),
            duration_us: Some(at.since(self.started_at).as_micros() as i64),
        };
        if let Err(error) = self.journal.answered(self.key, &answered) {
            tracing::error!(%error, "a reply was not noted in the flight journal");
        }
    }
}

impl FlightMarks for Flight {
    fn finishing(&mut self) -> std::io::Result<()> {
        self.journal.finishing(self.key)?;
        self.is_marked = true;
        Ok(())
    }
}
