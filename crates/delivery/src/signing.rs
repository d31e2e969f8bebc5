//! DKIM signing on separate threads: RSA limits how much a machine can send, and must not delay anything else.
//!
//! Servers take turns: a server's next message waits for at most one signature of each other server. The queue has one
//! job for each waiting caller, and there are no more callers than connections. Jobs without a waiting caller are
//! dropped unsigned.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex, MutexGuard};
use postroad_boxed_futures::boxed_futures;
use postroad_mail::{Canonical, Signer};
use postroad_model::{ServerId, Timestamp};
use tokio::sync::oneshot;

use crate::turns::Turns;

/// The threads that sign. They end when the pool is dropped.
pub struct SigningPool {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: Turns<ServerId, Job>,
    is_closed: bool,
}

struct Job {
    signer: Arc<Signer>,
    canonical: Arc<Canonical>,
    at: Timestamp,
    signature: oneshot::Sender<String>,
}

#[boxed_futures]
impl SigningPool {
    /// Starts this many threads, at least one.
    pub fn start(threads: usize) -> io::Result<Self> {
        let threads = threads.max(1);
        let mut pool = Self { queue: Arc::default(), threads: Vec::new() };
        for number in 1..=threads {
            let queue = Arc::clone(&pool.queue);
            let thread = std::thread::Builder::new().name(format!("dkim-{number}"));
            pool.threads.push(thread.spawn(move || queue.sign_jobs())?);
        }
        Ok(pool)
    }

    /// Waits for the server's turn and signs; returns the complete header, as `Signer::sign` does.
    pub async fn sign(
        &self,
        server_id: ServerId,
        signer: Arc<Signer>,
        canonical: Arc<Canonical>,
        at: Timestamp,
    ) -> String {
        let (signature, signed) = oneshot::channel();
        self.queue.lock().jobs.push(server_id, Job { signer, canonical, at, signature });
        self.queue.changed.notify_one();
        signed.await.expect("a thread answers every job that is waited for")
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Signs jobs until the pool is dropped.
    fn sign_jobs(&self) {
        while let Some(job) = self.next() {
            job.sign_if_awaited();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }
}

impl Job {
    /// Signs the job unless its caller is gone; returns whether it was signed.
    fn sign_if_awaited(self) -> bool {
        if self.signature.is_closed() {
            return false;
        }
        // The caller may be gone; then the signature is unused.
        let _ = self.signature.send(self.signer.sign(&self.canonical, self.at));
        true
    }
}

impl Drop for SigningPool {
    /// Waits for the signatures in progress. Nobody waits for queued ones any more, so they are dropped.
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("signing thread panicked");
            }
        }
    }
}

impl fmt::Debug for SigningPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningPool").field("threads", &self.threads.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use postroad_mail::DkimKey;
    use postroad_model::DomainName;

    use super::*;

    #[test]
    fn a_single_message_is_signed_after_one_of_the_thousand_of_another_server() {
        let key = DkimKey::generate_ed25519().unwrap();
        let domain = DomainName::parse("example.com").unwrap();
        let signer = Arc::new(Signer::ed25519("pr1", domain, key.private_pkcs8_der()).unwrap());
        let queue = Queue::default();
        let push = |server: i64, second: i64| {
            let job = Job {
                signer: Arc::clone(&signer),
                canonical: Arc::new(Canonical::of(b"From: a@example.com\r\n\r\n")),
                at: Timestamp::from_micros(second),
                signature: oneshot::channel().0,
            };
            queue.lock().jobs.push(ServerId(server), job);
        };
        (0..1_000).for_each(|second| push(1, second));
        push(2, 5_000);
        let order: Vec<i64> = (0..3).filter_map(|_| queue.next()).map(|job| job.at.as_micros()).collect();
        assert_eq!(order, [0, 5_000, 1]);
    }

    #[test]
    fn a_job_that_nobody_waits_for_is_not_signed() {
        let key = DkimKey::generate_ed25519().unwrap();
        let domain = DomainName::parse("example.com").unwrap();
        let signer = Arc::new(Signer::ed25519("pr1", domain, key.private_pkcs8_der()).unwrap());
        let job = |signature| Job {
            signer: Arc::clone(&signer),
            canonical: Arc::new(Canonical::of(b"From: a@example.com\r\n\r\n")),
            at: Timestamp::from_micros(0),
            signature,
        };
        let (signature, mut awaited) = oneshot::channel();
        assert!(job(signature).sign_if_awaited());
        assert!(awaited.try_recv().is_ok());

        let (signature, abandoned) = oneshot::channel();
        drop(abandoned);
        assert!(!job(signature).sign_if_awaited());
    }
}
