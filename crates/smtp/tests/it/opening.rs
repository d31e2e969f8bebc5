//! Banner, greeting, STARTTLS and AUTH.

use postroad_smtp::{ClientConfig, Credentials, Phase, TlsMode};

use super::dialogue::{config, opening_dialogue, play};

fn with_tls(tls: TlsMode) -> ClientConfig {
    ClientConfig { tls, ..config() }
}

fn with_password(allow_without_tls: bool) -> ClientConfig {
    let (username, password) = ("relay".to_owned(), "hunter2".to_owned());
    ClientConfig { credentials: Some(Credentials { username, password, allow_without_tls }), ..config() }
}

#[test]
fn greeting_with_extensions_makes_the_session_ready() {
    let session = play(config(), &opening_dialogue("PIPELINING, SIZE 1000, CHUNKING"));
    assert_eq!(session.phase(), Phase::Ready);
    assert!(session.capabilities().pipelining && session.capabilities().chunking);
    assert_eq!(session.capabilities().size_max, Some(1_000));
}

#[test]
fn banner_of_many_lines_is_followed_by_one_ehlo() {
    play(config(), "S: 220-mx.example.net ESMTP\nS: 220-no spam here\nS: 220 ready\nC: EHLO out.example.org");
}

#[test]
fn server_without_extensions_is_greeted_with_helo() {
    let session = play(
        config(),
        "S: 220 old.example.net
         C: EHLO out.example.org
         S: 502 5.5.1 what?
         C: HELO out.example.org
         S: 250 old.example.net
         E: ready",
    );
    assert!(!session.capabilities().pipelining);
}

#[test]
fn refused_interrupted_and_invalid_openings_close_the_session() {
    let cases = [
        "S: 554 5.7.1 go away
         C: QUIT
         E: closed, refused: 554 5.7.1 go away (banner)",
        "S: 421 too busy
         E: closed by server: 421 too busy (banner)",
        "S: 220 hi
         C: EHLO out.example.org
         S: 451 4.7.1 greylisted
         C: QUIT
         E: closed, refused: 451 4.7.1 greylisted (ehlo)",
        "S: 220 hi
         C: EHLO out.example.org
         S: 550 no
         C: HELO out.example.org
         S: 550 no again
         C: QUIT
         E: closed, refused: 550 no again (helo)",
        "S: 354 go ahead
         E: closed: 354 is not a valid reply to the command (banner)",
        "S: SSH-2.0-OpenSSH_9.2
         E: closed: this is not a reply: \"SSH-2.0-OpenSSH_9.2\" (banner)",
        "S: 220 hi
         S: 250 impatient
         E: closed: the server sent 250 without a command (ehlo)",
        "> drop
         E: closed: EndOfStream (banner)",
        "> timeout
         E: closed: TimedOut (banner)",
    ];
    for case in cases {
        assert_eq!(play(config(), case).phase(), Phase::Closed);
    }
}

const UP_TO_STARTTLS: &str = "
    S: 220 mx.example.net ESMTP
    C: EHLO out.example.org
    S: 250-mx.example.net
    S: 250-STARTTLS
    S: 250 CHUNKING
    C: STARTTLS
";

#[test]
fn starttls_is_used_and_earlier_capabilities_are_forgotten() {
    let rest = "S: 220 go
        E: start tls
        > tls
        C: EHLO out.example.org
        S: 250-mx.example.net
        S: 250 PIPELINING
        E: ready";
    let session = play(config(), &format!("{UP_TO_STARTTLS}{rest}"));
    assert!(session.is_encrypted());
    assert!(session.capabilities().pipelining && !session.capabilities().chunking);
}

#[test]
fn plaintext_after_starttls_ends_the_session() {
    let rest = "S: 220 go
        S: 250 injected
        E: closed: the server sent more after its answer to STARTTLS (tls_handshake)";
    play(config(), &format!("{UP_TO_STARTTLS}{rest}"));
    let late = "S: 220 go
        E: start tls
        S: 250 injected
        E: closed: the server sent more after its answer to STARTTLS (tls_handshake)";
    play(config(), &format!("{UP_TO_STARTTLS}{late}"));
}

#[test]
fn failed_handshake_closes_the_session() {
    let rest = "S: 220 go
        E: start tls
        > drop
        E: closed: EndOfStream (tls_handshake)";
    play(config(), &format!("{UP_TO_STARTTLS}{rest}"));
}

#[test]
fn refused_starttls_stops_only_clients_that_require_it() {
    let refused = "S: 454 4.7.0 no TLS today\n";
    play(config(), &format!("{UP_TO_STARTTLS}{refused}E: ready"));
    let rest = format!("{refused}C: QUIT\nE: closed, refused: 454 4.7.0 no TLS today (starttls)");
    play(with_tls(TlsMode::Required), &format!("{UP_TO_STARTTLS}{rest}"));
}

#[test]
fn missing_starttls_stops_only_clients_that_require_it() {
    play(config(), &opening_dialogue(""));
    play(
        with_tls(TlsMode::Required),
        "S: 220 hi
         C: EHLO out.example.org
         S: 250 hi
         C: QUIT
         E: closed: no TLS",
    );
}

#[test]
fn tls_is_not_started_if_disabled_or_already_active() {
    play(with_tls(TlsMode::Never), &opening_dialogue("STARTTLS"));
    assert!(play(with_tls(TlsMode::Implicit), &opening_dialogue("STARTTLS")).is_encrypted());
}

fn auth(mechanisms: &str, rest: &str) -> String {
    format!("S: 220 hi\nC: EHLO out.example.org\nS: 250-hi\nS: 250 AUTH {mechanisms}\n{rest}")
}

#[test]
fn auth_plain_is_preferred_and_its_response_is_masked() {
    let rest = "C: AUTH PLAIN AHJlbGF5AGh1bnRlcjI=\nS: 235 2.7.0 welcome\nE: ready";
    let mut session = play(with_password(true), &auth("LOGIN PLAIN", rest));
    let transcript = session.take_transcript().to_string();
    assert!(transcript.contains("C: AUTH PLAIN ****\nS: 235 2.7.0 welcome\n"), "{transcript}");
    assert!(!transcript.contains("AHJlbGF5"));
}

#[test]
fn auth_login_is_used_if_plain_is_not_offered() {
    let rest = "C: AUTH LOGIN
        S: 334 VXNlcm5hbWU6
        C: cmVsYXk=
        S: 334 UGFzc3dvcmQ6
        C: aHVudGVyMg==
        S: 235 welcome
        E: ready";
    let mut session = play(with_password(true), &auth("LOGIN", rest));
    let transcript = session.take_transcript().to_string();
    assert!(transcript.contains("C: ****\nS: 235"), "{transcript}");
    assert!(!transcript.contains("aHVudGVyMg"));
}

#[test]
fn refused_password_closes_the_session_and_its_echo_is_masked() {
    let rest = "C: AUTH PLAIN AHJlbGF5AGh1bnRlcjI=
        S: 535 5.7.8 not AHJlbGF5AGh1bnRlcjI=
        C: QUIT
        E: closed, refused: 535 5.7.8 not **** (auth)";
    play(with_password(true), &auth("PLAIN", rest));
}

#[test]
fn passwords_are_not_sent_in_the_clear_or_by_unknown_mechanisms() {
    play(with_password(false), &auth("PLAIN", "C: QUIT\nE: closed: no AUTH"));
    play(with_password(true), &auth("XOAUTH2", "C: QUIT\nE: closed: no AUTH"));
}

#[test]
fn invalid_replies_to_auth_close_the_session() {
    let rest = "C: AUTH LOGIN\nS: 235 already\nE: closed: 235 is not a valid reply to the command (auth)";
    play(with_password(true), &auth("LOGIN", rest));
    let rest = "C: AUTH PLAIN AHJlbGF5AGh1bnRlcjI=\nS: 334 more\nE: closed: 334 is not a valid reply to the command (auth)";
    play(with_password(true), &auth("PLAIN", rest));
}
