//! SMTP server session. The driver owns the socket and runs this loop: take all events and answer the questions
//! among them; write `take_output`; then, while `wants_input`, read and `feed`. A question stops the session
//! until it is answered, so replies keep the order of pipelined commands; input that was read ahead waits,
//! within a limit.
//!
//! The driver keeps the deadlines: it calls `close` with a reply and writes the remaining output.

mod auth;
mod command;
mod config;
mod content;
mod content_input;
mod envelope;
mod event;
mod greeting;
mod input;
mod output;
mod parameters;
mod path;
mod replies;
mod transaction;

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::Arc;

pub use config::{AuthPolicy, BareLf, Extensions, ServerConfig, ServerLimits};
pub use envelope::{Envelope, MailFrom, Notify, RcptTo, Ret, ReversePath};
pub use event::{Closed, DropCause, Event, Login};
pub use replies::StandardReply;

use crate::reply::{Reply, ReplyClass};
use auth::AuthStep;
use command::Command;
use content::DotReader;
use content_input::Chunk;
use input::Input;
use transaction::Transaction;

pub struct ServerSession {
    config: Arc<ServerConfig>,
    state: State,
    input: Input,
    output: Vec<u8>,
    events: VecDeque<Event>,
    is_encrypted: bool,
    is_authenticated: bool,
    /// Name that the client gave in EHLO or HELO.
    helo: Option<String>,
    transaction: Transaction,
    /// Invalid commands, and all commands, since the last accepted message.
    errors: u32,
    commands: u32,
    bad_credentials: u32,
}

/// Meaning of the next input byte.
enum State {
    Command,
    /// Line of an AUTH exchange.
    Auth(AuthStep),
    Data(DotReader),
    Chunk(Chunk),
    /// Input waits: the driver must answer first.
    Deciding(Question),
    /// Input is discarded.
    TlsHandshake,
    Closed,
}

enum Question {
    Auth,
    Mail(MailFrom),
    Rcpt(RcptTo),
    EndOfData,
}

impl ServerSession {
    /// Starts a session; the banner is its first output.
    pub fn new(config: Arc<ServerConfig>) -> Self {
        let mut session = Self {
            state: State::Command,
            input: Input::default(),
            output: Vec::new(),
            events: VecDeque::new(),
            is_encrypted: false,
            is_authenticated: false,
            helo: None,
            transaction: Transaction::None,
            errors: 0,
            commands: 0,
            bad_credentials: 0,
            config,
        };
        session.say_banner();
        session
    }

    /// Starts a session whose driver has already performed the handshake (port 465, RFC 8314 3.3).
    pub fn inside_tls(config: Arc<ServerConfig>) -> Self {
        Self { is_encrypted: true, ..Self::new(config) }
    }

    /// Processes bytes from the client, in pieces of any size.
    pub fn feed(&mut self, bytes: &[u8]) {
        if matches!(self.state, State::TlsHandshake | State::Closed) {
            // RFC 3207 4.2: discard everything received before the handshake (CVE-2011-0411).
            return;
        }
        self.input.push(bytes);
        self.advance();
        if self.input.len() > self.config.limits.pending_input_bytes_max {
            self.close_for(StandardReply::TooMuchAhead);
        }
    }

    /// Whether to read from the socket.
    pub fn wants_input(&self) -> bool {
        !matches!(self.state, State::Deciding(_) | State::TlsHandshake | State::Closed)
    }

    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes the bytes to send to the client.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        mem::take(&mut self.output)
    }

    /// Answers the last question: a positive reply accepts, every other one refuses; 421 also closes. Ignored
    /// if there is no question, as after a close.
    pub fn reply(&mut self, reply: impl Into<Reply>) {
        // The driver cannot mean a question that it has not taken yet.
        if !matches!(self.state, State::Deciding(_)) || self.events.back().is_some_and(Event::is_question) {
            return;
        }
        let State::Deciding(question) = mem::replace(&mut self.state, State::Command) else { return };
        let reply = reply.into();
        self.say(&reply);
        self.on_decided(question, reply.class());
        if reply.is_closing() {
            self.end(Closed::ByDriver);
        }
        self.advance();
    }

    /// Answers the question with the standard positive reply.
    pub fn accept(&mut self) {
        let State::Deciding(question) = &self.state else { return };
        self.reply(match question {
            Question::Auth => StandardReply::Authenticated,
            Question::Mail(_) => StandardReply::SenderOk,
            Question::Rcpt(_) => StandardReply::RecipientOk,
            Question::EndOfData => StandardReply::Ok,
        });
    }

    /// Ends the session at any point with a final reply, for example when it is idle or the service stops.
    pub fn close(&mut self, reply: impl Into<Reply>) {
        if !matches!(self.state, State::Closed) {
            self.say(&reply.into());
            self.end(Closed::ByDriver);
        }
    }

    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Whether a transaction is open: the client has named a sender, and the message is neither answered nor abandoned.
    pub fn is_in_transaction(&self) -> bool {
        let names_sender = matches!(self.state, State::Deciding(Question::Mail(_)));
        names_sender || !matches!(self.transaction, Transaction::None)
    }

    /// Name that the client gave in its last EHLO or HELO.
    pub fn helo(&self) -> Option<&str> {
        self.helo.as_deref()
    }

    /// Processes the input as far as possible.
    fn advance(&mut self) {
        loop {
            let made_progress = match self.state {
                State::Command | State::Auth(_) => self.take_line(),
                State::Data(_) => self.take_data(),
                State::Chunk(_) => self.take_chunk(),
                State::Deciding(_) | State::TlsHandshake | State::Closed => false,
            };
            if !made_progress {
                return;
            }
        }
    }

    /// Processes the next line; false if it is incomplete.
    fn take_line(&mut self) -> bool {
        let Some(line) = self.input.next_line(self.config.limits.command_bytes_max) else { return false };
        self.commands += 1;
        if self.commands > self.config.limits.commands_max {
            self.close_for(StandardReply::TooManyCommands);
            return true;
        }
        match (mem::replace(&mut self.state, State::Command), line) {
            (State::Auth(step), Ok(line)) => self.on_auth_line(step, &line),
            (_, Ok(line)) => self.on_command(&line),
            (_, Err(problem)) => self.say_and_count_error(problem),
        }
        true
    }

    fn on_command(&mut self, line: &str) {
        match command::parse(line, self.config.extensions) {
            Ok(Command::Ehlo(host)) => self.on_ehlo(host),
            Ok(Command::Helo(host)) => self.on_helo(host),
            Ok(Command::StartTls) => self.on_starttls(),
            Ok(Command::Auth { mechanism, initial_response }) => self.on_auth(mechanism, initial_response),
            Ok(Command::Mail(mail)) => self.on_mail(mail),
            Ok(Command::Rcpt(rcpt)) => self.on_rcpt(rcpt),
            Ok(Command::Data) => self.on_data(),
            Ok(Command::Bdat { size, is_last }) => self.on_bdat(size, is_last),
            Ok(Command::Rset) => self.on_rset(),
            Ok(Command::Noop) => self.say_standard(StandardReply::Ok),
            Ok(Command::Vrfy) => self.say_standard(StandardReply::CannotVerify),
            Ok(Command::Help) => self.say_standard(StandardReply::Help),
            Ok(Command::Quit) => self.on_quit(),
            // The end of a chunk of unknown size cannot be found: its bytes must not be tried as commands.
            Err(cause @ (StandardReply::BadChunkSize | StandardReply::NotSmtp)) => self.close_for(cause),
            Err(problem) => self.say_and_count_error(problem),
        }
    }

    fn on_decided(&mut self, question: Question, class: ReplyClass) {
        let is_accepted = class == ReplyClass::Positive;
        match question {
            Question::Auth => self.on_auth_decided(class),
            Question::Mail(mail) if is_accepted => self.transaction = Transaction::of(mail),
            Question::Rcpt(rcpt) if is_accepted => self.transaction.add(rcpt),
            Question::Mail(_) | Question::Rcpt(_) => {}
            Question::EndOfData => {
                // RFC 5321 4.1.1.4: the buffers are cleared, whatever the reply.
                self.transaction = Transaction::None;
                if is_accepted {
                    // The limits are for clients without progress, not for those that send many messages.
                    (self.commands, self.errors) = (0, 0);
                }
            }
        }
    }

    fn ask(&mut self, question: Question, event: Event) {
        self.state = State::Deciding(question);
        self.events.push_back(event);
    }
}

impl fmt::Debug for ServerSession {
    /// Omits everything the client said: it may contain passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSession")
            .field("is_encrypted", &self.is_encrypted)
            .field("is_authenticated", &self.is_authenticated)
            .field("commands", &self.commands)
            .field("errors", &self.errors)
            .finish_non_exhaustive()
    }
}
