//! MAIL, RCPT and RSET: the envelope, up to the start of the message.

use std::mem;

use super::content::ContentCheck;
use super::envelope::{Envelope, MailFrom, RcptTo};
use super::event::Event;
use super::replies::StandardReply;
use super::{Question, ServerSession};

/// Progress of a message.
pub(super) enum Transaction {
    None,
    /// The sender was accepted; recipients follow.
    Envelope(Envelope),
    /// The driver has the envelope; the content is being received.
    Content(ContentCheck),
}

impl Transaction {
    pub(super) fn of(mail_from: MailFrom) -> Self {
        Self::Envelope(Envelope { mail_from, rcpt_to: Vec::new() })
    }

    pub(super) fn add(&mut self, rcpt: RcptTo) {
        if let Self::Envelope(envelope) = self {
            envelope.rcpt_to.push(rcpt);
        }
    }
}

impl ServerSession {
    pub(super) fn on_mail(&mut self, mail: MailFrom) {
        if let Some(problem) = self.mail_problem() {
            return self.say_and_count_error(problem);
        }
        if mail.size.is_some_and(|size| size > self.config.limits.message_bytes_max) {
            return self.say_standard(StandardReply::TooLarge); // RFC 1870 6.1: at once
        }
        self.ask(Question::Mail(mail.clone()), Event::Mail(mail));
    }

    fn mail_problem(&self) -> Option<StandardReply> {
        if self.helo.is_none() {
            Some(StandardReply::GreetFirst)
        } else if self.config.tls_required && !self.is_encrypted {
            Some(StandardReply::MustStartTls)
        } else if self.config.auth_required && !self.is_authenticated {
            Some(StandardReply::MustAuthenticate)
        } else {
            match self.transaction {
                Transaction::None => None,
                Transaction::Envelope(_) => Some(StandardReply::MailAlready),
                Transaction::Content(_) => Some(StandardReply::ChunksBegun),
            }
        }
    }

    pub(super) fn on_rcpt(&mut self, rcpt: RcptTo) {
        let envelope = match &self.transaction {
            Transaction::None => return self.say_and_count_error(StandardReply::MailFirst),
            Transaction::Content(_) => return self.say_and_count_error(StandardReply::ChunksBegun),
            Transaction::Envelope(envelope) => envelope,
        };
        if envelope.rcpt_to.len() >= self.config.limits.recipients_max {
            return self.say_standard(StandardReply::TooManyRecipients); // RFC 5321 4.5.3.1.10
        }
        if !rcpt.address.as_str().is_ascii() && !envelope.mail_from.is_smtputf8 {
            return self.say_and_count_error(StandardReply::Utf8NotAnnounced);
        }
        self.ask(Question::Rcpt(rcpt.clone()), Event::Rcpt(rcpt));
    }

    pub(super) fn on_rset(&mut self) {
        self.abandon();
        self.say_standard(StandardReply::Ok);
    }

    /// Discards the current message. If the driver still holds a part of the message, asks it to discard that part.
    pub(super) fn abandon(&mut self) {
        let transaction = mem::replace(&mut self.transaction, Transaction::None);
        if let Transaction::Content(content) = transaction
            && content.flaw().is_none()
        {
            self.events.push_back(Event::Abandoned);
        }
    }

    /// Starts the content: passes the envelope to the driver.
    pub(super) fn begin_content(&mut self) -> Result<(), StandardReply> {
        match mem::replace(&mut self.transaction, Transaction::None) {
            Transaction::None => Err(StandardReply::MailFirst),
            Transaction::Envelope(envelope) if envelope.rcpt_to.is_empty() => {
                self.transaction = Transaction::Envelope(envelope);
                Err(StandardReply::NoRecipients)
            }
            Transaction::Envelope(envelope) => {
                self.transaction = Transaction::Content(ContentCheck::new(&self.config));
                self.events.push_back(Event::Message(envelope));
                Ok(())
            }
            Transaction::Content(content) => {
                self.transaction = Transaction::Content(content);
                Err(StandardReply::ChunksBegun)
            }
        }
    }
}
