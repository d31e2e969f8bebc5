//! The server session behaves the same however the client's bytes are cut, and reports only whole messages on any
//! bytes.

use std::sync::Arc;

use bytes::BytesMut;
use postroad_smtp::Reply;
use postroad_smtp::server::{AuthPolicy, BareLf, Event, ServerConfig, ServerLimits, ServerSession};
use proptest::prelude::*;

use super::dialogue::config;

/// Configuration with all features and low limits.
fn low_limits_config(bare_lf: BareLf) -> ServerConfig {
    let limits = ServerLimits {
        message_bytes_max: 60,
        recipients_max: 2,
        command_bytes_max: 64,
        text_line_bytes_max: 30,
        errors_max: 8,
        commands_max: 40,
        bad_credentials_max: 2,
        ..ServerLimits::default()
    };
    ServerConfig { starttls: true, auth: AuthPolicy::Anywhere, limits, bare_lf, ..config() }
}

/// Returns output and events. The data of a message is joined into one event; data of an unfinished message is
/// left out.
fn play(input: &[u8], cuts: &[usize], bare_lf: BareLf) -> (String, Vec<Event>) {
    let mut session = ServerSession::new(Arc::new(low_limits_config(bare_lf)));
    let (mut output, mut events) = (Vec::new(), Vec::new());
    let mut data = BytesMut::new();
    let mut rest = input;
    for cut in cuts.iter().cycle() {
        let (piece, after) = rest.split_at((*cut).min(rest.len()));
        rest = after;
        session.feed(piece);
        while let Some(event) = session.next_event() {
            match &event {
                Event::StartTls => {
                    // The session discards what was pipelined after STARTTLS; drop the unfed rest too, so that every
                    // cut loses the same bytes.
                    rest = &[];
                    session.tls_established();
                }
                Event::Rcpt(rcpt) if rcpt.address.local_part() == "no" => {
                    session.reply(Reply::new(550, vec!["5.1.1 no".to_owned()]));
                }
                Event::Auth(login) if login.password != "secret" => {
                    session.reply(Reply::new(535, vec!["5.7.8 no".to_owned()]));
                }
                Event::Data(bytes) => {
                    data.extend_from_slice(bytes);
                    continue;
                }
                Event::Dropped(_) | Event::Abandoned | Event::Closed(_) => data.clear(),
                Event::EndOfData => {
                    events.push(Event::Data(data.split().freeze()));
                    session.accept();
                }
                _ => session.accept(),
            }
            events.push(event);
        }
        output.extend_from_slice(&session.take_output());
        if rest.is_empty() {
            break;
        }
    }
    (String::from_utf8(output).unwrap(), events)
}

fn inputs() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop::sample::select(vec![
        "EHLO x\r\n",
        "HELO x\r\n",
        "STARTTLS\r\n",
        "AUTH PLAIN AGtleQBzZWNyZXQ=\r\n",
        "AUTH PLAIN AGtleQBndWVzcw==\r\n",
        "AUTH LOGIN\r\n",
        "a2V5\r\n",
        "MAIL FROM:<a@example.org>\r\n",
        "MAIL FROM:<a@example.org> SIZE=61\r\n",
        "RCPT TO:<b@example.net>\r\n",
        "RCPT TO:<no@example.net>\r\n",
        "DATA\r\n",
        "some text\r\n",
        "..dots\r\n",
        ".\r\n",
        "\r\n.\r\n",
        "BDAT 5\r\n12345",
        "BDAT 9 LAST\r\nQUIT\r\nabc",
        "BDAT 3 LAST\r\nab\r",
        "BDAT 70\r\n",
        "RSET\r\n",
        "NOOP\r\n",
        "FROB\r\n",
        "a line that is longer than the thirty bytes\r\n",
        "a line that is longer than any command can be, by far, here and anywhere\r\n",
        "\n",
        "\r",
        "\u{0}",
        ".",
    ]);
    let envelope = "HELO x\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\n";
    prop_oneof![
        12 => lines.prop_map(|text| text.as_bytes().to_vec()),
        3 => Just(envelope.as_bytes().to_vec()),
        3 => Just([envelope, "DATA\r\n"].concat().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_cut_gives_the_same_output_and_events(
        pieces in prop::collection::vec(inputs(), 0..25),
        cuts in prop::collection::vec(1usize..20, 1..5),
    ) {
        let input = pieces.concat();
        for bare_lf in [BareLf::Refused, BareLf::Normalised] {
            let whole = play(&input, &[usize::MAX], bare_lf);
            prop_assert_eq!(&play(&input, &cuts, bare_lf), &whole);
            prop_assert_eq!(&play(&input, &[1], bare_lf), &whole);
        }
    }

    #[test]
    fn messages_are_whole_and_clean(
        pieces in prop::collection::vec(inputs(), 0..25),
        bare_lf in prop::sample::select(vec![BareLf::Refused, BareLf::Normalised]),
    ) {
        let (_, events) = play(&pieces.concat(), &[usize::MAX], bare_lf);
        let mut is_begun = false;
        for event in &events {
            match event {
                Event::Message(envelope) => {
                    prop_assert!(!is_begun && (1..=2).contains(&envelope.rcpt_to.len()));
                    is_begun = true;
                }
                Event::Data(bytes) => {
                    let text = String::from_utf8_lossy(bytes).replace("\r\n", "");
                    prop_assert!(bytes.len() <= 60 && !text.contains(['\r', '\n', '\0']));
                }
                Event::EndOfData | Event::Dropped(_) | Event::Abandoned => {
                    prop_assert!(is_begun);
                    is_begun = false;
                }
                _ => {}
            }
        }
        let closings = events.iter().filter(|event| matches!(event, Event::Closed(_))).count();
        prop_assert!(closings == 0 || matches!((closings, events.last()), (1, Some(Event::Closed(_)))));
    }
}
