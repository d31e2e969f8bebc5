//! Messages by BDAT: in one write, in lock-step, in many chunks.

use postroad_smtp::{ClientConfig, Phase};

use super::dialogue::{config, opening_dialogue, play};

/// Plays the dialogue `rest` with a server that has offered pipelining and chunking.
fn with_chunking(rest: &str) {
    play(config(), &format!("{}{rest}", opening_dialogue("PIPELINING, CHUNKING")));
}

const ENVELOPE_AND_MESSAGE: &str = "
    > send .hi|
    C: MAIL FROM:<a@rp.example.org>
    C: RCPT TO:<bob@example.net>
    C: BDAT 5 LAST
    C: .hi
    E: finishing
";

#[test]
fn small_message_is_sent_with_its_envelope() {
    with_chunking(&format!(
        "{ENVELOPE_AND_MESSAGE}
         S: 250 ok
         S: 250 ok
         S: 250 queued
         E: accepted: 250 queued (final, after the end)
         E: ready
         {ENVELOPE_AND_MESSAGE}"
    ));
}

#[test]
fn refused_recipient_is_the_outcome_whatever_the_reply_to_bdat() {
    with_chunking(&format!(
        "{ENVELOPE_AND_MESSAGE}
         S: 250 ok
         S: 550 5.1.1 no such user
         E: refused: 550 5.1.1 no such user (rcpt_to, after the end)
         S: 503 5.5.1 no recipients
         C: RSET
         S: 250 ok
         E: ready
         {ENVELOPE_AND_MESSAGE}
         S: 250 ok
         S: 450 4.2.1 busy
         S: 250 took it for nobody
         E: refused: 450 4.2.1 busy (rcpt_to, after the end)
         E: ready"
    ));
}

#[test]
fn refused_sender_of_a_message_sent_with_its_envelope_needs_rset() {
    with_chunking(&format!(
        "{ENVELOPE_AND_MESSAGE}
         S: 451 4.7.1 later
         S: 503 need MAIL
         S: 503 need MAIL
         C: RSET
         E: refused: 451 4.7.1 later (mail_from, after the end)
         S: 250 ok
         E: ready"
    ));
}

#[test]
fn refused_message_sent_with_its_envelope_needs_rset() {
    with_chunking(&format!(
        "{ENVELOPE_AND_MESSAGE}
         S: 250 ok
         S: 250 ok
         S: 554 5.7.1 spam
         C: RSET
         E: refused: 554 5.7.1 spam (final, after the end)
         S: 250 ok
         E: ready"
    ));
}

#[test]
fn without_pipelining_each_command_waits_for_the_reply_before_it() {
    let dialogue = format!(
        "{}> send hi|
         C: MAIL FROM:<a@rp.example.org>
         S: 250 ok
         C: RCPT TO:<bob@example.net>
         S: 250 ok
         C: BDAT 4 LAST
         C: hi
         E: finishing
         S: 250 queued
         E: accepted: 250 queued (final, after the end)
         E: ready
         > send
         C: MAIL FROM:<a@rp.example.org>
         S: 250 ok
         C: RCPT TO:<bob@example.net>
         S: 250 ok
         C: BDAT 0 LAST
         E: finishing",
        opening_dialogue("CHUNKING")
    );
    assert_eq!(play(config(), &dialogue).phase(), Phase::Final);
}

/// Like `with_chunking`, but messages over 4 bytes follow their envelope in chunks of at most 6 bytes.
fn in_chunks(rest: &str) {
    let config = ClientConfig { with_envelope_bytes_max: 4, chunk_bytes_max: 6, ..config() };
    play(config, &format!("{}{rest}", opening_dialogue("PIPELINING, CHUNKING")));
}

#[test]
fn large_message_is_sent_in_bounded_chunks_after_the_recipient_is_accepted() {
    in_chunks(
        "> send abcd|efgh|ij|
         C: MAIL FROM:<a@rp.example.org>
         C: RCPT TO:<bob@example.net>
         S: 250 ok
         S: 250 ok
         C: BDAT 6
         C: abcd
         S: 250 6 more
         C: BDAT 6
         C: efgh
         S: 250 12 more
         C: BDAT 4 LAST
         C: ij
         E: finishing
         S: 250 queued
         E: accepted: 250 queued (final, after the end)
         E: ready",
    );
}

#[test]
fn large_message_is_not_sent_for_a_refused_recipient() {
    in_chunks(
        "> send abcd|efgh|
         C: MAIL FROM:<a@rp.example.org>
         C: RCPT TO:<bob@example.net>
         S: 250 ok
         S: 550 no such user
         C: RSET
         E: refused: 550 no such user (rcpt_to)
         S: 250 ok
         E: ready",
    );
}

#[test]
fn refused_chunk_is_the_last_one_sent() {
    in_chunks(
        "> send abcd|efgh|
         C: MAIL FROM:<a@rp.example.org>
         C: RCPT TO:<bob@example.net>
         S: 250 ok
         S: 250 ok
         C: BDAT 6
         C: abcd
         S: 452 4.3.1 disk full
         C: RSET
         E: refused: 452 4.3.1 disk full (body)
         S: 250 ok
         E: ready",
    );
}

#[test]
fn chunking_can_be_switched_off() {
    let dialogue = format!(
        "{}> send hi|
         C: MAIL FROM:<a@rp.example.org>
         C: RCPT TO:<bob@example.net>
         C: DATA",
        opening_dialogue("PIPELINING, CHUNKING")
    );
    play(ClientConfig { chunking: false, ..config() }, &dialogue);
}
