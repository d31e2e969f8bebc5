//! Opening of a client session: banner, greeting, STARTTLS, AUTH.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::config::{Credentials, TlsMode};
use super::event::{Closed, Event, ProtocolError};
use super::output::{Awaited, Segment};
use super::{ClientSession, Link};
use crate::capabilities::Capabilities;
use crate::phase::Phase;
use crate::reply::{Reply, ReplyClass};

/// Replaces secrets in transcripts.
const MASK: &str = "****";

impl ClientSession {
    /// The handshake succeeded; discards everything learnt before the handshake (RFC 3207 4.2).
    pub fn tls_established(&mut self) {
        if self.link != Link::TlsHandshake {
            return;
        }
        self.link = Link::Open;
        self.is_encrypted = true;
        self.capabilities = Capabilities::default();
        self.transcript.note("TLS begins");
        self.say_ehlo(true);
    }

    fn say_ehlo(&mut self, is_again: bool) {
        let line = format!("EHLO {}", self.config.helo_name.as_str());
        self.say(Segment::line(&line, Awaited::Ehlo { is_again }));
    }

    pub(super) fn on_banner(&mut self, reply: Reply) {
        if reply.is_positive() {
            self.say_ehlo(false);
        } else {
            self.on_opening_failure(Phase::Banner, reply);
        }
    }

    pub(super) fn on_ehlo(&mut self, is_again: bool, reply: Reply) {
        match reply.class() {
            ReplyClass::Positive => {
                self.capabilities = Capabilities::parse(&reply.lines);
                self.after_greeting();
            }
            // RFC 5321 3.2: a server without extensions.
            ReplyClass::Permanent => {
                let line = format!("HELO {}", self.config.helo_name.as_str());
                self.say(Segment::line(&line, Awaited::Helo));
            }
            _ => self.on_opening_failure(Awaited::Ehlo { is_again }.phase(), reply),
        }
    }

    pub(super) fn on_helo(&mut self, reply: Reply) {
        if reply.is_positive() {
            self.after_greeting();
        } else {
            self.on_opening_failure(Phase::Helo, reply);
        }
    }

    fn after_greeting(&mut self) {
        let wants_tls = matches!(self.config.tls, TlsMode::Opportunistic | TlsMode::Required);
        if self.is_encrypted || !wants_tls {
            self.authenticate();
        } else if self.capabilities.starttls {
            self.say(Segment::line("STARTTLS", Awaited::StartTls));
        } else if self.config.tls == TlsMode::Required {
            self.close_politely(Closed::TlsNotOffered);
        } else {
            self.authenticate();
        }
    }

    pub(super) fn on_starttls(&mut self, reply: Reply) {
        if reply.is_positive() {
            self.link = Link::TlsHandshake;
            self.events.push_back(Event::StartTls);
        } else if self.config.tls == TlsMode::Required {
            self.on_opening_failure(Phase::StartTls, reply);
        } else {
            // RFC 3207 4: 454 and similar replies leave the session as it was.
            self.authenticate();
        }
    }

    fn authenticate(&mut self) {
        let Some(credentials) = &self.config.credentials else {
            return self.ready();
        };
        let may_send_credentials = self.is_encrypted || credentials.allow_without_tls;
        if may_send_credentials && self.capabilities.auth_plain {
            // RFC 4616 2, with an initial response (RFC 4954 4).
            let line = format!("AUTH PLAIN {}", plain_response(credentials));
            self.say(Segment::masked(&line, &format!("AUTH PLAIN {MASK}"), Awaited::AuthPlain));
        } else if may_send_credentials && self.capabilities.auth_login {
            self.say(Segment::line("AUTH LOGIN", Awaited::AuthLogin));
        } else {
            self.close_politely(Closed::AuthNotOffered);
        }
    }

    pub(super) fn on_auth(&mut self, awaited: Awaited, reply: Reply) {
        let credentials = self.config.credentials.as_ref();
        let response = match (awaited, credentials) {
            (Awaited::AuthLogin, Some(it)) => Some((BASE64.encode(&it.username), Awaited::AuthUsername)),
            (Awaited::AuthUsername, Some(it)) => Some((BASE64.encode(&it.password), Awaited::AuthPassword)),
            _ => None,
        };
        match (reply.class(), response) {
            // RFC 4954 4: 235; other positive codes count as 235.
            (ReplyClass::Positive, None) => self.ready(),
            (ReplyClass::Intermediate, Some((line, next))) => self.say(Segment::masked(&line, MASK, next)),
            (ReplyClass::Positive | ReplyClass::Intermediate, _) => {
                self.protocol_error_in(Phase::Auth, ProtocolError::Unexpected(reply.code));
            }
            _ => self.on_opening_failure(Phase::Auth, reply),
        }
    }

    /// Masks secrets in a reply: a server that echoes unknown commands would put the password into records.
    pub(super) fn without_secrets(&self, mut reply: Reply) -> Reply {
        if self.phase() != Phase::Auth {
            return reply;
        }
        if let Some(credentials) = &self.config.credentials {
            let secrets = [
                plain_response(credentials),
                BASE64.encode(&credentials.password),
                credentials.password.clone(),
            ];
            for line in &mut reply.lines {
                for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
                    if line.contains(secret.as_str()) {
                        *line = line.replace(secret.as_str(), MASK);
                    }
                }
            }
        }
        reply
    }
}

/// The response of AUTH PLAIN (RFC 4616 2), in base64.
fn plain_response(credentials: &Credentials) -> String {
    BASE64.encode(format!("\0{}\0{}", credentials.username, credentials.password))
}
