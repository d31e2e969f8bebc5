//! One attempt to connect, from the start of the connection task until the connection accepts messages or the attempt
//! ends. Meanwhile the schedule may abort the attempt, so that other sites or servers get the connection.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::MutexGuard;
use tokio::sync::{Notify, watch};

use super::EngineShared;
use crate::attempt::{ConnectFailure, ConnectProgress, Connection};
use crate::schedule::Job;

/// One attempt to connect. If it is dropped before `report_success`, the schedule learns that the attempt is over.
pub(super) struct ConnectAttempt {
    shared: Arc<EngineShared>,
    path: usize,
    /// Number of the attempt in the schedule.
    id: u64,
    abort: Arc<Notify>,
    was_success_reported: bool,
}

/// Result of an attempt to connect.
pub(super) enum ConnectResult {
    Open(Box<Connection>),
    Failed(Box<ConnectFailure>),
    /// Aborted, because the host had not answered in time and other sites or servers need the connection.
    Aborted,
}

impl ConnectAttempt {
    /// An attempt that the schedule has already counted under the number `id`.
    pub(super) fn with_id(shared: &Arc<EngineShared>, path: usize, id: u64) -> Self {
        let abort = Arc::new(Notify::new());
        shared.attempts().insert(id, Arc::clone(&abort));
        Self { shared: Arc::clone(shared), path, id, abort, was_success_reported: false }
    }

    /// An attempt of a task that has lost its connection. `None` if the provider's rules allow no new connection now.
    pub(super) fn reconnect(shared: &Arc<EngineShared>, path: usize) -> Option<Self> {
        let id = shared.with(|schedule, now| schedule.begin_reconnect(path, now))?;
        Some(Self::with_id(shared, path, id))
    }

    /// Reports that the connection accepts messages. `is_first`: it is the first connection of its task.
    pub(super) fn report_success(mut self, is_first: bool) {
        self.was_success_reported = true;
        self.shared.with(|schedule, now| schedule.on_connected(self.path, self.id, is_first, now));
    }

    pub(super) async fn connect(&self, job: &Job) -> ConnectResult {
        let (shared, path, id) = (&self.shared, self.path, self.id);
        let (progress, mut progress_changes) = watch::channel(ConnectProgress::default());
        let server = job.entry.server_id;
        let mut connecting =
            std::pin::pin!(shared.connector.connect(&job.route, &job.source, server, &progress));
        loop {
            tokio::select! {
                biased;
                connected = &mut connecting => {
                    return match connected {
                        Ok(open) => ConnectResult::Open(Box::new(open)),
                        Err(failure) => ConnectResult::Failed(Box::new(failure)),
                    };
                }
                Ok(()) = progress_changes.changed() => {
                    let progress = *progress_changes.borrow_and_update();
                    shared.with(|schedule, now| match progress {
                        ConnectProgress::Nothing => {}
                        ConnectProgress::Dialling => schedule.note_dialling(path, id, now),
                        ConnectProgress::Greeting => schedule.note_greeting(path, id, now),
                    });
                }
                () = self.abort.notified() => return ConnectResult::Aborted,
            }
        }
    }
}

impl Drop for ConnectAttempt {
    fn drop(&mut self) {
        self.shared.attempts().remove(&self.id);
        if !self.was_success_reported {
            self.shared.with(|schedule, now| schedule.on_attempt_ended(self.path, self.id, now));
        }
    }
}

impl EngineShared {
    fn attempts(&self) -> MutexGuard<'_, HashMap<u64, Arc<Notify>>> {
        self.attempts.lock()
    }

    pub(super) fn abort_attempt(&self, attempt: u64) {
        if let Some(abort) = self.attempts().get(&attempt) {
            abort.notify_one();
        }
    }
}
