//! Messages by DATA.

use postroad_smtp::server::{ServerConfig, ServerLimits};

use super::dialogue::{ENVELOPE, config, play};

const DATA_ACCEPTED: &str = "C: DATA
                  S: 354 Send the message, end it with <CR><LF>.<CR><LF>
                  E: message <a@example.org> to <b@example.net>\n";

fn play_data(config: ServerConfig, dialogue: &str) {
    play(config, &format!("{ENVELOPE}{DATA_ACCEPTED}{dialogue}"));
}

#[test]
fn a_message_is_passed_to_the_driver_which_decides_at_its_end() {
    play_data(
        config(),
        "C: Subject: hi
         C:
         C: ..dot
         C: ...
         E: data \"Subject: hi\\r\\n\\r\\n.dot\\r\\n..\\r\\n\"
         C: end
         C: .
         C: NOOP
         E: data \"end\\r\\n\"
         E: end of data
         > reply 250 2.0.0 OK queued as abc
         S: 250 2.0.0 OK queued as abc
         S: 250 2.0.0 OK
         C: RCPT TO:<c@example.net>
         S: 503 5.5.1 Say MAIL first",
    );
}

#[test]
fn a_refused_message_leaves_the_session_ready_for_the_next_message() {
    play_data(
        config(),
        "C: .
         E: end of data
         > reply 451 4.3.0 Later
         S: 451 4.3.0 Later
         C: MAIL FROM:<c@example.org>
         E: mail <c@example.org>",
    );
}

#[test]
fn a_whole_pipelined_session_is_answered_in_order() {
    play(
        config(),
        "C: HELO x
         C: MAIL FROM:<a@example.org>
         C: RCPT TO:<b@example.net>
         C: DATA
         C: one
         C: .
         C: MAIL FROM:<>
         C: QUIT
         S: 250 mx.example.net
         E: mail <a@example.org>
         > accept
         S: 250 2.1.0 Sender OK
         E: rcpt <b@example.net>
         > accept
         S: 250 2.1.5 Recipient OK
         S: 354 Send the message, end it with <CR><LF>.<CR><LF>
         E: message <a@example.org> to <b@example.net>
         E: data \"one\\r\\n\"
         E: end of data
         > accept
         S: 250 2.0.0 OK
         E: mail <>
         > accept
         S: 250 2.1.0 Sender OK
         S: 221 2.0.0 Bye
         E: closed",
    );
}

fn with_limits(limits: ServerLimits) -> ServerConfig {
    ServerConfig { limits, ..config() }
}

#[test]
fn a_message_that_is_too_large_is_discarded_to_its_end() {
    let limits = ServerLimits { message_bytes_max: 6, ..ServerLimits::default() };
    play_data(
        with_limits(limits),
        "C: 1234
         E: data \"1234\\r\\n\"
         C: 5
         E: dropped TooLarge
         C: QUIT
         C: .
         C: NOOP
         S: 552 5.3.4 The message is too large
         S: 250 2.0.0 OK",
    );
    // The final dot and stuffed dots do not count (RFC 1870 5).
    play_data(with_limits(limits), "C: ..23\nC: .\nE: data \".23\\r\\n\"\nE: end of data");
}

#[test]
fn long_lines_and_nul_bytes_are_refused() {
    let limits = ServerLimits { text_line_bytes_max: 4, ..ServerLimits::default() };
    play_data(with_limits(limits), "C: 1234\nC: .\nE: data \"1234\\r\\n\"\nE: end of data");
    play_data(
        with_limits(limits),
        "C: 12345
         C: .
         S: 550 5.6.0 The message holds a line that is too long
         E: dropped LineTooLong",
    );
    play_data(config(), "C: a\\0b\nC: .\nS: 550 5.6.0 The message holds a NUL byte\nE: dropped Nul");
    let lenient = ServerConfig { nul_refused: false, ..config() };
    play_data(lenient, "C: a\\0b\nC: .\nE: data \"a\\0b\\r\\n\"\nE: end of data");
}
