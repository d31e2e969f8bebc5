//! Plays a dialogue against a client session and compares every line of it.
//!
//! A step begins with one or more `S:` lines (of the server) or one `>` action (of the driver). The complete reaction
//! follows: `C:` lines are all that the client sends, `E:` lines all events of its session. `--` ends a step without
//! beginning another; a comment may follow it. In an outcome, `after the end` means that the last byte of the message
//! had been handed out.

use bytes::Bytes;
use postroad_model::{DomainName, EmailAddress};
use postroad_smtp::{
    Body, ClientConfig, ClientSession, Closed, EndCause, Event, HeloName, Outcome, OutgoingMessage, Verdict,
};

pub(crate) fn config() -> ClientConfig {
    ClientConfig::new(HeloName::from(DomainName::parse("out.example.org").unwrap()))
}

/// Message from `a@rp.example.org` to `recipient`; `|` in `text` ends a line.
pub(crate) fn message(recipient: &str, text: &str) -> OutgoingMessage {
    OutgoingMessage {
        mail_from: Some(EmailAddress::parse("a@rp.example.org").unwrap()),
        rcpt_to: EmailAddress::parse(recipient).unwrap(),
        body: Body::parse(vec![Bytes::from(text.replace('|', "\r\n"))]).unwrap(),
        has_utf8_header: false,
    }
}

/// Dialogue up to the first `ready`, with a server that offers `extensions` (separated by commas).
pub(crate) fn opening_dialogue(extensions: &str) -> String {
    let mut dialogue = "S: 220 mx.example.net ESMTP\nC: EHLO out.example.org\n".to_owned();
    for extension in extensions.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let before = if dialogue.contains("S: 250-") { "" } else { "S: 250-mx.example.net\n" };
        dialogue.extend([before, "S: 250-", extension, "\n"]);
    }
    dialogue + "S: 250 HELP\nE: ready\n"
}

/// Plays the dialogue and returns the session for further checks.
pub(crate) fn play(config: ClientConfig, dialogue: &str) -> ClientSession {
    let mut player = DialoguePlayer {
        session: ClientSession::new(config),
        server_lines: String::new(),
        expected_output: Vec::new(),
        expected_events: Vec::new(),
        played: String::new(),
    };
    for line in dialogue.lines().map(str::trim).filter(|line| !line.is_empty()) {
        player.play_line(line);
        player.played.push_str(line);
        player.played.push('\n');
    }
    player.end_step();
    player.session
}

struct DialoguePlayer {
    session: ClientSession,
    /// Current step: server lines, and the expected reaction.
    server_lines: String,
    expected_output: Vec<String>,
    expected_events: Vec<String>,
    /// Dialogue so far, for the failure message.
    played: String,
}

impl DialoguePlayer {
    fn play_line(&mut self, line: &str) {
        let text = line.get(2..).unwrap_or_default().trim_start();
        match line.get(..2) {
            Some("C:") => self.expected_output.push(text.to_owned()),
            Some("E:") => self.expected_events.push(text.to_owned()),
            Some("S:") => {
                if !self.expected_output.is_empty() || !self.expected_events.is_empty() {
                    self.end_step();
                }
                self.server_lines.push_str(text);
                self.server_lines.push_str("\r\n");
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
        let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
        match verb {
            "send" => self.session.send(message("bob@example.net", rest)).unwrap(),
            "send-to" => {
                let (recipient, text) = rest.split_once(' ').unwrap();
                self.session.send(message(recipient, text)).unwrap();
            }
            "bounce" => {
                let message = OutgoingMessage { mail_from: None, ..message("bob@example.net", rest) };
                self.session.send(message).unwrap();
            }
            "tls" => self.session.tls_established(),
            "quit" => self.session.quit().unwrap(),
            "drop" => self.session.connection_ended(EndCause::EndOfStream),
            "timeout" => self.session.connection_ended(EndCause::TimedOut),
            _ => panic!("no such action: {action}"),
        }
    }

    fn end_step(&mut self) {
        self.session.feed(std::mem::take(&mut self.server_lines).as_bytes());
        let (output, events) = drain(&mut self.session);
        let output: Vec<&str> = output.split_terminator("\r\n").collect();
        let events: Vec<String> = events.iter().map(describe).collect();
        assert_eq!(
            output,
            std::mem::take(&mut self.expected_output),
            "output of the client after:\n{}",
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

/// Takes all output and events that need no further server line.
pub(crate) fn drain(session: &mut ClientSession) -> (String, Vec<Event>) {
    let (mut output, mut events) = (Vec::new(), Vec::new());
    loop {
        let count = session.fill_output(&mut output, 1_000);
        let before = events.len();
        events.extend(std::iter::from_fn(|| session.next_event()));
        if count == 0 && events.len() == before {
            return (String::from_utf8(output).expect("the tests' messages are UTF-8"), events);
        }
    }
}

pub(crate) fn describe(event: &Event) -> String {
    match event {
        Event::StartTls => "start tls".to_owned(),
        Event::Ready => "ready".to_owned(),
        Event::Finishing => "finishing".to_owned(),
        Event::Outcome(Outcome { verdict, phase, after_last_byte }) => {
            let verdict = match verdict {
                Verdict::Accepted(reply) => format!("accepted: {reply}"),
                Verdict::Refused(reply) => format!("refused: {reply}"),
                Verdict::TooLarge { size, size_max } => format!("too large: {size} of {size_max}"),
                Verdict::Utf8NotOffered => "no SMTPUTF8".to_owned(),
                Verdict::Interrupted => "interrupted".to_owned(),
            };
            format!("{verdict} ({phase}{})", if *after_last_byte { ", after the end" } else { "" })
        }
        Event::Closed(closed) => match closed {
            Closed::Quit => "closed: quit".to_owned(),
            Closed::ByServer { phase, reply } => format!("closed by server: {reply} ({phase})"),
            Closed::Refused { phase, reply } => format!("closed, refused: {reply} ({phase})"),
            Closed::TlsNotOffered => "closed: no TLS".to_owned(),
            Closed::AuthNotOffered => "closed: no AUTH".to_owned(),
            Closed::Protocol { phase, error } => format!("closed: {error} ({phase})"),
            Closed::Ended { phase, cause } => format!("closed: {cause:?} ({phase})"),
        },
    }
}
