//! SMTP smuggling: only CRLF.CRLF ends a message, whatever other hosts accept.

use std::sync::Arc;

use bytes::Bytes;
use postroad_smtp::server::{BareLf, Event, ServerConfig, ServerSession};
use postroad_smtp::{Body, ClientSession, OutgoingMessage};

use super::dialogue::{config, unescape};
use crate::dialogue::{config as client_config, drain, message as client_message};

/// Sequences that a mail server may take for the end of data by mistake.
const FALSE_ENDS: &[&str] = &[
    "\\n.\\n",
    "\\n.\\r\\n",
    "\\n.\\r",
    "\\r.\\r",
    "\\r.\\n",
    "\\r.\\r\\n",
    "\\r\\n.\\n",
    "\\r\\n.\\r",
    "\\r\\n.\\r\\r\\n",
    "\\r\\r\\n.\\n",
    "\\r\\n\\0.\\r\\n",
    "\\r\\n.\\0\\r\\n",
    "\\r\\n.\\r\\0\\n",
    "\\r\\0\\n.\\r\\n",
    "\\0\\n.\\r\\n",
    "\\r\\n. \\r\\n",
    "\\r\\n .\\r\\n",
    "\\r\\n..\\r\\n",
    "\\n\\n.\\n\\n",
    "\\r\\n.\\n\\n",
    "\\r\\n.\\n\\r\\n",
    "\\n..\\n",
    "\\n..\\r\\n",
    "\\n.\\n.\\r\\n",
    "\\n\\r\\n.\\n",
    "\\r\\n\\n.\\r\\n",
    "\\n.\\r\\n.\\n",
];

/// Smuggled commands after the false end.
const SMUGGLED_COMMANDS: &str =
    "MAIL FROM:<admin@example.org>\\r\\nRCPT TO:<victim@example.net>\\r\\nDATA\\r\\nsecond\\r\\n";

struct Outcome {
    messages: Vec<Vec<u8>>,
    /// Number of messages that began.
    messages_begun: usize,
    output: String,
}

/// Sends one message with `content`, then QUIT, `step` bytes at a time; the driver accepts everything.
fn send(config: ServerConfig, content: &str, step: usize) -> Outcome {
    let text = format!(
        "HELO x\\r\\nMAIL FROM:<a@example.org>\\r\\nRCPT TO:<b@example.net>\\r\\nDATA\\r\\n{content}\\r\\n.\\r\\nQUIT\\r\\n"
    );
    let mut session = ServerSession::new(Arc::new(config));
    let mut outcome = Outcome { messages: Vec::new(), messages_begun: 0, output: String::new() };
    let mut message = Vec::new();
    for piece in unescape(&text).as_bytes().chunks(step) {
        session.feed(piece);
        while let Some(event) = session.next_event() {
            match event {
                Event::Message(_) => {
                    outcome.messages_begun += 1;
                    message.clear();
                }
                Event::Data(bytes) => message.extend_from_slice(&bytes),
                Event::EndOfData => outcome.messages.push(std::mem::take(&mut message)),
                _ => {}
            }
            session.accept();
        }
        outcome.output.push_str(&String::from_utf8(session.take_output()).unwrap());
    }
    outcome
}

#[test]
fn no_false_end_makes_a_second_message() {
    for (nul_refused, bare_lf) in
        [(true, BareLf::Refused), (false, BareLf::Refused), (true, BareLf::Normalised)]
    {
        for end in FALSE_ENDS {
            for step in [1, 2, 3, 7, 1_000] {
                let config = ServerConfig { nul_refused, bare_lf, ..config() };
                let outcome = send(config, &format!("first{end}{SMUGGLED_COMMANDS}"), step);
                assert_eq!(outcome.messages_begun, 1, "{end} {step}\n{}", outcome.output);
                assert!(outcome.messages.len() <= 1, "{end} {step}");
                assert!(outcome.output.ends_with("221 2.0.0 Bye\r\n"), "{end} {step}\n{}", outcome.output);
                assert_eq!(outcome.output.matches("354 ").count(), 1, "{end} {step}");
                // An accepted message must not smuggle at the next host either.
                for message in &outcome.messages {
                    let text = String::from_utf8(message.clone()).unwrap();
                    assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "{end}: {text:?}");
                }
            }
        }
    }
}

#[test]
fn messages_with_bare_newlines_are_refused_at_their_end() {
    for end in FALSE_ENDS.iter().filter(|end| unescape(end).replace("\r\n", "").contains(['\r', '\n'])) {
        let outcome = send(config(), &format!("first{end}{SMUGGLED_COMMANDS}"), 1_000);
        assert!(outcome.messages.is_empty(), "{end}");
        assert!(outcome.output.contains("\r\n550 5.6.0 "), "{end}\n{}", outcome.output);
    }
}

#[test]
fn where_bare_lf_is_normalised_only_bare_cr_is_refused() {
    let config = || ServerConfig { bare_lf: BareLf::Normalised, ..config() };
    for end in FALSE_ENDS.iter().filter(|end| !end.contains("\\0")) {
        let outcome = send(config(), &format!("first{end}{SMUGGLED_COMMANDS}"), 1_000);
        let is_refused = unescape(end).replace("\r\n", "").contains('\r');
        assert_eq!(outcome.messages.is_empty(), is_refused, "{end}");
        assert_eq!(outcome.output.contains("\r\n550 5.6.0 "), is_refused, "{end}\n{}", outcome.output);
    }
}

#[test]
fn normalised_content_is_dot_stuffed_again_when_it_is_sent_on() {
    let config = || ServerConfig { bare_lf: BareLf::Normalised, ..config() };
    for end in FALSE_ENDS.iter().filter(|end| !end.contains("\\0")) {
        let first = send(config(), &format!("first{end}{SMUGGLED_COMMANDS}"), 1_000);
        for message in first.messages {
            // A second Postroad server reads the output of our client.
            let wire = client_output_for(message.clone());
            let second = send(self::config(), wire.strip_suffix("\r\n.\r\n").unwrap(), 1_000);
            assert_eq!(second.messages_begun, 1, "{end}\n{}", second.output);
            assert_eq!(second.messages, [message], "{end}");
        }
    }
}

/// Output of our client after DATA.
fn client_output_for(message: Vec<u8>) -> String {
    let mut session = ClientSession::new(client_config());
    session.feed(b"220 mx\r\n");
    drain(&mut session);
    session.feed(b"250 mx\r\n");
    drain(&mut session);
    let body = Body::parse(vec![Bytes::from(message)]).unwrap();
    session.send(OutgoingMessage { body, ..client_message("b@example.net", "") }).unwrap();
    for reply in ["250 OK\r\n", "250 OK\r\n"] {
        drain(&mut session);
        session.feed(reply.as_bytes());
    }
    drain(&mut session);
    session.feed(b"354 Go\r\n");
    drain(&mut session).0
}

#[test]
fn dots_after_a_bare_lf_survive_whether_or_not_the_client_doubles_them() {
    for (written, meant) in [
        ("a\\n.b", "a\\r\\n.b\\r\\n"),
        ("a\\n..b", "a\\r\\n.b\\r\\n"),
        ("a\\n.\\nb", "a\\r\\n.\\r\\nb\\r\\n"),
        ("a\\n..\\nb", "a\\r\\n.\\r\\nb\\r\\n"),
        ("a\\n.\\r\\nb", "a\\r\\n.\\r\\nb\\r\\n"),
        ("a\\r\\n.\\nb", "a\\r\\n\\r\\nb\\r\\n"),
        ("a\\n\\n.", "a\\r\\n\\r\\n.\\r\\n"),
        ("\\n", "\\r\\n\\r\\n"),
    ] {
        for step in [1, 2, 3, 1_000] {
            let config = ServerConfig { bare_lf: BareLf::Normalised, ..config() };
            let outcome = send(config, written, step);
            assert_eq!(outcome.messages, [unescape(meant).into_bytes()], "{written} {step}");
        }
    }
}

#[test]
fn lines_that_only_look_like_an_end_are_content() {
    for (written, meant) in [
        ("a\\r\\n. \\r\\nb", "a\\r\\n \\r\\nb\\r\\n"),
        ("a\\r\\n .\\r\\nb", "a\\r\\n .\\r\\nb\\r\\n"),
        ("a\\r\\n..\\r\\nb", "a\\r\\n.\\r\\nb\\r\\n"),
        ("a.\\r\\nb", "a.\\r\\nb\\r\\n"),
        (".a", "a\\r\\n"),
    ] {
        for step in [1, 1_000] {
            let outcome = send(config(), written, step);
            assert_eq!(outcome.messages, [unescape(meant).into_bytes()], "{written}");
        }
    }
}
