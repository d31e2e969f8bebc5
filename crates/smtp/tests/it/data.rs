//! Messages by DATA: lock-step and pipelined, with every refusal.

use postroad_smtp::{ClientConfig, Phase, SendError};

use super::dialogue::{config, message, opening_dialogue, play};

fn lock_step(rest: &str) {
    play(config(), &format!("{}{rest}", opening_dialogue("8BITMIME, SMTPUTF8")));
}

fn pipelined(rest: &str) {
    play(config(), &format!("{}{rest}", opening_dialogue("PIPELINING, SIZE 2000")));
}

#[test]
fn lock_step_message_waits_for_every_reply() {
    lock_step(
        "> send Subject: hi||.a dot|
         C: MAIL FROM:<a@rp.example.org>
         S: 250 2.1.0 sender ok
         C: RCPT TO:<bob@example.net>
         S: 250 2.1.5 recipient ok
         C: DATA
         S: 354 go ahead
         C: Subject: hi
         C:
         C: ..a dot
         C: .
         E: finishing
         S: 250 2.0.0 queued as 7
         E: accepted: 250 2.0.0 queued as 7 (final, after the end)
         E: ready",
    );
}

#[test]
fn pipelined_envelope_is_one_group_and_the_body_waits_for_354() {
    pipelined(
        "> send hi|
         C: MAIL FROM:<a@rp.example.org> SIZE=4
         C: RCPT TO:<bob@example.net>
         C: DATA
         S: 250 ok
         --
         S: 250 ok
         S: 354 go ahead
         C: hi
         C: .
         E: finishing
         S: 250 queued
         E: accepted: 250 queued (final, after the end)
         E: ready
         > send second|
         C: MAIL FROM:<a@rp.example.org> SIZE=8
         C: RCPT TO:<bob@example.net>
         C: DATA",
    );
}

#[test]
fn refusals_in_lock_step_leave_a_clean_session() {
    lock_step(
        "> send hi|
         C: MAIL FROM:<a@rp.example.org>
         S: 451 4.7.1 later
         E: refused: 451 4.7.1 later (mail_from)
         E: ready
         > send hi|
         C: MAIL FROM:<a@rp.example.org>
         S: 250 ok
         C: RCPT TO:<bob@example.net>
         S: 550-5.1.1 no such
         S: 550 5.1.1 user
         C: RSET
         E: refused: 550 5.1.1 no such 5.1.1 user (rcpt_to)
         S: 250 flushed
         E: ready
         > send hi|
         C: MAIL FROM:<a@rp.example.org>
         S: 250 ok
         C: RCPT TO:<bob@example.net>
         S: 251 will forward
         C: DATA
         S: 554 5.5.1 not now
         C: RSET
         E: refused: 554 5.5.1 not now (data)
         S: 250 flushed
         E: ready
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
         S: 554 5.7.1 spam
         E: refused: 554 5.7.1 spam (final, after the end)
         E: ready",
    );
}

#[test]
fn refused_recipient_and_data_in_a_pipelined_group_need_rset() {
    pipelined(
        "> send hi|
         C: MAIL FROM:<a@rp.example.org> SIZE=4
         C: RCPT TO:<bob@example.net>
         C: DATA
         S: 250 ok
         S: 550 5.1.1 no such user
         E: refused: 550 5.1.1 no such user (rcpt_to)
         S: 503 5.5.1 no recipients
         C: RSET
         S: 250 ok
         E: ready",
    );
}

#[test]
fn pipelined_data_accepted_after_a_refused_recipient_is_ended_by_a_lone_dot() {
    // RFC 2920 3.1: the recipient's refusal is the outcome, whatever the server replies to the empty message.
    for last in ["554 no valid recipients", "250 took nothing"] {
        pipelined(&format!(
            "> send hi|
             C: MAIL FROM:<a@rp.example.org> SIZE=4
             C: RCPT TO:<bob@example.net>
             C: DATA
             S: 250 ok
             S: 550 5.1.1 no such user
             S: 354 go ahead
             C: .
             E: refused: 550 5.1.1 no such user (rcpt_to)
             S: {last}
             E: ready"
        ));
    }
}

#[test]
fn refused_sender_of_a_pipelined_group_is_the_outcome() {
    pipelined(
        "> send hi|
         C: MAIL FROM:<a@rp.example.org> SIZE=4
         C: RCPT TO:<bob@example.net>
         C: DATA
         S: 550 5.7.1 sender refused
         S: 503 need MAIL
         S: 503 need MAIL
         C: RSET
         E: refused: 550 5.7.1 sender refused (mail_from)
         S: 250 ok
         E: ready",
    );
}

#[test]
fn envelope_parameters_are_sent_if_needed_and_offered() {
    lock_step("> send Grüße|\nC: MAIL FROM:<a@rp.example.org> BODY=8BITMIME");
    lock_step(
        "> send-to jürgen@bücher.example hi|\nC: MAIL FROM:<a@rp.example.org> SMTPUTF8\nS: 250 ok\nC: RCPT TO:<jürgen@xn--bcher-kva.example>",
    );
    lock_step("> bounce hi|\nC: MAIL FROM:<>");
    pipelined("> send Grüße|\nC: MAIL FROM:<a@rp.example.org> SIZE=9\nC: RCPT TO:<bob@example.net>\nC: DATA");
}

#[test]
fn messages_that_the_host_cannot_accept_are_not_sent() {
    let mut config = config();
    config.pipelining = false;
    let session = play(
        config,
        &format!(
            "{}> send-to jürgen@example.net hi|
             E: no SMTPUTF8 (ready)
             E: ready
             > send hello|
             E: too large: 7 of 6 (ready)
             E: ready
             > send four|
             C: MAIL FROM:<a@rp.example.org> SIZE=6",
            opening_dialogue("PIPELINING, SIZE 6")
        ),
    );
    assert_eq!(session.messages_tried(), 1);
}

#[test]
fn message_without_a_last_newline_gets_one_and_an_empty_message_is_only_a_dot() {
    let up_to_354 = "C: MAIL FROM:<a@rp.example.org>
         S: 250 ok
         C: RCPT TO:<bob@example.net>
         S: 250 ok
         C: DATA
         S: 354 go";
    lock_step(&format!("> send a|b\n{up_to_354}\nC: a\nC: b\nC: .\nE: finishing"));
    lock_step(&format!("> send\n{up_to_354}\nC: .\nE: finishing"));
}

#[test]
fn mailmax_of_the_server_is_respected() {
    let mut session = play(
        ClientConfig { pipelining: false, ..config() },
        &format!(
            "{}> send hi|
             C: MAIL FROM:<a@rp.example.org>
             S: 450 later
             E: refused: 450 later (mail_from)
             E: ready",
            opening_dialogue("LIMITS MAILMAX=1")
        ),
    );
    assert_eq!(session.send(message("bob@example.net", "hi|")), Err(SendError::LimitReached));
    assert_eq!(session.phase(), Phase::Ready);
    assert_eq!((session.messages_tried(), session.messages_accepted()), (1, 0));
}

#[test]
fn transcript_shows_sizes_instead_of_contents() {
    let mut session = play(
        config(),
        &format!(
            "{}> send secret words|
             C: MAIL FROM:<a@rp.example.org>
             S: 250 ok
             C: RCPT TO:<bob@example.net>
             S: 250 ok
             C: DATA
             S: 354 go
             C: secret words
             C: .
             E: finishing",
            opening_dialogue("")
        ),
    );
    let transcript = session.take_transcript();
    assert_eq!(
        transcript.lines().skip(3).collect::<Vec<_>>(),
        [
            "C: MAIL FROM:<a@rp.example.org>",
            "S: 250 ok",
            "C: RCPT TO:<bob@example.net>",
            "S: 250 ok",
            "C: DATA",
            "S: 354 go",
            "C: [14 bytes of the message]",
            "C: .",
        ]
    );
}
