//! Banner, EHLO and HELO, STARTTLS.

use super::config::AuthPolicy;
use super::event::Event;
use super::replies::StandardReply;
use super::transaction::Transaction;
use super::{ServerSession, State};
use crate::reply::Reply;

impl ServerSession {
    pub(super) fn say_banner(&mut self) {
        let text = format!("{} ESMTP Postroad", self.config.host_name.as_str());
        self.say(&Reply::new(220, vec![text]));
    }

    pub(super) fn on_ehlo(&mut self, host: &str) {
        self.greet(host);
        let lines = self.ehlo_lines();
        self.say(&Reply::new(250, lines));
    }

    pub(super) fn on_helo(&mut self, host: &str) {
        self.greet(host);
        self.say(&Reply::new(250, vec![self.config.host_name.as_str().to_owned()]));
    }

    /// Takes a greeting; a later one clears the transaction like RSET (RFC 5321 4.1.4).
    fn greet(&mut self, host: &str) {
        self.abandon();
        self.helo = Some(host.to_owned());
    }

    /// Lines of the reply to EHLO: the host name, then the extensions that are offered now.
    fn ehlo_lines(&self) -> Vec<String> {
        let offered = &self.config.extensions;
        let keywords = [
            (offered.pipelining, "PIPELINING"),
            (offered.eight_bit_mime, "8BITMIME"),
            (offered.smtputf8, "SMTPUTF8"),
            (offered.enhanced_status_codes, "ENHANCEDSTATUSCODES"),
            (offered.chunking, "CHUNKING"),
            (offered.dsn, "DSN"),
            (self.config.starttls && !self.is_encrypted, "STARTTLS"),
            (self.offers_auth(), "AUTH PLAIN LOGIN"),
        ];
        let mut lines = vec![self.config.host_name.as_str().to_owned()];
        lines.extend(
            keywords.iter().filter(|(is_offered, _)| *is_offered).map(|(_, word)| (*word).to_owned()),
        );
        if offered.size {
            lines.push(format!("SIZE {}", self.config.limits.message_bytes_max));
        }
        lines
    }

    /// Whether AUTH is offered and accepted now.
    pub(super) fn offers_auth(&self) -> bool {
        match self.config.auth {
            AuthPolicy::Off => false,
            AuthPolicy::InsideTls => self.is_encrypted,
            AuthPolicy::Anywhere => true,
        }
    }

    pub(super) fn on_starttls(&mut self) {
        if !self.config.starttls {
            self.say_and_count_error(StandardReply::NotImplemented);
        } else if self.is_encrypted {
            self.say_and_count_error(StandardReply::TlsAlready);
        } else {
            self.abandon();
            self.say_standard(StandardReply::StartTls);
            self.state = State::TlsHandshake;
            // Pipelined input after STARTTLS may have been injected.
            self.input.clear();
            self.events.push_back(Event::StartTls);
        }
    }

    /// The handshake succeeded; the session starts over without a banner (RFC 3207 4.2).
    pub fn tls_established(&mut self) {
        if !matches!(self.state, State::TlsHandshake) {
            return;
        }
        self.state = State::Command;
        self.is_encrypted = true;
        self.is_authenticated = false;
        self.helo = None;
        self.transaction = Transaction::None;
    }
}
