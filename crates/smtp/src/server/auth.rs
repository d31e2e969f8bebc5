//! AUTH PLAIN (RFC 4616) and LOGIN, with and without an initial response (RFC 4954 4).

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::config::AuthPolicy;
use super::event::{Event, Login};
use super::replies::StandardReply;
use super::transaction::Transaction;
use super::{Question, ServerSession, State};
use crate::reply::{Reply, ReplyClass};

/// Base64 with or without padding, which some clients omit.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// `Username:` in base64, then `Password:`; some clients check the text.
const USERNAME_PROMPT: &str = "VXNlcm5hbWU6";
const PASSWORD_PROMPT: &str = "UGFzc3dvcmQ6";

/// Awaited line of the exchange.
pub(super) enum AuthStep {
    Plain,
    Username,
    Password { username: String },
}

impl ServerSession {
    pub(super) fn on_auth(&mut self, mechanism: &str, initial_response: Option<&str>) {
        if let Some(problem) = self.auth_problem() {
            return self.say_and_count_error(problem);
        }
        let step = match mechanism.to_ascii_uppercase().as_str() {
            "PLAIN" => AuthStep::Plain,
            "LOGIN" => AuthStep::Username,
            _ => return self.say_and_count_error(StandardReply::UnknownMechanism),
        };
        match initial_response {
            // RFC 4954 4: `=` is an initial response of no bytes.
            Some("=") => self.on_auth_line(step, ""),
            Some(response) => self.on_auth_line(step, response),
            None => self.prompt(step),
        }
    }

    fn auth_problem(&self) -> Option<StandardReply> {
        if self.config.auth == AuthPolicy::Off {
            Some(StandardReply::NotImplemented)
        } else if !self.offers_auth() {
            Some(StandardReply::MustStartTls)
        } else if self.helo.is_none() {
            Some(StandardReply::GreetFirst)
        } else if self.is_authenticated {
            Some(StandardReply::AuthAlready)
        } else if !matches!(self.transaction, Transaction::None) {
            Some(StandardReply::AuthDuringMail)
        } else {
            None
        }
    }

    fn prompt(&mut self, step: AuthStep) {
        let challenge = match step {
            AuthStep::Plain => "",
            AuthStep::Username => USERNAME_PROMPT,
            AuthStep::Password { .. } => PASSWORD_PROMPT,
        };
        self.say(&Reply::new(334, vec![challenge.to_owned()]));
        self.state = State::Auth(step);
    }

    pub(super) fn on_auth_line(&mut self, step: AuthStep, line: &str) {
        if line == "*" {
            return self.say_and_count_error(StandardReply::AuthCancelled); // RFC 4954 4
        }
        let Some(text) = decode(line) else {
            return self.say_and_count_error(StandardReply::AuthMalformed);
        };
        match step {
            AuthStep::Plain => match split_plain(&text) {
                Some(login) => self.ask(Question::Auth, Event::Auth(login)),
                None => self.say_and_count_error(StandardReply::AuthMalformed),
            },
            AuthStep::Username => self.prompt(AuthStep::Password { username: text }),
            AuthStep::Password { username } => {
                self.ask(Question::Auth, Event::Auth(Login { username, password: text }));
            }
        }
    }

    pub(super) fn on_auth_decided(&mut self, class: ReplyClass) {
        self.is_authenticated = class == ReplyClass::Positive;
        // A temporary failure on our side is not the client's fault.
        if class == ReplyClass::Permanent {
            self.bad_credentials += 1;
            if self.bad_credentials >= self.config.limits.bad_credentials_max {
                self.close_for(StandardReply::TooManyBadCredentials);
            }
        }
    }
}

fn decode(line: &str) -> Option<String> {
    String::from_utf8(BASE64.decode(line).ok()?).ok()
}

/// Parses `authorize-id NUL authenticate-id NUL password`. Acting for another user is not supported.
fn split_plain(text: &str) -> Option<Login> {
    let mut fields = text.split('\0');
    let (acting_for, username, password) = (fields.next()?, fields.next()?, fields.next()?);
    let is_own = acting_for.is_empty() || acting_for == username;
    if fields.next().is_some() || username.is_empty() || !is_own {
        return None;
    }
    Some(Login { username: username.to_owned(), password: password.to_owned() })
}
