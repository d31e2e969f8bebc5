//! Where all messages end: Postfix's `smtp-sink`, which counts them.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::Context;

use super::systems::{free_port, wait_for_port};

/// How many connections may wait to be taken.
const BACKLOG: &str = "1000";

pub(super) struct Sink {
    child: Child,
    port: u16,
    messages: Arc<AtomicU64>,
}

impl Sink {
    pub(super) fn start() -> anyhow::Result<Self> {
        let port = free_port()?;
        let mut command = Command::new("smtp-sink");
        command.args(["-u", "postfix", "-c", &format!("127.0.0.1:{port}"), BACKLOG]);
        let mut child = command.stdout(Stdio::piped()).spawn().context("smtp-sink does not start")?;
        let mut output = child.stdout.take().context("its output is piped")?;
        let messages = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&messages);
        // It writes `sess=1 quit=0 mesg=7` over and over, with a carriage return behind each.
        thread::spawn(move || {
            let (mut buffer, mut rest) = (vec![0; 64 << 10], Vec::new());
            while let Ok(read) = output.read(&mut buffer) {
                if read == 0 {
                    return;
                }
                rest.extend_from_slice(&buffer[..read]);
                let Some(end) = rest.iter().rposition(|byte| *byte == b'\r') else { continue };
                let last = String::from_utf8_lossy(&rest[..end]);
                let count = last.rsplit("mesg=").next().and_then(|count| count.trim().parse().ok());
                if let Some(count) = count {
                    counted.store(count, Ordering::Relaxed);
                }
                rest.drain(..=end);
            }
        });
        wait_for_port(port)?;
        Ok(Self { child, port, messages })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
