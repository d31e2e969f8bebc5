//! The client of a session on the bounce listener: anybody, with mail for addresses that we gave out ourselves.

use bytes::Bytes;
use postroad_app::{Destination, ReturnDesk, ReturnRefusal, ReturnedMail};
use postroad_smtp::Reply;
use postroad_smtp::server::{RcptTo, StandardReply};

use crate::incoming::Incoming;
use crate::replies;

#[derive(Debug)]
pub(crate) struct Returner {
    desk: ReturnDesk,
    is_encrypted: bool,
}

impl Returner {
    pub(crate) fn new(desk: ReturnDesk) -> Self {
        Self { desk, is_encrypted: false }
    }

    pub(crate) fn encrypted(&mut self) {
        self.is_encrypted = true;
    }

    pub(crate) fn recipient(&self, rcpt: &RcptTo) -> Reply {
        match self.desk.recognise(&rcpt.address) {
            Some(_) => StandardReply::RecipientOk.into(),
            None => replies::no_return_path(),
        }
    }

    /// The whole message is here. A bounce has one recipient; where there are more, each gets its copy, and who hears
    /// 451 comes again with what is known by then.
    pub(crate) async fn take(&self, message: Option<Incoming>) -> Reply {
        let Some(message) = message else { return StandardReply::MailFirst.into() };
        // The share is held until the message is stored.
        let Some((envelope, bytes, _share)) = message.finish() else { return replies::no_memory() };
        let bytes = Bytes::from(bytes);
        let (mut is_taken, mut reply) = (false, replies::no_return_path());
        let to: Vec<Destination> =
            envelope.rcpt_to.iter().filter_map(|rcpt| self.desk.recognise(&rcpt.address)).collect();
        for to in to {
            let mail = ReturnedMail {
                mail_from: envelope.mail_from.path.as_str().to_owned(),
                bytes: bytes.clone(),
                received_with_ssl: self.is_encrypted,
            };
            match self.desk.take(&to, mail).await {
                Ok(()) => (is_taken, reply) = (true, StandardReply::Ok.into()),
                Err(refusal @ ReturnRefusal::Store(_)) => return replies::return_refused(&refusal),
                // Taken for one of several is taken.
                Err(refusal) if !is_taken => reply = replies::return_refused(&refusal),
                Err(_) => {}
            }
        }
        reply
    }
}
