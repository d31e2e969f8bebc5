//! Handler of a session's commands, for clients that submit mail and for servers that return mail.

use postroad_smtp::Reply;
use postroad_smtp::server::{Login, RcptTo, StandardReply};

use crate::bounce_receiver::BounceReceiver;
use crate::client::Client;
use crate::incoming::Incoming;
use crate::memory::Tenant;

#[derive(Debug)]
pub(crate) enum SessionPeer {
    Client(Client),
    BounceReceiver(BounceReceiver),
}

impl SessionPeer {
    /// Must be called when TLS is established.
    pub(crate) fn tls_established(&mut self) {
        match self {
            Self::Client(client) => client.tls_established(),
            Self::BounceReceiver(bounce_receiver) => bounce_receiver.tls_established(),
        }
    }

    pub(crate) async fn log_in(&mut self, login: &Login) -> Reply {
        match self {
            Self::Client(client) => client.log_in(login).await,
            // Not reached: the bounce listener offers no AUTH, so the session itself refuses the command.
            Self::BounceReceiver(_) => StandardReply::NotImplemented.into(),
        }
    }

    /// Checks whether the client may begin a message.
    pub(crate) async fn begin_message(&mut self) -> Reply {
        match self {
            Self::Client(client) => client.begin_message().await,
            // Any sender is accepted: only the recipient matters.
            Self::BounceReceiver(_) => StandardReply::SenderOk.into(),
        }
    }

    pub(crate) fn reply_to_rcpt(&self, rcpt: &RcptTo) -> Reply {
        match self {
            Self::Client(_) => Client::reply_to_rcpt(rcpt),
            Self::BounceReceiver(bounce_receiver) => bounce_receiver.reply_to_rcpt(rcpt),
        }
    }

    /// Tenant that the memory of the current message counts for.
    pub(crate) fn tenant(&self) -> Tenant {
        match self {
            Self::Client(client) => client.tenant(),
            Self::BounceReceiver(bounce_receiver) => bounce_receiver.tenant(),
        }
    }

    /// Passes the complete message to `app`.
    pub(crate) async fn take_message(&mut self, message: Option<Incoming>) -> Reply {
        match self {
            Self::Client(client) => client.submit(message).await,
            Self::BounceReceiver(bounce_receiver) => bounce_receiver.take(message).await,
        }
    }
}
