//! SMTP smuggling: whatever other hosts take for the end of a message, here only CRLF.CRLF is one.

use std::sync::Arc;

use postroad_smtp::server::{Event, ServerConfig, ServerSession};

use super::dialogue::{config, unescape};

/// What some host somewhere has taken for an end of data.
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
];

/// What a smuggler puts behind it.
const SECOND: &str =
    "MAIL FROM:<admin@example.org>\\r\\nRCPT TO:<victim@example.net>\\r\\nDATA\\r\\nsecond\\r\\n";

struct Outcome {
    messages: Vec<Vec<u8>>,
    begun: usize,
    output: String,
}

/// One message with `content`, then QUIT, `step` bytes at a time; the driver accepts everything.
fn send(config: ServerConfig, content: &str, step: usize) -> Outcome {
    let text = format!(
        "HELO x\\r\\nMAIL FROM:<a@example.org>\\r\\nRCPT TO:<b@example.net>\\r\\nDATA\\r\\n{content}\\r\\n.\\r\\nQUIT\\r\\n"
    );
    let mut session = ServerSession::new(Arc::new(config));
    let mut outcome = Outcome { messages: Vec::new(), begun: 0, output: String::new() };
    let mut message = Vec::new();
    for piece in unescape(&text).as_bytes().chunks(step) {
        session.feed(piece);
        while let Some(event) = session.next_event() {
            match event {
                Event::Message(_) => {
                    outcome.begun += 1;
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
    for nul_refused in [true, false] {
        for end in FALSE_ENDS {
            for step in [1, 2, 3, 7, 1_000] {
                let config = ServerConfig { nul_refused, ..config() };
                let outcome = send(config, &format!("first{end}{SECOND}"), step);
                assert_eq!(outcome.begun, 1, "{end} {step}\n{}", outcome.output);
                assert!(outcome.messages.len() <= 1, "{end} {step}");
                assert!(outcome.output.ends_with("221 2.0.0 Bye\r\n"), "{end} {step}\n{}", outcome.output);
                assert_eq!(outcome.output.matches("354 ").count(), 1, "{end} {step}");
                // What is taken must not smuggle behind us either.
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
        let outcome = send(config(), &format!("first{end}{SECOND}"), 1_000);
        assert!(outcome.messages.is_empty(), "{end}");
        assert!(outcome.output.contains("\r\n550 5.6.0 "), "{end}\n{}", outcome.output);
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
