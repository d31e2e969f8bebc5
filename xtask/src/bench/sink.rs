//! Where all messages end: Postfix's `smtp-sink`, which counts them.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::systems::{free_port, wait_for_port};

/// How many connections may wait to be taken.
const BACKLOG: &str = "1000";
/// More than one of its lines.
const TAIL_BYTES: usize = 256;
/// It counts into a pipe that holds some thousand lines.
const READ_EVERY: Duration = Duration::from_millis(2);

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
                // Only the last one counts, and this thread must not take time from what is measured.
                let tail = read.saturating_sub(TAIL_BYTES);
                if tail > 0 {
                    rest.clear();
                }
                rest.extend_from_slice(&buffer[tail..read]);
                let Some(end) = rest.iter().rposition(|byte| *byte == b'\r') else { continue };
                let last = String::from_utf8_lossy(&rest[..end]);
                let count = last.rsplit("mesg=").next().and_then(|count| count.trim().parse().ok());
                if let Some(count) = count {
                    counted.store(count, Ordering::Relaxed);
                }
                rest.drain(..=end);
                thread::sleep(READ_EVERY);
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
