//! Banner, greetings, TLS, and simple commands. `dialogue.rs` explains the notation.

use std::sync::Arc;

use postroad_smtp::server::{AuthPolicy, Extensions, ServerConfig, ServerSession};

use super::dialogue::{config, play, play_on, submission_config};

#[test]
fn all_extensions_are_offered_and_a_second_greeting_is_accepted() {
    let session = play(
        config(),
        "C: EHLO client.example
         S: 250-mx.example.net
         S: 250-PIPELINING
         S: 250-8BITMIME
         S: 250-SMTPUTF8
         S: 250-ENHANCEDSTATUSCODES
         S: 250-CHUNKING
         S: 250-DSN
         S: 250 SIZE 26214400
         C: HELO [192.0.2.1]
         S: 250 mx.example.net",
    );
    assert_eq!(session.helo(), Some("[192.0.2.1]"));
}

/// A refused BDAT still consumes its chunk: `QUIT\r\n` is content here.
#[test]
fn nothing_is_offered_that_is_not_configured() {
    let extensions = Extensions {
        pipelining: false,
        size: false,
        eight_bit_mime: false,
        smtputf8: false,
        enhanced_status_codes: false,
        chunking: false,
        dsn: false,
    };
    play(
        ServerConfig { extensions, ..config() },
        "C: EHLO client.example
         S: 250 mx.example.net
         C: STARTTLS
         S: 502 5.5.1 Command not implemented
         C: AUTH PLAIN AGEAYg==
         S: 502 5.5.1 Command not implemented
         C: BDAT 6 LAST
         c: QUIT\\r\\n
         S: 502 5.5.1 Command not implemented
         C: MAIL FROM:<a@example.org> SIZE=1
         S: 555 5.5.4 Parameter not recognised",
    );
}

#[test]
fn tls_restarts_the_session() {
    let session = play(
        submission_config(),
        "C: EHLO client.example
         S: 250-mx.example.net
         S: 250-PIPELINING
         S: 250-8BITMIME
         S: 250-SMTPUTF8
         S: 250-ENHANCEDSTATUSCODES
         S: 250-CHUNKING
         S: 250-DSN
         S: 250-STARTTLS
         S: 250 SIZE 26214400
         C: MAIL FROM:<a@example.org>
         S: 530 5.7.0 Must issue a STARTTLS command first
         C: STARTTLS
         S: 220 2.0.0 Ready to start TLS
         E: start tls
         > tls
         C: MAIL FROM:<a@example.org>
         S: 503 5.5.1 Say EHLO first
         C: EHLO client.example
         S: 250-mx.example.net
         S: 250-PIPELINING
         S: 250-8BITMIME
         S: 250-SMTPUTF8
         S: 250-ENHANCEDSTATUSCODES
         S: 250-CHUNKING
         S: 250-DSN
         S: 250-AUTH PLAIN LOGIN
         S: 250 SIZE 26214400
         C: STARTTLS
         S: 503 5.5.1 TLS is already on",
    );
    assert!(session.is_encrypted());
}

/// CVE-2011-0411: a man in the middle injects commands after the client's STARTTLS.
#[test]
fn plaintext_after_starttls_is_never_run() {
    let config = ServerConfig { tls_required: false, auth_required: false, ..submission_config() };
    play(
        config,
        "C: HELO client.example
         S: 250 mx.example.net
         C: MAIL FROM:<victim@example.org>
         E: mail <victim@example.org>
         > accept
         S: 250 2.1.0 Sender OK
         C: STARTTLS
         C: EHLO attacker.example
         C: RCPT TO:<attacker@example.org>
         c: DATA
         S: 220 2.0.0 Ready to start TLS
         E: start tls
         c: \\r\\nQUIT\\r\\n
         -- input before the handshake is discarded
         > tls
         C: RSET
         S: 250 2.0.0 OK
         C: RCPT TO:<attacker@example.org>
         S: 503 5.5.1 Say MAIL first
         C: MAIL FROM:<victim@example.org>
         S: 503 5.5.1 Say EHLO first",
    );
}

#[test]
fn a_session_inside_tls_offers_auth_at_once() {
    let mut session = ServerSession::inside_tls(Arc::new(submission_config()));
    assert!(session.take_output().starts_with(b"220 "));
    let mut session = play_on(session, "-- nothing is said");
    session.feed(b"EHLO x\r\n");
    let offers = String::from_utf8(session.take_output()).unwrap();
    assert!(offers.contains("AUTH PLAIN LOGIN") && !offers.contains("STARTTLS"), "{offers}");
}

#[test]
fn auth_may_be_allowed_without_tls() {
    play(
        ServerConfig { auth: AuthPolicy::Anywhere, ..config() },
        "C: HELO client.example
         S: 250 mx.example.net
         C: AUTH PLAIN AGEAYg==
         E: auth a b
         > accept
         S: 235 2.7.0 Authentication succeeded",
    );
}

#[test]
fn commands_outside_a_transaction_are_answered() {
    play(
        config(),
        "C: NOOP hello there
         S: 250 2.0.0 OK
         C: VRFY somebody
         S: 252 2.0.0 Cannot verify the user, but will take a message and try
         C: HELP
         S: 214 2.0.0 EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA, BDAT, RSET, NOOP, QUIT; see RFC 5321
         C: EXPN list
         S: 502 5.5.1 Command not implemented
         C: XYZZY
         S: 500 5.5.1 Command not recognised
         C: rset
         S: 250 2.0.0 OK
         C: QUIT
         C: NOOP
         S: 221 2.0.0 Bye
         E: closed",
    );
}

#[test]
fn malformed_command_lines_are_refused_one_by_one() {
    play(
        config(),
        "c: NOOP\\n
         S: 500 5.5.2 A line ends with CRLF, and holds no other CR or LF
         C: NOOP\\rNOOP
         S: 500 5.5.2 A line ends with CRLF, and holds no other CR or LF
         C: NO\\0OP
         S: 500 5.5.2 A command is UTF-8 text without control characters
         C: NOOP
         S: 250 2.0.0 OK",
    );
}

#[test]
fn an_http_request_ends_the_session_before_its_body() {
    play(
        config(),
        "C: POST / HTTP/1.1
         C: Host: mx.example.net
         C:
         C: EHLO attacker
         S: 421 4.7.0 This is not a web server, closing the connection
         E: closed for NotSmtp",
    );
}

#[test]
fn the_driver_may_end_the_session_at_any_time() {
    let mut session = play(
        config(),
        "C: HELO client.example
         S: 250 mx.example.net
         C: MAIL FROM:<a@example.org>
         E: mail <a@example.org>
         > idle
         S: 421 4.4.2 Idle for too long, closing the connection
         E: closed by driver
         > accept
         > idle
         -- nothing more is said",
    );
    assert!(!session.wants_input());
    session.feed(b"QUIT\r\n");
    assert!(session.take_output().is_empty() && session.next_event().is_none());
}
