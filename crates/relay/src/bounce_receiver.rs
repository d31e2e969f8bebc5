//! Receiver of the bounce listener: accepts mail from anybody, but only for return paths that Postroad issued and for
//! the addresses of reports, complaints and the operator.

use std::net::IpAddr;

use bytes::Bytes;
use postroad_app::{Destination, ReturnReceiver, ReturnedMail};
use postroad_model::client_network;
use postroad_smtp::Reply;
use postroad_smtp::server::{RcptTo, StandardReply};

use crate::incoming::Incoming;
use crate::memory::Tenant;
use crate::replies;

#[derive(Debug)]
pub(crate) struct BounceReceiver {
    receiver: ReturnReceiver,
    peer: IpAddr,
    is_encrypted: bool,
}

impl BounceReceiver {
    pub(crate) fn new(receiver: ReturnReceiver, peer: IpAddr) -> Self {
        Self { receiver, peer, is_encrypted: false }
    }

    pub(crate) fn tls_established(&mut self) {
        self.is_encrypted = true;
    }

    pub(crate) fn reply_to_rcpt(&self, rcpt: &RcptTo) -> Reply {
        match self.receiver.recognise(&rcpt.address) {
            Some(_) => StandardReply::RecipientOk.into(),
            None => replies::no_return_path(),
        }
    }

    /// Tenant that the memory of the current message counts for.
    pub(crate) fn tenant(&self) -> Tenant {
        Tenant::Network(client_network(self.peer))
    }

    /// Passes the complete message to `app`. The reply is for all recipients: after a 451 the sender retries for all.
    pub(crate) async fn take(&self, message: Option<Incoming>) -> Reply {
        let Some(message) = message else { return StandardReply::MailFirst.into() };
        // The memory share is held until the message is stored.
        let Some((envelope, bytes, _share)) = message.finish() else { return replies::no_memory() };
        let to: Vec<Destination> =
            envelope.rcpt_to.iter().filter_map(|rcpt| self.receiver.recognise(&rcpt.address)).collect();
        let mail = ReturnedMail {
            mail_from: envelope.mail_from.path.as_str().to_owned(),
            bytes: Bytes::from(bytes),
            received_with_ssl: self.is_encrypted,
            peer: self.peer,
        };
        match self.receiver.take(&to, mail).await {
            Ok(()) => StandardReply::Ok.into(),
            Err(refusal) => replies::return_refused(&refusal),
        }
    }
}
