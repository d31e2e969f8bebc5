//! MAIL and RCPT: addresses, parameters, order.

use postroad_smtp::server::{Notify, Ret, ServerConfig, ServerLimits};

use super::dialogue::{ENVELOPE, config, play};

/// Sends HELO, then plays the dialogue.
fn play_greeted(dialogue: &str) {
    play(config(), &format!("C: HELO client.example\nS: 250 mx.example.net\n{dialogue}"));
}

const MAIL_ACCEPTED: &str = "C: MAIL FROM:<a@example.org>
                    E: mail <a@example.org>
                    > accept
                    S: 250 2.1.0 Sender OK\n";

#[test]
fn commands_out_of_order_are_refused() {
    play(config(), "C: MAIL FROM:<a@example.org>\nS: 503 5.5.1 Say EHLO first");
    play_greeted("C: RCPT TO:<b@example.net>\nS: 503 5.5.1 Say MAIL first");
    play_greeted("C: DATA\nS: 503 5.5.1 Say MAIL first");
    play_greeted(&format!("{MAIL_ACCEPTED}C: DATA\nS: 554 5.5.1 No valid recipients"));
    play_greeted(&format!(
        "{MAIL_ACCEPTED}C: MAIL FROM:<c@example.org>\nS: 503 5.5.1 The sender was already named"
    ));
    play_greeted(&format!(
        "{MAIL_ACCEPTED}C: RSET\nS: 250 2.0.0 OK\nC: RCPT TO:<b@example.net>\nS: 503 5.5.1 Say MAIL first"
    ));
    play_greeted(&format!(
        "{MAIL_ACCEPTED}C: HELO again\nS: 250 mx.example.net\nC: DATA\nS: 503 5.5.1 Say MAIL first"
    ));
}

#[test]
fn senders_of_every_kind_are_reported() {
    for (path, reported) in [
        ("<>", "<>"),
        ("<a@example.org>", "<a@example.org>"),
        ("<\"a b>\"@example.org>", "<\"a b>\"@example.org>"),
        ("<root@localhost>", "<root@localhost> local"),
        ("<a@[192.0.2.1]>", "<a@[192.0.2.1]> local"),
    ] {
        play_greeted(&format!("C: MAIL FROM:{path}\nE: mail {reported}"));
    }
    for path in ["a@example.org", "<a>", "<a@>", "<a@example.org", "<<a@example.org>>", "<a b@example.org>"] {
        play_greeted(&format!("C: MAIL FROM:{path}\nS: 501 5.1.7 The sender's address is not valid"));
    }
}

#[test]
fn invalid_recipients_are_refused() {
    for path in [
        "<b@[192.0.2.1]>",
        "<b>",
        "<>",
        "<root@localhost>",
        "b@example.net",
        "<b@example.net",
        "<a@b@example.net>",
    ] {
        play_greeted(&format!(
            "{MAIL_ACCEPTED}C: RCPT TO:{path}\nS: 501 5.1.3 The recipient's address is not valid"
        ));
    }
    play_greeted(&format!(
        "{MAIL_ACCEPTED}C: RCPT TO:<@a.example,@b.example:c@example.net>\nS: 553 5.1.3 Source routes are not accepted"
    ));
    play_greeted(&format!("{MAIL_ACCEPTED}C: RCPT TO:<\"a@b\"@example.net>\nE: rcpt <\"a@b\"@example.net>"));
    play_greeted(&format!(
        "{MAIL_ACCEPTED}C: RCPT TO:<b@example.net>x\nS: 501 5.5.4 Syntax error in the arguments"
    ));
}

#[test]
fn utf8_addresses_need_smtputf8_in_mail() {
    let refused = "553 5.6.7 The address needs SMTPUTF8 with MAIL";
    play_greeted(&format!("C: MAIL FROM:<ä@example.org>\nS: {refused}"));
    play_greeted(&format!("{MAIL_ACCEPTED}C: RCPT TO:<ä@example.net>\nS: {refused}"));
    play_greeted(&format!("{MAIL_ACCEPTED}C: RCPT TO:<a@bücher.example>\nS: {refused}"));
    play_greeted(
        "C: MAIL FROM:<ä@example.org> SMTPUTF8
         E: mail <ä@example.org>
         > accept
         S: 250 2.1.0 Sender OK
         C: RCPT TO:<用户@例子.广告>
         E: rcpt <用户@例子.广告>",
    );
}

#[test]
fn an_announced_size_over_the_limit_is_refused_at_mail() {
    play_greeted("C: MAIL FROM:<a@example.org> SIZE=26214401\nS: 552 5.3.4 The message is too large");
    play_greeted("C: MAIL FROM:<a@example.org> SIZE=26214400\nE: mail <a@example.org>");
}

#[test]
fn parameters_reach_the_driver() {
    use postroad_smtp::server::Event;
    let mut session = play(config(), "C: HELO x\nS: 250 mx.example.net");
    session.feed(b"MAIL FROM:<a@example.org> BODY=8BITMIME RET=FULL ENVID=x+3Dy AUTH=<>\r\n");
    let Some(Event::Mail(mail)) = session.next_event() else { panic!("no event for MAIL") };
    assert_eq!((mail.is_eight_bit, mail.ret, mail.envid.as_deref()), (true, Some(Ret::Full), Some("x=y")));
    session.accept();
    session.feed(b"RCPT TO:<b@example.net> NOTIFY=NEVER ORCPT=rfc822;c@example.net\r\nDATA\r\n");
    let Some(Event::Rcpt(rcpt)) = session.next_event() else { panic!("no event for RCPT") };
    assert_eq!((rcpt.notify, rcpt.orcpt.as_deref()), (Some(Notify::NEVER), Some("rfc822;c@example.net")));
    session.accept();
    let Some(Event::Message(envelope)) = session.next_event() else { panic!("no event for DATA") };
    assert_eq!((&envelope.mail_from, &envelope.rcpt_to[..]), (&mail, &[rcpt][..]));
}

#[test]
fn refused_recipients_are_not_in_the_envelope() {
    play_greeted(&format!(
        "{MAIL_ACCEPTED}
         C: RCPT TO:<b@example.net>
         C: RCPT TO:<c@example.net>
         C: DATA
         E: rcpt <b@example.net>
         > reply 550 5.1.1 No such user
         S: 550 5.1.1 No such user
         E: rcpt <c@example.net>
         > reply 251 2.1.5 Will forward
         S: 251 2.1.5 Will forward
         S: 354 Send the message, end it with <CR><LF>.<CR><LF>
         E: message <a@example.org> to <c@example.net>"
    ));
    // Pipelined without an accepted recipient: DATA is refused, and the lines after it are commands.
    play_greeted(&format!(
        "{MAIL_ACCEPTED}
         C: RCPT TO:<b@example.net>
         C: DATA
         C: .
         E: rcpt <b@example.net>
         > reply 550 5.1.1 No such user
         S: 550 5.1.1 No such user
         S: 554 5.5.1 No valid recipients
         S: 500 5.5.1 Command not recognised"
    ));
}

#[test]
fn a_refused_sender_begins_no_message() {
    play_greeted(
        "C: MAIL FROM:<a@example.org>
         C: RCPT TO:<b@example.net>
         E: mail <a@example.org>
         > reply 554 5.7.1 The mail server has been suspended
         S: 554 5.7.1 The mail server has been suspended
         S: 503 5.5.1 Say MAIL first",
    );
}

#[test]
fn a_421_of_the_driver_ends_the_session() {
    play_greeted(
        "C: MAIL FROM:<a@example.org>
         C: NOOP
         E: mail <a@example.org>
         > reply 421 4.3.2 The service is shutting down
         S: 421 4.3.2 The service is shutting down
         E: closed by driver",
    );
}

#[test]
fn recipients_beyond_the_limit_get_452() {
    let limits = ServerLimits { recipients_max: 1, ..ServerLimits::default() };
    let dialogue = format!(
        "{ENVELOPE}
         C: RCPT TO:<c@example.net>
         S: 452 4.5.3 Too many recipients
         C: DATA
         S: 354 Send the message, end it with <CR><LF>.<CR><LF>
         E: message <a@example.org> to <b@example.net>"
    );
    play(ServerConfig { limits, ..config() }, &dialogue);
}
