//! Plays a dialogue against a server session and compares every line of it.
//!
//! A step begins with one or more lines of the client or one `>` action (of the driver). `C:` is a line of the client
//! (`\r`, `\n`, `\0` are the bytes), `c:` one without a line end. The complete reaction follows: `S:` lines are all
//! that the server sends, `E:` lines all events of its session. `--` ends a step without beginning another; a comment
//! may follow it.

use std::sync::Arc;

use postroad_model::DomainName;
use postroad_smtp::server::{
    AuthPolicy, Closed, Event, ReversePath, ServerConfig, ServerSession, StandardReply,
};
use postroad_smtp::{HeloName, Reply};

pub(super) fn config() -> ServerConfig {
    ServerConfig::new(HeloName::from(DomainName::parse("mx.example.net").unwrap()))
}

/// Configuration of the submission port: STARTTLS, and AUTH inside it.
pub(super) fn submission_config() -> ServerConfig {
    ServerConfig {
        starttls: true,
        auth: AuthPolicy::InsideTls,
        tls_required: true,
        auth_required: true,
        ..config()
    }
}

/// Dialogue up to a transaction with one recipient.
pub(super) const ENVELOPE: &str = "
    C: HELO client.example
    S: 250 mx.example.net
    C: MAIL FROM:<a@example.org>
    E: mail <a@example.org>
    > accept
    S: 250 2.1.0 Sender OK
    C: RCPT TO:<b@example.net>
    E: rcpt <b@example.net>
    > accept
    S: 250 2.1.5 Recipient OK
";

/// Plays the dialogue after the banner, and returns the session for further checks.
pub(super) fn play(config: ServerConfig, dialogue: &str) -> ServerSession {
    let mut session = ServerSession::new(Arc::new(config));
    assert_eq!(session.take_output(), b"220 mx.example.net ESMTP Postroad\r\n");
    play_on(session, dialogue)
}

pub(super) fn play_on(session: ServerSession, dialogue: &str) -> ServerSession {
    let mut player = DialoguePlayer {
        session,
        client_lines: Vec::new(),
        expected_output: Vec::new(),
        expected_events: Vec::new(),
        played: String::new(),
    };
    for line in dialogue.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
        player.play_line(line);
        player.played.push_str(line);
        player.played.push('\n');
    }
    player.end_step();
    player.session
}

struct DialoguePlayer {
    session: ServerSession,
    /// Current step: client lines, and the expected reaction.
    client_lines: Vec<u8>,
    expected_output: Vec<String>,
    expected_events: Vec<String>,
    /// Dialogue so far, for the failure message.
    played: String,
}

impl DialoguePlayer {
    fn play_line(&mut self, line: &str) {
        let text = line.get(2..).map(|text| text.strip_prefix(' ').unwrap_or(text)).unwrap_or_default();
        match line.get(..2) {
            Some("S:") => self.expected_output.push(text.to_owned()),
            Some("E:") => self.expected_events.push(text.to_owned()),
            Some(speaker @ ("C:" | "c:")) => {
                if !self.expected_output.is_empty() || !self.expected_events.is_empty() {
                    self.end_step();
                }
                self.client_lines.extend_from_slice(unescape(text).as_bytes());
                if speaker == "C:" {
                    self.client_lines.extend_from_slice(b"\r\n");
                }
            }
            Some("--") => self.end_step(),
            Some("> ") => {
                self.end_step();
                self.act(text);
            }
            _ => panic!("not a line of a dialogue: {line}"),
        }
    }

    fn act(&mut self, action: &str) {
        match action.split_once(' ').unwrap_or((action, "")) {
            ("accept", _) => self.session.accept(),
            ("tls", _) => self.session.tls_established(),
            ("idle", _) => self.session.close(StandardReply::Idle),
            ("reply", reply) => {
                let (code, text) = reply.split_once(' ').unwrap();
                self.session.reply(Reply::new(code.parse().unwrap(), vec![text.to_owned()]));
            }
            _ => panic!("no such action: {action}"),
        }
    }

    fn end_step(&mut self) {
        self.session.feed(&std::mem::take(&mut self.client_lines));
        let output = String::from_utf8(self.session.take_output()).unwrap();
        let output: Vec<&str> = output.split_terminator("\r\n").collect();
        let events: Vec<String> =
            std::iter::from_fn(|| self.session.next_event()).map(|e| describe(&e)).collect();
        assert_eq!(
            output,
            std::mem::take(&mut self.expected_output),
            "output of the server after:\n{}",
            self.played
        );
        assert_eq!(
            events,
            std::mem::take(&mut self.expected_events),
            "events of the session after:\n{}",
            self.played
        );
    }
}

pub(super) fn unescape(text: &str) -> String {
    text.replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0")
}

pub(super) fn describe(event: &Event) -> String {
    match event {
        Event::StartTls => "start tls".to_owned(),
        Event::Auth(login) => format!("auth {} {}", login.username, login.password),
        Event::Mail(mail) => {
            let kind = if matches!(mail.path, ReversePath::Local(_)) { " local" } else { "" };
            format!("mail <{}>{kind}", mail.path)
        }
        Event::Rcpt(rcpt) => format!("rcpt <{}>", rcpt.address),
        Event::Message(envelope) => {
            let recipients: Vec<_> =
                envelope.rcpt_to.iter().map(|rcpt| format!("<{}>", rcpt.address)).collect();
            format!("message <{}> to {}", envelope.mail_from.path, recipients.join(" "))
        }
        Event::Data(bytes) => format!("data {:?}", String::from_utf8_lossy(bytes)),
        Event::EndOfData => "end of data".to_owned(),
        Event::Dropped(cause) => format!("dropped {cause:?}"),
        Event::Abandoned => "abandoned".to_owned(),
        Event::Closed(Closed::Quit) => "closed".to_owned(),
        Event::Closed(Closed::ByDriver) => "closed by driver".to_owned(),
        Event::Closed(Closed::ForCause(cause)) => format!("closed for {cause:?}"),
    }
}
