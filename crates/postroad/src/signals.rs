//! Signals: TERM and INT stop, HUP reads certificates anew, XFSZ is survived.

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) enum Asked {
    Stop,
    Reload,
}

pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    /// Being listened to is what keeps it from killing the process: a file over the size limit then is a write
    /// error, which the store answers "try again".
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

    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.hang_up.recv() => Asked::Reload,
        }
    }
}
