//! What the world sends back: whose it is, what it means, and that it is kept. Whose it is says the address it came to
//! and nothing else; the content, which anybody can write, only tells why.

mod effect;
mod take;

use std::fmt;

use postroad_mail::ReturnPathKey;
use postroad_model::{EmailAddress, MessageId, ServerId};
use postroad_store::StoreError;

use crate::App;
use crate::admin::AdminError;

/// Takes what comes back. Cheap to clone.
#[derive(Clone)]
pub struct ReturnDesk {
    app: App,
    key: ReturnPathKey,
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

/// A whole message and its sender, as the SMTP session let them through.
#[derive(Debug)]
pub struct ReturnedMail {
    /// Empty for `<>`, as it should be.
    pub mail_from: String,
    pub bytes: Vec<u8>,
    pub received_with_ssl: bool,
}

/// Why something that came back is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReturnRefusal {
    /// Its message is gone.
    #[error("there is no such message any more")]
    Unknown,
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
            key: ReturnPathKey::new(&installation.return_path_secret),
            domain: format!("rp.{}", self.inner.hostname),
        })
    }
}

impl ReturnDesk {
    /// `None` for everything that is not ours, or was not made by us.
    pub fn recognise(&self, address: &EmailAddress) -> Option<ReturnAddress> {
        if address.domain().as_str() != self.domain {
            return None;
        }
        let (server_id, message_id) = self.key.parse(address.local_part())?;
        Some(ReturnAddress { server_id, message_id, address: address.as_str().to_owned() })
    }
}

impl fmt::Debug for ReturnDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReturnDesk").field("domain", &self.domain).finish_non_exhaustive()
    }
}
