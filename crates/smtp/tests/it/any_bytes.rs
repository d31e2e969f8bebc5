//! The client session behaves the same however the server's bytes are cut, and ends properly on any bytes.

use postroad_smtp::{ClientConfig, ClientSession, Closed, EndCause, Event, Phase, TlsMode};
use proptest::prelude::*;

use super::dialogue::{config, drain, message};

/// Minimal driver: sends two messages, then quits.
struct TestDriver {
    session: ClientSession,
    output: String,
    events: Vec<Event>,
    left_to_send: u32,
}

impl TestDriver {
    fn new(config: ClientConfig) -> Self {
        Self {
            session: ClientSession::new(config),
            output: String::new(),
            events: Vec::new(),
            left_to_send: 2,
        }
    }

    /// Runs until the session has no output and no events.
    fn react(&mut self) {
        loop {
            let (output, events) = drain(&mut self.session);
            if output.is_empty() && events.is_empty() {
                return;
            }
            for event in &events {
                match event {
                    Event::StartTls => self.session.tls_established(),
                    Event::Ready if self.left_to_send > 0 => {
                        self.left_to_send -= 1;
                        self.session.send(message("bob@example.net", ".one|two|")).unwrap();
                    }
                    Event::Ready => self.session.quit().unwrap(),
                    _ => {}
                }
            }
            self.output.push_str(&output);
            self.events.extend(events);
        }
    }
}

/// Dialogues: the server's replies, step by step. Each step answers everything sent before it.
const DIALOGUES: &[&[&str]] = &[
    &[
        "220 mx\r\n",
        "250 mx\r\n",
        "250 ok\r\n",
        "250 ok\r\n",
        "354 go\r\n",
        "250 a\r\n",
        "250 ok\r\n",
        "550-5.1.1 no\r\n550 5.1.1 user\r\n",
        "250 ok\r\n",
        "221 bye\r\n",
    ],
    &[
        "220-mx\r\n220 there\r\n",
        "250-mx\r\n250-PIPELINING\r\n250 SIZE 99\r\n",
        "250 ok\r\n250 ok\r\n354 go\r\n",
        "451 4.3.0 later\r\n",
        "250 ok\r\n550 no\r\n354 go\r\n",
        "554 nobody\r\n",
        "221 bye\r\n",
    ],
    &[
        "220 mx\r\n",
        "250-mx\r\n250 STARTTLS\r\n",
        "220 go\r\n",
        "250-mx\r\n250-PIPELINING\r\n250 CHUNKING\r\n",
        "250 ok\r\n250 ok\r\n250 queued\r\n",
        "250 ok\r\n550 no\r\n503 no\r\n",
        "250 ok\r\n",
        "421 bye\r\n",
    ],
    &["220 mx\r\n", "500 what\r\n", "250 mx\r\n", "421 4.3.2 shutting down\r\n"],
    &["220 mx\r\n", "250-mx\r\n250 STARTTLS\r\n", "220 go\r\n250 injected\r\n"],
    &["220 mx\r\n", "250-mx\r\n250 PIPELINING\r\n", "250 ok\r\n250 ok\r\n354 go\r\n250 too much\r\n"],
    &["220 mx\r\n250 too early\r\n"],
];

/// `cuts` are piece lengths, used cyclically.
fn play(steps: &[&str], cuts: &[usize]) -> (String, Vec<Event>, String) {
    let mut driver = TestDriver::new(config());
    for step in steps {
        let mut rest = step.as_bytes();
        for cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            driver.session.feed(piece);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        driver.react();
    }
    driver.session.connection_ended(EndCause::EndOfStream);
    driver.react();
    let transcript = driver.session.take_transcript().to_string();
    (driver.output, driver.events, transcript)
}

#[test]
fn byte_by_byte_is_the_same_as_all_at_once() {
    for steps in DIALOGUES {
        assert_eq!(play(steps, &[1]), play(steps, &[usize::MAX]), "{steps:?}");
    }
}

#[test]
fn complete_dialogues_end_with_two_outcomes_and_quit() {
    for steps in &DIALOGUES[..3] {
        let (_, events, transcript) = play(steps, &[3]);
        assert_eq!(events.last(), Some(&Event::Closed(Closed::Quit)), "{transcript}");
        assert_eq!(events.iter().filter(|event| matches!(event, Event::Outcome(_))).count(), 2);
    }
}

fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let replies = prop::sample::select(vec![
        "220 mx\r\n",
        "250 ok\r\n",
        "250-mx\r\n250-PIPELINING\r\n250-CHUNKING\r\n250 SIZE 40\r\n",
        "250-mx\r\n250 STARTTLS\r\n",
        "354 go\r\n",
        "334 VXNlcm5hbWU6\r\n",
        "421 bye\r\n",
        "550 5.1.1 no\r\n",
        "503 no\r\n",
        "250-",
        "\r\n",
        "\u{0}\u{ff}",
    ]);
    prop_oneof![
        8 => replies.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(vec![b'2'; 5_000]),
    ]
}

proptest! {
    #[test]
    fn every_cut_gives_the_same_output_and_events(at in 0..DIALOGUES.len(), cuts in prop::collection::vec(1usize..20, 1..5)) {
        prop_assert_eq!(play(DIALOGUES[at], &cuts), play(DIALOGUES[at], &[usize::MAX]));
    }

    #[test]
    fn every_session_closes_once_with_an_outcome_per_message(
        pieces in prop::collection::vec(garbage(), 0..30),
        tls in prop::sample::select(vec![TlsMode::Never, TlsMode::Opportunistic, TlsMode::Required]),
        reacts_to_each_piece in any::<bool>(),
    ) {
        let mut driver = TestDriver::new(ClientConfig { tls, ..config() });
        for piece in &pieces {
            driver.session.feed(piece);
            if reacts_to_each_piece {
                driver.react();
            }
        }
        driver.react();
        driver.session.connection_ended(EndCause::Io);
        driver.react();
        prop_assert_eq!(driver.session.phase(), Phase::Closed);

        let count = |wanted: fn(&Event) -> bool| driver.events.iter().filter(|event| wanted(event)).count();
        prop_assert_eq!(count(|event| matches!(event, Event::Closed(_))), 1);
        prop_assert!(matches!(driver.events.last(), Some(Event::Closed(_))));
        let sent = 2 - driver.left_to_send as usize;
        prop_assert_eq!(count(|event| matches!(event, Event::Outcome(_))), sent);
    }
}
