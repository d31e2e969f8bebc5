//! Limits on everything that grows.

use postroad_smtp::server::{Closed, Event, ServerConfig, ServerLimits, StandardReply};

use super::dialogue::{config, play};

fn with_limits(limits: ServerLimits) -> ServerConfig {
    ServerConfig { limits, ..config() }
}

#[test]
fn too_many_errors_end_the_session() {
    play(
        with_limits(ServerLimits { errors_max: 2, ..ServerLimits::default() }),
        "C: FROB
         C: NOOP
         C: EHLO
         C: RCPT TO:<x>
         C: QUIT
         S: 500 5.5.1 Command not recognised
         S: 250 2.0.0 OK
         S: 501 5.5.4 Syntax error in the arguments
         S: 501 5.1.3 The recipient's address is not valid
         S: 421 4.7.0 Too many errors, closing the connection
         E: closed for TooManyErrors",
    );
}

#[test]
fn refusals_by_the_driver_do_not_count_as_errors() {
    let limits = ServerLimits { errors_max: 0, ..ServerLimits::default() };
    let refused = "C: MAIL FROM:<a@example.org>
                   E: mail <a@example.org>
                   > reply 550 5.7.1 No
                   S: 550 5.7.1 No\n";
    play(with_limits(limits), &format!("C: HELO x\nS: 250 mx.example.net\n{}", refused.repeat(5)));
}

#[test]
fn too_many_commands_end_the_session() {
    play(
        with_limits(ServerLimits { commands_max: 2, ..ServerLimits::default() }),
        "C: NOOP
         C: NOOP
         C: NOOP
         C: NOOP
         S: 250 2.0.0 OK
         S: 250 2.0.0 OK
         S: 421 4.7.0 Too many commands, closing the connection
         E: closed for TooManyCommands",
    );
}

#[test]
fn a_long_lived_client_is_not_closed_after_many_good_messages() {
    let limits = ServerLimits { commands_max: 6, errors_max: 1, ..ServerLimits::default() };
    let message = "C: MAIL FROM:<a@example.org>
                   E: mail <a@example.org>
                   > accept
                   S: 250 2.1.0 Sender OK
                   C: RCPT TO:<b@example.net>
                   E: rcpt <b@example.net>
                   > accept
                   S: 250 2.1.5 Recipient OK
                   C: RCPT TO:<not an address>
                   S: 501 5.1.3 The recipient's address is not valid
                   C: DATA
                   S: 354 Send the message, end it with <CR><LF>.<CR><LF>
                   E: message <a@example.org> to <b@example.net>
                   C: .
                   E: end of data
                   > accept
                   S: 250 2.0.0 OK
                   C: RSET
                   S: 250 2.0.0 OK\n";
    // With the RSET after the last message, these are the six commands that may come without another message.
    let unfinished = "C: NOOP\nS: 250 2.0.0 OK\n".repeat(5);
    let end = "C: NOOP
               S: 421 4.7.0 Too many commands, closing the connection
               E: closed for TooManyCommands";
    play(
        with_limits(limits),
        &format!("C: HELO x\nS: 250 mx.example.net\n{}{unfinished}{end}", message.repeat(20)),
    );
}

#[test]
fn long_command_lines_are_refused() {
    let long = format!("NOOP {}", "x".repeat(2_048));
    play(config(), &format!("C: {long}\nS: 500 5.5.2 Line too long\nC: NOOP\nS: 250 2.0.0 OK"));
    let fitting = format!("NOOP {}", "x".repeat(2_041));
    play(config(), &format!("C: {fitting}\nS: 250 2.0.0 OK"));
}

#[test]
fn input_that_waits_for_the_decision_of_the_driver_is_bounded() {
    let mut session = play(config(), "C: HELO x\nS: 250 mx.example.net\nC: MAIL FROM:<>\nE: mail <>");
    assert!(!session.wants_input());
    let megabyte = b"NOOP\r\n".repeat(174_762);
    session.feed(&megabyte);
    assert_eq!((session.take_output(), session.next_event()), (Vec::new(), None));
    session.feed(b"NOOP\r\n");
    let cause = StandardReply::TooMuchAhead;
    assert_eq!(session.next_event(), Some(Event::Closed(Closed::ForCause(cause))));
    assert!(session.take_output().starts_with(b"421 4.7.0 "));
}

#[test]
fn long_replies_of_the_driver_are_cut_and_line_ends_in_them_become_spaces() {
    let text = "x".repeat(600);
    let cut = "x".repeat(506);
    play(
        config(),
        &format!(
            "C: HELO x
             S: 250 mx.example.net
             C: MAIL FROM:<>
             E: mail <>
             > reply 550 {text}
             S: 550 {cut}"
        ),
    );
    let mut session = play(config(), "C: HELO x\nS: 250 mx.example.net\nC: MAIL FROM:<>\nE: mail <>");
    session.reply(postroad_smtp::Reply::new(550, vec!["a\r\n250 b".to_owned(), "c".to_owned()]));
    assert_eq!(session.take_output(), b"550-a  250 b\r\n550 c\r\n");
}
