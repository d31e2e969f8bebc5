//! 421, dropped connections and invalid replies at every point, and QUIT.

use postroad_smtp::{ClientSession, EndCause, Event, Outcome, Phase, SendError, Verdict};

use super::dialogue::{config, drain, message, opening_dialogue, play};

const UP_TO_FINISHING: &str = "
    > send hi|
    C: MAIL FROM:<a@rp.example.org>
    S: 250 ok
    C: RCPT TO:<bob@example.net>
    S: 250 ok
    C: DATA
    S: 354 go
    C: hi
    C: .
    E: finishing
";

/// Lock-step dialogue up to and including the first client line that ends in `line_end`: `net>` means the RCPT line.
fn dialogue_up_to(line_end: &str) -> String {
    let end = UP_TO_FINISHING.find(line_end).unwrap() + line_end.len();
    format!("{}{}\n", opening_dialogue(""), &UP_TO_FINISHING[..end])
}

#[test]
fn quit_closes_the_session_with_or_without_a_reply() {
    for reaction in ["S: 221 bye", "S: 421 bye", "> drop", "> timeout"] {
        let dialogue = format!("{}> quit\nC: QUIT\n{reaction}\nE: closed: quit", opening_dialogue(""));
        play(config(), &dialogue);
    }
}

#[test]
fn outcome_of_a_lost_connection_says_whether_the_end_of_the_message_was_sent() {
    for (line, phase) in
        [("MAIL FROM:<a@rp.example.org>", "mail_from"), ("net>", "rcpt_to"), ("DATA", "data")]
    {
        for (action, cause) in [("drop", "EndOfStream"), ("timeout", "TimedOut")] {
            let end = format!("> {action}\nE: interrupted ({phase})\nE: closed: {cause} ({phase})");
            play(config(), &format!("{}{end}", dialogue_up_to(line)));
        }
    }
    let end = "> drop\nE: interrupted (final, after the end)\nE: closed: EndOfStream (final)";
    play(config(), &format!("{}{UP_TO_FINISHING}{end}", opening_dialogue("")));
}

#[test]
fn reply_421_in_any_phase_is_the_outcome_and_closes_the_session() {
    for (line, phase) in
        [("MAIL FROM:<a@rp.example.org>", "mail_from"), ("net>", "rcpt_to"), ("DATA", "data")]
    {
        let end = format!(
            "S: 421 4.3.2 shutting down
             E: refused: 421 4.3.2 shutting down ({phase})
             E: closed by server: 421 4.3.2 shutting down ({phase})"
        );
        play(config(), &format!("{}{end}", dialogue_up_to(line)));
    }
    let end =
        "S: 421 later\nE: refused: 421 later (final, after the end)\nE: closed by server: 421 later (final)";
    play(config(), &format!("{}{UP_TO_FINISHING}{end}", opening_dialogue("")));
    let end = "S: 421 idle too long\nE: closed by server: 421 idle too long (ready)";
    play(config(), &format!("{}{end}", opening_dialogue("")));
}

#[test]
fn message_sent_with_its_envelope_to_a_closing_server_gets_its_outcome() {
    let message = "> send hi|
         C: MAIL FROM:<a@rp.example.org>
         C: RCPT TO:<bob@example.net>
         C: BDAT 4 LAST
         C: hi
         E: finishing";
    let open = opening_dialogue("PIPELINING, CHUNKING");
    let end = "S: 421 idle\nE: refused: 421 idle (mail_from, after the end)\nE: closed by server: 421 idle (mail_from)";
    play(config(), &format!("{open}{message}\n{end}"));
    let end = "S: 250 ok\n> drop\nE: interrupted (rcpt_to, after the end)\nE: closed: EndOfStream (rcpt_to)";
    play(config(), &format!("{open}{message}\n{end}"));
}

#[test]
fn invalid_reply_in_a_transaction_interrupts_it() {
    let cases = [
        ("DATA", "250 what?", "interrupted (data)", "250 is not a valid reply to the command (data)"),
        ("net>", "354 go", "interrupted (rcpt_to)", "354 is not a valid reply to the command (rcpt_to)"),
        ("DATA", "gibberish", "interrupted (data)", "this is not a reply: \"gibberish\" (data)"),
    ];
    for (line, reply, outcome, closed) in cases {
        let end = format!("S: {reply}\nE: {outcome}\nE: closed: {closed}");
        play(config(), &format!("{}{end}", dialogue_up_to(line)));
    }
    let end = "S: 354 more?\nE: interrupted (final, after the end)\nE: closed: 354 is not a valid reply to the command (final)";
    play(config(), &format!("{}{UP_TO_FINISHING}{end}", opening_dialogue("")));
}

#[test]
fn unexpected_reply_between_messages_closes_the_session() {
    let end = "S: 250 hello?\nE: closed: the server sent 250 without a command (ready)";
    play(config(), &format!("{}{end}", opening_dialogue("")));
}

#[test]
fn refused_rset_closes_the_session() {
    let end = "S: 550 no such user
         C: RSET
         E: refused: 550 no such user (rcpt_to)
         S: 500 what?
         C: QUIT
         E: closed, refused: 500 what? (rset)";
    play(config(), &format!("{}{end}", dialogue_up_to("net>")));
}

/// Session after 354, with a message of 3,002 bytes of which nothing was handed out.
fn session_in_body() -> ClientSession {
    let mut session = play(config(), &opening_dialogue(""));
    session.send(message("bob@example.net", &format!("{}|", "x".repeat(3_000)))).unwrap();
    for reply in ["250 ok\r\n", "250 ok\r\n", "354 go\r\n"] {
        drain(&mut session);
        session.feed(reply.as_bytes());
    }
    assert_eq!(session.phase(), Phase::Body);
    session
}

fn take_outcome(session: &mut ClientSession) -> Outcome {
    let outcomes = std::iter::from_fn(|| session.next_event());
    let mut outcomes = outcomes.filter_map(|event| match event {
        Event::Outcome(outcome) => Some(outcome),
        _ => None,
    });
    outcomes.next().unwrap()
}

#[test]
fn refusal_in_the_middle_of_the_body_is_kept_and_no_dot_follows() {
    let mut session = session_in_body();
    let mut out = Vec::new();
    assert_eq!(session.fill_output(&mut out, 1_000), 1_000);
    session.feed(b"552 5.3.4 too big\r\n");
    let result = take_outcome(&mut session);
    assert!(matches!(&result.verdict, Verdict::Refused(reply) if reply.code == 552), "{result:?}");
    assert_eq!((result.phase, result.after_last_byte), (Phase::Body, false));
    assert_eq!(session.phase(), Phase::Closed);
    assert_eq!(session.fill_output(&mut out, 10_000), 0);
}

#[test]
fn last_bytes_of_a_message_wait_until_the_driver_takes_the_finishing_event() {
    let mut session = session_in_body();
    let mut out = Vec::new();
    session.fill_output(&mut out, 100_000);
    assert!(out.ends_with(b"x\r\n"), "the dot is held back");
    assert_eq!(session.fill_output(&mut out, 100_000), 0, "the dot is still held back");

    // If the connection is lost now, the server cannot have accepted the message: its end was not sent, and the event
    // is withdrawn.
    let mut lost = session_in_body();
    lost.fill_output(&mut Vec::new(), 100_000);
    lost.connection_ended(EndCause::Io);
    assert!(!take_outcome(&mut lost).is_possible_duplicate());

    assert_eq!(session.next_event(), Some(Event::Finishing));
    assert_eq!(session.phase(), Phase::Body);
    assert_eq!(session.fill_output(&mut out, 2), 2, "part of the final dot line");
    session.fill_output(&mut out, 100);
    assert!(out.ends_with(b"\r\n.\r\n"));
    assert_eq!(session.phase(), Phase::Final);
    session.connection_ended(EndCause::TimedOut);
    let result = take_outcome(&mut session);
    assert!(result.is_possible_duplicate(), "{result:?}");
}

#[test]
fn session_that_is_not_ready_takes_no_message_and_no_quit() {
    let mut session = ClientSession::new(config());
    assert_eq!(session.send(message("bob@example.net", "hi|")), Err(SendError::NotReady));
    assert_eq!(session.quit(), Err(SendError::NotReady));
    session.connection_ended(EndCause::Stopped);
    session.feed(b"220 too late\r\n");
    session.tls_established();
    assert_eq!(session.phase(), Phase::Closed);
    assert_eq!(drain(&mut session).1.len(), 1);
}
