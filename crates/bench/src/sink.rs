//! Destination of all messages: Postfix's `smtp-sink`, which counts them.

use std::io::{ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::systems::{free_port, wait_for_port};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: &str = "1000";
/// Bytes at the end of each read that are parsed; longer than one line of the output.
const TAIL_BYTES: usize = 256;
/// Pause between two reads of the counts of smtp-sink, which go into a pipe that holds some thousand lines.
const READ_EVERY: Duration = Duration::from_millis(2);
/// Longest time without a message while some are awaited.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// Time in which a duplicate would arrive.
const DUPLICATE_WAIT: Duration = Duration::from_millis(100);

pub(super) struct Sink {
    child: Child,
    port: u16,
    messages: Arc<AtomicU64>,
    /// Whether the output of smtp-sink ended.
    is_gone: Arc<AtomicBool>,
}

impl Sink {
    pub(super) fn start() -> anyhow::Result<Self> {
        let port = free_port()?;
        let mut command = Command::new("smtp-sink");
        command.args(["-u", "postfix", "-c", &format!("127.0.0.1:{port}"), BACKLOG]);
        let mut child = command.stdout(Stdio::piped()).spawn().context("smtp-sink does not start")?;
        let mut output = child.stdout.take().context("its output is piped")?;
        let messages = Arc::new(AtomicU64::new(0));
        let is_gone = Arc::new(AtomicBool::new(false));
        let (counter, has_ended) = (Arc::clone(&messages), Arc::clone(&is_gone));
        // smtp-sink writes `sess=1 quit=0 mesg=7` repeatedly, each followed by a carriage return.
        thread::spawn(move || {
            let (mut buffer, mut rest) = (vec![0; 64 << 10], Vec::new());
            loop {
                let read = match output.read(&mut buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Ok(read) if read > 0 => read,
                    ended => {
                        if let Err(error) = ended {
                            eprintln!("the sink's count cannot be read: {error}");
                        }
                        has_ended.store(true, Ordering::Relaxed);
                        return;
                    }
                };
                // Only the last line counts, and this thread must take little CPU time.
                let tail = read.saturating_sub(TAIL_BYTES);
                if tail > 0 {
                    rest.clear();
                }
                rest.extend_from_slice(&buffer[tail..read]);
                let Some(end) = rest.iter().rposition(|byte| *byte == b'\r') else { continue };
                let last = String::from_utf8_lossy(&rest[..end]);
                let count = last.rsplit("mesg=").next().and_then(|count| count.trim().parse().ok());
                if let Some(count) = count {
                    counter.store(count, Ordering::Relaxed);
                }
                rest.drain(..=end);
                thread::sleep(READ_EVERY);
            }
        });
        wait_for_port(port)?;
        Ok(Self { child, port, messages, is_gone })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Waits until the sink has `wanted` messages, and fails if it gets more; returns the time until then.
    pub(super) async fn wait_for(&self, wanted: u64) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let (mut seen, mut seen_at) = (self.messages(), begun);
        while seen < wanted {
            ensure!(!self.is_gone.load(Ordering::Relaxed), "smtp-sink ended at {seen} of {wanted} messages");
            ensure!(
                seen_at.elapsed() < SILENCE_MAX,
                "nothing more comes: the sink has {seen} of {wanted} messages"
            );
            tokio::time::sleep(READ_EVERY).await;
            let have = self.messages();
            if have > seen {
                (seen, seen_at) = (have, Instant::now());
            }
        }
        let took = begun.elapsed();
        tokio::time::sleep(DUPLICATE_WAIT).await;
        ensure!(self.messages() == wanted, "the sink has {} messages, {wanted} were sent", self.messages());
        Ok(took)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // The child may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
