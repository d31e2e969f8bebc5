//! Signing on threads of its own: RSA is what limits how much a machine can send, and it must hold up nothing else.
//!
//! On failure: the queue is bounded, so that who wants more signatures than the threads can make waits. Jobs that nobody
//! waits for any more are dropped unsigned.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use postroad_mail::{Canonical, Signer};
use postroad_model::Timestamp;
use tokio::sync::{mpsc, oneshot};

/// Some 30 ms of work: enough that no thread runs dry, little enough to start with what matters next.
const JOBS_PER_THREAD: usize = 64;

/// The threads that sign. They end when this is dropped.
pub struct SigningPool {
    /// `None` only while the pool is dropped.
    jobs: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

struct Job {
    signer: Arc<Signer>,
    canonical: Arc<Canonical>,
    at: Timestamp,
    signature: oneshot::Sender<String>,
}

impl SigningPool {
    /// At least one thread.
    pub fn start(threads: usize) -> io::Result<Self> {
        let threads = threads.max(1);
        let (sender, receiver) = mpsc::channel(threads * JOBS_PER_THREAD);
        let receiver = Arc::new(Mutex::new(receiver));
        let start = |number: usize| {
            let receiver = Arc::clone(&receiver);
            std::thread::Builder::new().name(format!("dkim-{number}")).spawn(move || work(&receiver))
        };
        let threads = (1..=threads).map(start).collect::<io::Result<_>>()?;
        Ok(Self { jobs: Some(sender), threads })
    }

    /// The complete header, as `Signer::sign` gives it. Waits while the queue is full.
    pub async fn sign(&self, signer: Arc<Signer>, canonical: Arc<Canonical>, at: Timestamp) -> String {
        let (signature, signed) = oneshot::channel();
        let jobs = self.jobs.as_ref().expect("a pool that is being dropped is not borrowed");
        let is_queued = jobs.send(Job { signer, canonical, at, signature }).await.is_ok();
        assert!(is_queued, "the threads live as long as the pool");
        signed.await.expect("a thread answers every job that is waited for")
    }
}

fn work(jobs: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        // One thread waits for a job, the others for the lock.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(job) = job else { return };
        job.sign_if_awaited();
    }
}

impl Job {
    /// Whether it was signed.
    fn sign_if_awaited(self) -> bool {
        if self.signature.is_closed() {
            return false;
        }
        // Who waited may have gone meanwhile; then the signature is for nobody.
        let _ = self.signature.send(self.signer.sign(&self.canonical, self.at));
        true
    }
}

impl Drop for SigningPool {
    /// Waits for the signatures that are being made, half a millisecond each.
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a signing thread had panicked");
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
