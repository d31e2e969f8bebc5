//! Who is on the other side of a session, and what is said to its wishes: an application that submits mail, or anybody
//! with mail that comes back.

use postroad_smtp::Reply;
use postroad_smtp::server::{Login, RcptTo, StandardReply};

use crate::client::Client;
use crate::incoming::Incoming;
use crate::returner::Returner;

#[derive(Debug)]
pub(crate) enum Guest {
    Client(Client),
    Returner(Returner),
}

impl Guest {
    /// From here on, everything comes through TLS.
    pub(crate) fn encrypted(&mut self) {
        match self {
            Self::Client(client) => client.encrypted(),
            Self::Returner(returner) => returner.encrypted(),
        }
    }

    pub(crate) async fn log_in(&mut self, login: &Login) -> Reply {
        match self {
            Self::Client(client) => client.log_in(login).await,
            // Not offered there, so the session refuses it by itself.
            Self::Returner(_) => StandardReply::NotImplemented.into(),
        }
    }

    /// May it begin a message?
    pub(crate) async fn begin(&mut self) -> Reply {
        match self {
            Self::Client(client) => client.begin().await,
            // Any sender: what counts is where it goes.
            Self::Returner(_) => StandardReply::SenderOk.into(),
        }
    }

    pub(crate) fn recipient(&self, rcpt: &RcptTo) -> Reply {
        match self {
            Self::Client(_) => Client::recipient(rcpt),
            Self::Returner(returner) => returner.recipient(rcpt),
        }
    }

    /// The whole message is here.
    pub(crate) async fn message(&mut self, message: Option<Incoming>) -> Reply {
        match self {
            Self::Client(client) => client.submit(message).await,
            Self::Returner(returner) => returner.take(message).await,
        }
    }
}
