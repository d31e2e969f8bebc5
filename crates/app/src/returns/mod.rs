//! What the world sends back: whose it is, what it means, and that it is kept. Whose it is says the address it came to
//! and nothing else; the content, which anybody can write, only tells why.

mod effect;
mod reports;
mod take;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use postroad_mail::ReturnPathKey;
use postroad_mail::reports::ReportProblem;
use postroad_model::{EmailAddress, MessageId, ServerId};
use postroad_store::StoreError;

use crate::App;
use crate::admin::AdminError;

/// Where receivers are asked to send reports about domains, at `rp.<hostname>`. What is in them tells their kind.
const REPORT_ADDRESSES: [&str; 2] = ["dmarc-reports", "tls-reports"];

/// Takes what comes back. Cheap to clone.
#[derive(Clone)]
pub struct ReturnDesk {
    app: App,
    key: Arc<ReturnPathKey>,
    /// The name that return paths are at: `rp.<hostname>`.
    domain: String,
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

    /// When this returns `Ok`, the mail and what it means are on stable storage.
    pub async fn take(&self, to: &Destination, mail: ReturnedMail) -> Result<(), ReturnRefusal> {
        match to {
            Destination::ReturnPath(path) => self.take_return(path, mail).await,
            Destination::Reports => self.take_report(mail).await,
        }
    }
}

impl fmt::Debug for ReturnDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReturnDesk").field("domain", &self.domain).finish_non_exhaustive()
    }
}
