//! What the world sends back: whose it is, what it means, and that it is kept. Whose it is says the address it came to
//! and nothing else; the content, which anybody can write, only tells why.

mod effect;
mod report_budget;
mod reports;
mod take;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use postroad_mail::ReturnPathKey;
use postroad_model::{EmailAddress, MessageId, ServerId};
use postroad_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::App;
use crate::admin::AdminError;
use report_budget::ReportBudget;

pub use postroad_mail::reports::ReportProblem;

/// Where receivers are asked to send reports about domains, at `rp.<hostname>`. What is in them tells their kind.
const REPORT_ADDRESSES: [&str; 2] = ["dmarc-reports", "tls-reports"];

/// Messages read at the same time: strangers get no more than this of the machine.
const READINGS_MAX: usize = 2;
/// A message that cannot be read within this time is refused for now.
const READING_WAIT_MAX: Duration = Duration::from_secs(20);

/// Takes what comes back. Cheap to clone.
#[derive(Clone)]
pub struct ReturnDesk {
    app: App,
    key: Arc<ReturnPathKey>,
    /// The name that return paths are at: `rp.<hostname>`.
    domain: String,
    readings: Arc<Semaphore>,
    report_budget: Arc<ReportBudget>,
}

/// An address of ours, given out with one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnAddress {
    pub server_id: ServerId,
    pub message_id: MessageId,
    /// As it was written.
    pub address: String,
}

/// Somewhere that mail is taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// About one message.
    ReturnPath(ReturnAddress),
    /// About domains: DMARC aggregates and TLS reports.
    Reports,
}

/// A whole message and its sender, as the SMTP session let them through.
#[derive(Debug)]
pub struct ReturnedMail {
    /// Empty for `<>`, as it should be.
    pub mail_from: String,
    pub bytes: Bytes,
    pub received_with_ssl: bool,
    /// The host that brought it.
    pub peer: IpAddr,
}

/// Why something that came back is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReturnRefusal {
    /// Its message is gone.
    #[error("there is no such message any more")]
    Unknown,
    #[error("there is no report in it")]
    NoReport,
    #[error("the report is about no domain of ours")]
    ForeignReport,
    #[error(transparent)]
    BadReport(#[from] ReportProblem),
    /// Too much is being read at the moment.
    #[error("too much mail comes back at the moment")]
    Busy,
    /// Later, perhaps.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl App {
    /// Reads, or makes, the secret that return paths are known by.
    pub async fn return_desk(&self) -> Result<ReturnDesk, AdminError> {
        let installation = self.installation().await?;
        Ok(ReturnDesk {
            app: self.clone(),
            key: Arc::new(ReturnPathKey::new(&installation.return_path_secret)),
            domain: format!("rp.{}", self.inner.hostname),
            readings: Arc::new(Semaphore::new(READINGS_MAX)),
            report_budget: Arc::new(ReportBudget::new(Instant::now())),
        })
    }
}

impl ReturnDesk {
    /// `None` for everything that is not ours, or was not made by us.
    pub fn recognise(&self, address: &EmailAddress) -> Option<Destination> {
        if address.domain().as_str() != self.domain {
            return None;
        }
        let local_part = address.local_part();
        if REPORT_ADDRESSES.iter().any(|known| known.eq_ignore_ascii_case(local_part)) {
            return Some(Destination::Reports);
        }
        let (server_id, message_id) = self.key.parse(local_part)?;
        let address = address.as_str().to_owned();
        Some(Destination::ReturnPath(ReturnAddress { server_id, message_id, address }))
    }

    /// Takes one message for everybody it is addressed to. It is read once, however many they are.
    ///
    /// When this returns `Ok`, the mail and what it means are on stable storage for at least one of them, and the others
    /// were refused for good. On [`ReturnRefusal::Store`] and [`ReturnRefusal::Busy`] the sender should try again.
    pub async fn take(&self, to: &[Destination], mail: ReturnedMail) -> Result<(), ReturnRefusal> {
        let mut outcome = Err(ReturnRefusal::Unknown);
        let mut paths: Vec<&ReturnAddress> = Vec::new();
        for destination in to {
            match destination {
                // The same path twice is one bounce.
                Destination::ReturnPath(path) if paths.iter().all(|p| p.message_id != path.message_id) => {
                    paths.push(path);
                }
                Destination::ReturnPath(_) | Destination::Reports => {}
            }
        }
        if to.contains(&Destination::Reports) {
            outcome = merge(outcome, self.take_report(&mail).await)?;
        }
        if !paths.is_empty() {
            outcome = merge(outcome, self.take_return(&paths, mail).await)?;
        }
        outcome
    }

    /// Runs `read` on a thread of its own, when it is its turn.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReturnRefusal> {
        let turn = timeout(READING_WAIT_MAX, Arc::clone(&self.readings).acquire_owned()).await;
        // The semaphore is never closed.
        let Ok(Ok(turn)) = turn else { return Err(ReturnRefusal::Busy) };
        let reading = tokio::task::spawn_blocking(move || {
            let _turn: OwnedSemaphorePermit = turn;
            read()
        });
        reading.await.map_err(|_| StoreError::Unavailable("the service is stopping".into()).into())
    }
}

/// Taken for one of several is taken; what should be tried again ends everything.
fn merge(
    before: Result<(), ReturnRefusal>,
    now: Result<(), ReturnRefusal>,
) -> Result<Result<(), ReturnRefusal>, ReturnRefusal> {
    match now {
        Err(again @ (ReturnRefusal::Store(_) | ReturnRefusal::Busy)) => Err(again),
        Err(_) if before.is_ok() => Ok(before),
        now => Ok(now),
    }
}

impl fmt::Debug for ReturnDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReturnDesk").field("domain", &self.domain).finish_non_exhaustive()
    }
}
