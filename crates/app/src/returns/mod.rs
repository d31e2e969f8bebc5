//! Bounces, complaints, reports about domains, and mail for the operator. A bounce or complaint is interpreted and
//! stored with the message that it is about. A MAC identifies that message, in the recipient address or in the original
//! that a complaint encloses; everything else in the mail may be forged.

mod addresses;
mod counts;
mod effect;
mod feedback;
mod network_budget;
mod original;
mod reports;
mod take;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use postroad_boxed_futures::boxed_futures;
use postroad_mail::{MessageIdKey, ReturnPathKey};
use postroad_model::EmailAddress;
use postroad_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::App;
use crate::admin::AdminError;
use crate::budget::BudgetLimits;
use addresses::Addresses;
use network_budget::NetworkBudget;

pub use addresses::{Destination, ReturnAddress};
pub(crate) use counts::ReturnCounters;
pub use counts::ReturnCounts;
pub use postroad_mail::reports::ReportProblem;

/// Maximum number of messages parsed concurrently; limits the CPU time that outsiders can use.
const PARSES_CONCURRENT_MAX: usize = 2;
/// A message that waits longer than this to be parsed is refused temporarily.
const PARSE_WAIT_MAX: Duration = Duration::from_secs(20);
/// Bytes to which reports may unpack per minute; limits the CPU time that outsiders can use.
const REPORT_BYTE_LIMITS: BudgetLimits =
    BudgetLimits { all_max: 256 << 20, each_max: 64 << 20, refill: Duration::from_mins(1) };
/// Reports stored per hour, counted once per domain. Far above what receivers send; keeps outsiders from filling the
/// store.
const STORED_REPORT_LIMITS: BudgetLimits =
    BudgetLimits { all_max: 20_000, each_max: 2_000, refill: Duration::from_hours(1) };
/// Messages forwarded to the operator per hour: more than people read, but too few to flood a mailbox.
const FORWARD_LIMITS: BudgetLimits =
    BudgetLimits { all_max: 600, each_max: 60, refill: Duration::from_hours(1) };

/// Accepts bounces, complaints, reports and mail for the operator. Cheap to clone.
#[derive(Clone)]
pub struct ReturnReceiver {
    app: App,
    addresses: Arc<Addresses>,
    message_id_key: Arc<MessageIdKey>,
    parse_permits: Arc<Semaphore>,
    report_bytes_budget: Arc<NetworkBudget>,
    stored_report_budget: Arc<NetworkBudget>,
    forward_budget: Arc<NetworkBudget>,
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

/// Refusal of returned mail.
#[derive(Debug, thiserror::Error)]
pub enum ReturnRefusal {
    /// The message no longer exists, was erased, or cannot have had a return path with this domain.
    #[error("there is no such message any more")]
    Unknown,
    #[error("the mail contains no report")]
    NoReport,
    #[error("the report is about no domain of ours")]
    ReportAboutOtherDomain,
    #[error(transparent)]
    BadReport(#[from] ReportProblem),
    /// A complaint without an identifier of our message: about somebody else's message, or forged.
    #[error("the report names no message of ours")]
    ComplaintAboutOtherMail,
    /// Mail for the operator, but `forward_to` is not set.
    #[error("nobody reads mail to this address")]
    NoOperator,
    /// Mail for the operator that was already forwarded here once, or has passed too many servers.
    #[error("the mail is in a loop")]
    Loop,
    /// Mail for the operator that cannot be forwarded as it is.
    #[error("the mail cannot be forwarded: {0}")]
    NotForwardable(String),
    /// Too many messages are being parsed, a budget for mail from outsiders is used up, or the search for the original
    /// took too long.
    #[error("too busy for this mail at the moment")]
    Busy,
    /// The store failed; the sender may retry.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[boxed_futures]
impl App {
    /// Counts of the mail that the bounce listener of this process has received since it started.
    pub fn return_counts(&self) -> ReturnCounts {
        self.inner.return_counters.read()
    }

    /// Creates the receiver of returned mail; loads the secret of return paths, or creates it.
    pub async fn return_receiver(&self) -> Result<ReturnReceiver, AdminError> {
        let installation = self.installation().await?;
        let inner = &self.inner;
        let key = ReturnPathKey::new(&installation.return_path_secret);
        let hosts = [self.host().clone(), inner.hostname.clone()];
        let addresses = Addresses::new(key, hosts, inner.feedback.clone());
        let now = Instant::now();
        Ok(ReturnReceiver {
            app: self.clone(),
            addresses: Arc::new(addresses),
            message_id_key: Arc::new(MessageIdKey::new(&installation.return_path_secret)),
            parse_permits: Arc::new(Semaphore::new(PARSES_CONCURRENT_MAX)),
            report_bytes_budget: Arc::new(NetworkBudget::new(REPORT_BYTE_LIMITS, now)),
            stored_report_budget: Arc::new(NetworkBudget::new(STORED_REPORT_LIMITS, now)),
            forward_budget: Arc::new(NetworkBudget::new(FORWARD_LIMITS, now)),
        })
    }
}

#[boxed_futures]
impl ReturnReceiver {
    /// `None` if the address accepts no mail.
    pub fn recognise(&self, address: &EmailAddress) -> Option<Destination> {
        self.addresses.recognise(address)
    }

    /// Accepts one message for all its recipients. Parses the message once for each kind of recipient, however many
    /// recipients there are.
    ///
    /// `Ok` means that nothing is left to do for at least one recipient: the effect of the mail is on stable storage,
    /// or the mail is a report without effect. Other recipients may be refused permanently. On [`ReturnRefusal::Store`]
    /// and [`ReturnRefusal::Busy`] the sender should retry.
    pub async fn take(&self, to: &[Destination], mail: ReturnedMail) -> Result<(), ReturnRefusal> {
        let outcome = self.take_for_each(to, mail).await;
        self.app.inner.return_counters.count(&outcome, self.app.inner.clock.now());
        outcome
    }

    async fn take_for_each(&self, to: &[Destination], mail: ReturnedMail) -> Result<(), ReturnRefusal> {
        let mut outcome = Err(ReturnRefusal::Unknown);
        let mut paths: Vec<&ReturnAddress> = Vec::new();
        let (mut complaints_to, mut operator_address): (Option<&str>, Option<&str>) = (None, None);
        for destination in to {
            match destination {
                // The same return path twice counts as one bounce.
                Destination::ReturnPath(path) if paths.iter().all(|p| p.message_id != path.message_id) => {
                    paths.push(path);
                }
                Destination::ReturnPath(_) | Destination::Reports => {}
                // Several complaint and operator addresses cause one complaint and one mail to the operator.
                Destination::Feedback { address } => complaints_to = complaints_to.or(Some(address)),
                Destination::Operator { address } => operator_address = operator_address.or(Some(address)),
            }
        }
        if to.contains(&Destination::Reports) {
            outcome = merge(outcome, self.take_report(&mail).await)?;
        }
        if complaints_to.is_some() || operator_address.is_some() {
            outcome = merge(outcome, self.take_feedback(complaints_to, operator_address, &mail).await)?;
        }
        if !paths.is_empty() {
            outcome = merge(outcome, self.take_return(&paths, &mail).await)?;
        }
        outcome
    }

    /// Runs `parse` on a blocking thread once a permit is free.
    async fn parse_blocking<T: Send + 'static>(
        &self,
        parse: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReturnRefusal> {
        let permit = timeout(PARSE_WAIT_MAX, Arc::clone(&self.parse_permits).acquire_owned()).await;
        // The semaphore is never closed.
        let Ok(Ok(permit)) = permit else { return Err(ReturnRefusal::Busy) };
        let parsing = tokio::task::spawn_blocking(move || {
            let _permit: OwnedSemaphorePermit = permit;
            parse()
        });
        parsing.await.map_err(|_| StoreError::Unavailable("the service is stopping".into()).into())
    }
}

/// Combines the outcomes for two recipients: the mail is accepted if it is accepted for one of them. Returns the outer
/// `Err` on a temporary failure, which overrides everything.
fn merge(
    before: Result<(), ReturnRefusal>,
    next: Result<(), ReturnRefusal>,
) -> Result<Result<(), ReturnRefusal>, ReturnRefusal> {
    match next {
        Err(temporary @ (ReturnRefusal::Store(_) | ReturnRefusal::Busy)) => Err(temporary),
        Err(_) if before.is_ok() => Ok(before),
        next => Ok(next),
    }
}

impl fmt::Debug for ReturnReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReturnReceiver")
            .field("domains", &self.addresses.return_domains)
            .finish_non_exhaustive()
    }
}
