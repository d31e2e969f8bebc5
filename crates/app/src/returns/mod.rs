//! Bounces, complaints and reports: finds the message, interprets the mail and stores it. The recipient address
//! alone identifies the message; the content, which anybody can write, only gives the reason.

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

/// Addresses for reports about domains, at `rp.<hostname>`. The content determines the kind of report.
const REPORT_ADDRESSES: [&str; 2] = ["dmarc-reports", "tls-reports"];

/// Messages parsed at the same time: limits the CPU that strangers can use.
const READINGS_MAX: usize = 2;
/// A message that gets no turn within this time is refused temporarily.
const READING_WAIT_MAX: Duration = Duration::from_secs(20);

/// Accepts bounces, complaints and reports. Cheap to clone.
#[derive(Clone)]
pub struct ReturnReceiver {
    app: App,
    key: Arc<ReturnPathKey>,
    /// Domain of return paths: `rp.<hostname>`.
    domain: String,
    readings: Arc<Semaphore>,
    report_budget: Arc<ReportBudget>,
}

/// Return path of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnAddress {
    pub server_id: ServerId,
    pub message_id: MessageId,
    /// Address as written.
    pub address: String,
}

/// Address that accepts mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Return path of one message.
    ReturnPath(ReturnAddress),
    /// Reports about domains: DMARC aggregates and TLS reports.
    Reports,
}

/// Message and envelope sender from the SMTP session.
#[derive(Debug)]
pub struct ReturnedMail {
    /// Empty for `<>`, the usual sender of bounces.
    pub mail_from: String,
    pub bytes: Bytes,
    pub received_with_ssl: bool,
    /// Address of the sending host.
    pub peer: IpAddr,
}

/// Why returned mail is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReturnRefusal {
    /// The message no longer exists.
    #[error("there is no such message any more")]
    Unknown,
    #[error("there is no report in it")]
    NoReport,
    #[error("the report is about no domain of ours")]
    ForeignReport,
    #[error(transparent)]
    BadReport(#[from] ReportProblem),
    /// Too many messages are being parsed.
    #[error("too much mail comes back at the moment")]
    Busy,
    /// The store is unavailable; the sender may retry.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl App {
    /// Loads the secret of return paths, or creates it.
    pub async fn return_receiver(&self) -> Result<ReturnReceiver, AdminError> {
        let installation = self.installation().await?;
        Ok(ReturnReceiver {
            app: self.clone(),
            key: Arc::new(ReturnPathKey::new(&installation.return_path_secret)),
            domain: format!("rp.{}", self.inner.hostname),
            readings: Arc::new(Semaphore::new(READINGS_MAX)),
            report_budget: Arc::new(ReportBudget::new(Instant::now())),
        })
    }
}

impl ReturnReceiver {
    /// `None` for addresses that Postroad did not issue.
    pub fn recognise(&self, address: &EmailAddress) -> Option<Destination> {
        let local_part = address.local_part();
        let domain = address.domain().as_str();
        if domain != self.domain {
            // A customer's own name for bounces. The MAC says that we gave the address out; whether the name leads here today
            // does not matter to mail that left when it did.
            return domain.starts_with("rp.").then(|| self.return_path(address)).flatten();
        }
        if REPORT_ADDRESSES.iter().any(|known| known.eq_ignore_ascii_case(local_part)) {
            return Some(Destination::Reports);
        }
        self.return_path(address)
    }

    fn return_path(&self, address: &EmailAddress) -> Option<Destination> {
        let (server_id, message_id) = self.key.parse(address.local_part())?;
        let address = address.as_str().to_owned();
        Some(Destination::ReturnPath(ReturnAddress { server_id, message_id, address }))
    }

    /// Accepts one message for all its recipients. Parses it once, however many there are.
    ///
    /// `Ok` means that the mail and its effect are on stable storage for at least one recipient, and the others
    /// were refused permanently. On [`ReturnRefusal::Store`] and [`ReturnRefusal::Busy`] the sender should
    /// retry.
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

    /// Runs `read` on a blocking thread once a permit is free.
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

/// Combines outcomes: accepted for one recipient is accepted; a temporary failure overrides everything.
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

impl fmt::Debug for ReturnReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReturnReceiver").field("domain", &self.domain).finish_non_exhaustive()
    }
}
