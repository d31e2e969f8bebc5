//! Finds the routes of lanes, and settles messages that reach no host, because their domain has no route, or because
//! they waited too long or expired.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, ServerId};
use postroad_store::BeginResult;

use super::EngineShared;
use super::worker::STORE_PAUSE;
use crate::attempt::settle::{Attempt, Settlement, settle};
use crate::attempt::{Ending, Peer, RouteFailure};
use crate::retry::RetryPolicy;
use crate::route::RouteKind;
use crate::schedule::{Entry, LaneKey};

/// Messages that are due within this time are kept in memory.
pub(crate) const HORIZON: Duration = Duration::from_mins(15);
/// A look-up that takes longer counts as slow; the next look-up starts without waiting for its end.
const LOOKUP_WAIT: Duration = Duration::from_millis(150);
/// Pause after a look-up that was refused because too many others are waiting.
const BUSY_PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of messages of an unroutable domain that are recorded at a time.
const UNROUTED_BATCH_MAX: usize = 500;

impl EngineShared {
    /// Turns the ending of an attempt into its settlement.
    pub(super) fn settlement_of(&self, attempt: &Attempt<'_>, ending: Ending) -> Settlement {
        let now = self.clock.now();
        let simulated;
        let policy = if attempt.is_simulated {
            simulated = RetryPolicy::simulator();
            &simulated
        } else {
            &self.settings.retry
        };
        settle(attempt, ending, policy, now, now.plus(HORIZON), &mut rand::rng())
    }

    /// Returns the settlement of a message that reached no host.
    pub(super) fn settlement_of_unsent(
        self: &Arc<Self>,
        domain: Option<DomainName>,
        entry: Entry,
        ending: Ending,
        retry_after: Option<Duration>,
    ) -> Settlement {
        let loaded_message = entry.loaded_message.clone();
        let now = self.clock.now();
        let domain = domain.unwrap_or_else(|| self.settings.hostname.clone());
        let is_simulated = self.router.is_simulator(&domain);
        let attempt = Attempt {
            entry,
            domain,
            loaded_message: loaded_message.as_deref(),
            peer: Peer::default(),
            source: None,
            ip_pool: None,
            is_encrypted: false,
            is_simulated,
            started_at: now,
            ended_at: None,
            transcript: String::new(),
            flight: None,
            retry_after,
            conclusion: None,
            dkim: None,
        };
        self.settlement_of(&attempt, ending)
    }

    /// Settles messages that expired while waiting.
    pub(super) fn settle_expired(self: &Arc<Self>, expired: Vec<Entry>) {
        let shared = Arc::clone(self);
        self.spawn(async move {
            for entry in expired {
                let settlement = shared.settlement_of_unsent(None, entry, Ending::Expired, None);
                shared.settle(settlement).await;
            }
        });
    }
}

/// Finds the route of a lane, or settles its messages if there is none.
pub(super) async fn resolve(shared: Arc<EngineShared>, lane: usize, key: LaneKey, server: ServerId) {
    let lookup = async {
        let mut lookup = std::pin::pin!(shared.router.route(&key, server));
        if let Ok(found) = tokio::time::timeout(LOOKUP_WAIT, &mut lookup).await {
            return found;
        }
        shared.with(|schedule, now| schedule.on_slow_lookup(lane, now));
        lookup.await
    };
    // A stopping service has released the lane's messages.
    let Some(route) = shared.unless_stopped(lookup).await else { return };
    match route {
        Ok(route) => {
            // With a smart host or the inbox, the MX hosts of the domain are not looked up.
            if route.kind == RouteKind::Mx {
                shared.provider_notes.note(&key.domain, &route.rules);
            }
            shared.with(|schedule, now| schedule.on_resolved(lane, route, now));
        }
        Err(failure) if failure.is_busy => {
            // The lane's messages were not tried: they wait.
            let is_final = false;
            let until = shared.clock.now().plus(BUSY_PAUSE);
            shared.with(|schedule, now| {
                schedule.on_unresolved(lane, until, failure.problem.clone(), is_final, now)
            });
        }
        Err(failure) => {
            let pause = shared.settings.retry.pauses()[0];
            let until = shared.clock.now().plus(pause.min(Duration::from_mins(1)));
            let keeps_route = shared.with(|schedule, now| {
                schedule.on_unresolved(lane, until, failure.problem.clone(), failure.is_final, now)
            });
            // After a temporary failure the messages wait; `message.delayed` reports a long wait.
            if keeps_route || !failure.is_final {
                return;
            }
            loop {
                let entries = shared.with(|schedule, _| schedule.take_unrouted(&key, UNROUTED_BATCH_MAX));
                if entries.is_empty() {
                    return;
                }
                let mut entries = entries.into_iter();
                while let Some(entry) = entries.next() {
                    if shared.is_stopping() {
                        shared.release_entries(std::iter::once(entry).chain(entries).collect()).await;
                        return;
                    }
                    shared.settle_unroutable(&key, entry, &failure).await;
                }
            }
        }
    }
}

impl EngineShared {
    async fn settle_unroutable(self: &Arc<Self>, key: &LaneKey, entry: Entry, failure: &RouteFailure) {
        let ending = Ending::NoRoute { problem: failure.problem.clone(), class: failure.class };
        self.record_unsent(key, entry, ending, None).await;
    }

    pub(super) async fn record_unsent(
        self: &Arc<Self>,
        key: &LaneKey,
        mut entry: Entry,
        ending: Ending,
        retry_after: Option<Duration>,
    ) {
        if !entry.is_begun {
            match self.begin(&entry).await {
                Ok(BeginResult::Go(message)) => {
                    if let Some(message) = message.filter(|_| entry.loaded_message.is_none()) {
                        entry.loaded_message = Some(self.preparer.take_loaded(*message));
                    }
                }
                // A suppressed message is recorded too: it could not be delivered even if a host were reached.
                Ok(BeginResult::Suppressed(message, _)) => {
                    entry.loaded_message = Some(self.preparer.take_loaded(*message));
                }
                Ok(BeginResult::Gone) => return,
                Err(error) => {
                    tracing::warn!(%error, "marking or reading a message failed; retrying");
                    self.release_later(entry.key());
                    tokio::time::sleep(STORE_PAUSE).await;
                    return;
                }
            }
        }
        let settlement = self.settlement_of_unsent(Some(key.domain.clone()), entry, ending, retry_after);
        self.settle(settlement).await;
    }
}
