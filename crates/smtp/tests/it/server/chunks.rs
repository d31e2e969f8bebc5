//! Messages by BDAT (RFC 3030).

use postroad_smtp::server::{ServerConfig, ServerLimits};

use super::dialogue::{ENVELOPE, config, play};

const MESSAGE_BEGINS: &str = "E: message <a@example.org> to <b@example.net>\n";

fn play_chunks(dialogue: &str) {
    play(config(), &format!("{ENVELOPE}{dialogue}"));
}

#[test]
fn one_chunk_is_a_message_and_dots_are_nothing_special() {
    play_chunks(&format!(
        "C: BDAT 10 LAST
         c: a\\r\\n.\\r\\n..\\r\\n\\r\\n
         C: NOOP
         {MESSAGE_BEGINS}
         E: data \"a\\r\\n.\\r\\n..\\r\\n\"
         E: end of data
         > accept
         S: 250 2.0.0 OK
         S: 500 5.5.1 Command not recognised
         S: 250 2.0.0 OK"
    ));
}

#[test]
fn chunks_are_answered_one_by_one_and_may_cut_a_line_end() {
    play_chunks(&format!(
        "C: BDAT 2
         c: a\\r
         C: BDAT 0
         C: BDAT 3
         c: \\nb.
         S: 250 2.0.0 Chunk OK
         S: 250 2.0.0 Chunk OK
         S: 250 2.0.0 Chunk OK
         {MESSAGE_BEGINS}
         E: data \"a\\r\"
         E: data \"\\nb.\"
         C: BDAT 0 LAST
         E: end of data
         > accept
         S: 250 2.0.0 OK"
    ));
}

#[test]
fn a_chunk_without_an_envelope_is_discarded() {
    play(
        config(),
        "C: HELO x
         S: 250 mx.example.net
         C: BDAT 6 LAST
         C: QUIT
         S: 503 5.5.1 Say MAIL first
         C: MAIL FROM:<a@example.org>
         E: mail <a@example.org>
         > accept
         S: 250 2.1.0 Sender OK
         C: BDAT 6
         C: QUIT
         S: 554 5.5.1 No valid recipients",
    );
}

#[test]
fn between_chunks_only_rset_and_quit_end_the_message() {
    play_chunks(&format!(
        "C: BDAT 1
         c: x
         C: MAIL FROM:<c@example.org>
         C: RCPT TO:<c@example.net>
         C: DATA
         C: NOOP
         C: RSET
         S: 250 2.0.0 Chunk OK
         S: 503 5.5.1 The message has already begun with BDAT
         S: 503 5.5.1 The message has already begun with BDAT
         S: 503 5.5.1 The message has already begun with BDAT
         S: 250 2.0.0 OK
         S: 250 2.0.0 OK
         {MESSAGE_BEGINS}
         E: data \"x\"
         E: abandoned
         C: QUIT
         S: 221 2.0.0 Bye
         E: closed"
    ));
    play_chunks(&format!(
        "C: BDAT 1\nc: x\nC: QUIT\nS: 250 2.0.0 Chunk OK\nS: 221 2.0.0 Bye\n{MESSAGE_BEGINS}E: data \"x\"\nE: abandoned\nE: closed"
    ));
}

#[test]
fn bare_newlines_are_refused_in_chunks_too() {
    let refused = "550 5.6.0 The message holds a CR or LF that is not part of a CRLF";
    for text in ["a\\nb", "a\\rb", "ab\\r", "\\r\\r\\n", "\\nab"] {
        play_chunks(&format!(
            "C: BDAT 3 LAST\nc: {text}\nS: {refused}\n{MESSAGE_BEGINS}{}",
            expected_drop_events(text)
        ));
    }
    play_chunks(&format!(
        "C: BDAT 2
         c: a\\r
         C: BDAT 1
         c: b
         C: BDAT 5 LAST
         c: QUIT\\r
         C: MAIL FROM:<c@example.org>
         S: 250 2.0.0 Chunk OK
         S: {refused}
         S: {refused}
         {MESSAGE_BEGINS}
         E: data \"a\\r\"
         E: dropped BareNewline
         E: mail <c@example.org>"
    ));
}

/// Events of a refused chunk. A CR at its very end is passed on first: only the end of the message shows that it is
/// bare.
fn expected_drop_events(text: &str) -> String {
    let before = if text == "ab\\r" { "E: data \"ab\\r\"\n" } else { "" };
    format!("{before}E: dropped BareNewline")
}

#[test]
fn a_chunk_beyond_the_size_limit_is_discarded() {
    let limits = ServerLimits { message_bytes_max: 6, ..ServerLimits::default() };
    let dialogue = format!(
        "{ENVELOPE}
         C: BDAT 4
         c: 1234
         S: 250 2.0.0 Chunk OK
         {MESSAGE_BEGINS}
         E: data \"1234\"
         C: BDAT 3
         E: dropped TooLarge
         c: 567
         S: 552 5.3.4 The message is too large
         C: BDAT 18446744073709551615
         -- the chunk does not end in this test
         C: QUIT
         -- so QUIT is part of the chunk"
    );
    play(ServerConfig { limits, ..config() }, &dialogue);
}

#[test]
fn a_chunk_of_unknown_size_ends_the_session() {
    for size in ["", "-1", "x", "1 FIRST", "18446744073709551616"] {
        play_chunks(&format!(
            "C: BDAT {size}
             C: QUIT
             S: 501 5.5.4 The size of the chunk cannot be read, closing the connection
             E: closed for BadChunkSize"
        ));
    }
}
