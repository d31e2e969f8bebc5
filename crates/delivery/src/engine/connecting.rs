//! One attempt to connect, as the schedule counts it: from the order of a connection task until a host has answered or the
//! attempt is over. While it lasts, the schedule may ask it to make way for others.

use std::sync::{Arc, PoisonError};

use tokio::sync::{Notify, watch};

use super::Hub;
use crate::attempt::{ConnectFailure, Connection};
use crate::schedule::Job;

/// Tells the schedule, when dropped, that the attempt is over.
pub(super) struct Connecting {
    hub: Arc<Hub>,
    path: usize,
    make_way: Arc<Notify>,
    /// The schedule knows of the connection.
    is_connected: bool,
}

/// How an attempt ended.
pub(super) enum Connected {
    Open(Box<Connection>),
    Failed(Box<ConnectFailure>),
    /// It made way for others. Nothing is known of the host but that it had not greeted yet.
    MadeWay,
}

impl Connecting {
    /// The schedule has counted it with the order of the task.
    pub(super) fn ordered(hub: &Arc<Hub>, path: usize) -> Self {
        let make_way = Arc::new(Notify::new());
        let mut attempts = hub.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.entry(path).or_default().push(Arc::clone(&make_way));
        drop(attempts);
        Self { hub: Arc::clone(hub), path, make_way, is_connected: false }
    }

    /// For a task that has lost its connection.
    pub(super) fn again(hub: &Arc<Hub>, path: usize) -> Self {
        hub.with(|schedule, _| schedule.connecting_again(path));
        Self::ordered(hub, path)
    }

    /// The connection takes messages; `is_first` of its task.
    pub(super) fn succeeded(mut self, is_first: bool) {
        self.is_connected = true;
        self.hub.with(|schedule, now| schedule.connected(self.path, is_first, now));
    }

    pub(super) async fn connect(&self, job: &Job) -> Connected {
        let (hub, path) = (&self.hub, self.path);
        hub.with(|schedule, now| schedule.dialling(path, now));
        let (heard, mut hearing) = watch::channel(false);
        let mut connecting = std::pin::pin!(hub.connector.connect(&job.route, &job.source, &heard));
        loop {
            let has_answered = *hearing.borrow_and_update();
            tokio::select! {
                biased;
                connected = &mut connecting => {
                    return match connected {
                        Ok(open) => Connected::Open(Box::new(open)),
                        Err(failure) => Connected::Failed(Box::new(failure)),
                    };
                }
                Ok(()) = hearing.changed(), if !has_answered => {
                    hub.with(|schedule, now| schedule.answered(path, now));
                }
                () = self.make_way.notified(), if !has_answered => return Connected::MadeWay,
            }
        }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        let mut attempts = self.hub.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_path) = attempts.get_mut(&self.path) {
            of_path.retain(|other| !Arc::ptr_eq(other, &self.make_way));
            if of_path.is_empty() {
                attempts.remove(&self.path);
            }
        }
        drop(attempts);
        if !self.is_connected {
            self.hub.with(|schedule, now| schedule.connecting_ended(self.path, now));
        }
    }
}

impl Hub {
    /// The newest attempt of a path makes way; it has waited the least.
    pub(super) fn ask_to_make_way(&self, path: usize) {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(attempt) = attempts.get_mut(&path).and_then(Vec::pop) {
            attempt.notify_one();
        }
    }
}
