//! Signals: TERM and INT stop, HUP reloads the certificate, XFSZ is survived.

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) enum SignalAction {
    Stop,
    Reload,
}

pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    /// A handler keeps XFSZ from killing the process: a file over the size limit is then a write error, which
    /// the store reports as unavailable.
    _file_size: Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        const XFSZ: i32 = 25;
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            _file_size: signal(SignalKind::from_raw(XFSZ))?,
        })
    }

    pub(crate) async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.terminate.recv() => SignalAction::Stop,
            _ = self.interrupt.recv() => SignalAction::Stop,
            _ = self.hang_up.recv() => SignalAction::Reload,
        }
    }
}
