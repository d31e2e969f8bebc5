//! AUTH PLAIN and LOGIN in all their forms.

use postroad_smtp::server::{AuthPolicy, Event, Login, ServerConfig, ServerLimits};

use super::dialogue::{config, play, submission_config};

fn auth_without_tls_config() -> ServerConfig {
    ServerConfig { auth: AuthPolicy::Anywhere, auth_required: true, ..config() }
}

/// Sends HELO, then plays the dialogue.
fn play_greeted(dialogue: &str) {
    play(auth_without_tls_config(), &format!("C: HELO client.example\nS: 250 mx.example.net\n{dialogue}"));
}

#[test]
fn auth_before_tls_is_refused() {
    play(
        submission_config(),
        "C: HELO client.example
         S: 250 mx.example.net
         C: AUTH PLAIN AGtleQBzZWNyZXQ=
         S: 530 5.7.0 Must issue a STARTTLS command first
         C: AUTH LOGIN
         S: 530 5.7.0 Must issue a STARTTLS command first",
    );
}

#[test]
fn auth_plain_is_accepted_with_and_without_initial_response() {
    // NUL key NUL secret; with the same authorization id; without padding.
    for response in ["AGtleQBzZWNyZXQ=", "a2V5AGtleQBzZWNyZXQ=", "AGtleQBzZWNyZXQ"] {
        play_greeted(&format!(
            "C: AUTH PLAIN {response}\nE: auth key secret\n> accept\nS: 235 2.7.0 Authentication succeeded"
        ));
        play_greeted(&format!("C: auth plain\nS: 334 \nC: {response}\nE: auth key secret"));
    }
}

#[test]
fn auth_login_is_accepted_with_and_without_initial_response() {
    play_greeted(
        "C: AUTH LOGIN
         S: 334 VXNlcm5hbWU6
         C: a2V5
         S: 334 UGFzc3dvcmQ6
         C: c2VjcmV0
         E: auth key secret",
    );
    play_greeted("C: AUTH LOGIN a2V5\nS: 334 UGFzc3dvcmQ6\nC: c2VjcmV0\nE: auth key secret");
}

#[test]
fn mail_needs_auth_and_a_second_auth_is_refused() {
    play_greeted(
        "C: MAIL FROM:<a@example.org>
         S: 530 5.7.0 Authentication required
         C: AUTH PLAIN AGtleQBzZWNyZXQ=
         C: MAIL FROM:<a@example.org>
         E: auth key secret
         > accept
         S: 235 2.7.0 Authentication succeeded
         E: mail <a@example.org>
         > accept
         S: 250 2.1.0 Sender OK
         C: AUTH PLAIN AGtleQBzZWNyZXQ=
         S: 503 5.5.1 Already authenticated",
    );
}

#[test]
fn invalid_auth_input_is_refused_without_asking_the_driver() {
    // Not base64; no NULs; another authorization id; no user; four fields; not UTF-8; empty.
    for response in ["!", "a2V5", "eAB5AHo=", "AABzZWNyZXQ=", "AGEAYgBj", "AP8A/w==", "="] {
        play_greeted(&format!("C: AUTH PLAIN {response}\nS: 501 5.5.2 The authentication cannot be decoded"));
    }
    play_greeted(
        "C: AUTH CRAM-MD5
         S: 504 5.5.4 Authentication mechanism not offered
         C: AUTH LOGIN
         S: 334 VXNlcm5hbWU6
         C: *
         S: 501 5.7.0 Authentication cancelled
         C: NOOP
         S: 250 2.0.0 OK",
    );
    play(auth_without_tls_config(), "C: AUTH PLAIN AGtleQBzZWNyZXQ=\nS: 503 5.5.1 Say EHLO first");
}

#[test]
fn commands_in_an_auth_exchange_are_not_run() {
    play_greeted(
        "C: AUTH PLAIN
         C: QUIT
         C: NOOP
         S: 334 \n
         S: 501 5.5.2 The authentication cannot be decoded
         S: 250 2.0.0 OK",
    );
}

#[test]
fn the_third_wrong_password_ends_the_session() {
    let refused = "C: AUTH PLAIN AGtleQBzZWNyZXQ=
                   E: auth key secret
                   > reply 535 5.7.8 Authentication credentials invalid
                   S: 535 5.7.8 Authentication credentials invalid";
    let end = "S: 421 4.7.0 Too many failed authentications, closing the connection
               E: closed for TooManyBadCredentials";
    play_greeted(&format!("{refused}\n{refused}\n{refused}\n{end}"));
    // A temporary failure on our side does not count as a guess.
    let trouble = refused.replace("535 5.7.8 Authentication credentials invalid", "454 4.7.0 Later");
    play_greeted(&[trouble.as_str(); 5].join("\n"));
    let limits = ServerLimits { bad_credentials_max: 1, ..ServerLimits::default() };
    let config = ServerConfig { limits, ..auth_without_tls_config() };
    play(config, &format!("C: HELO x\nS: 250 mx.example.net\n{refused}\n{end}"));
}

#[test]
fn secrets_are_not_printed() {
    let login = Login { username: "the-key".to_owned(), password: "the-secret".to_owned() };
    let mut session = play(auth_without_tls_config(), "C: HELO x\nS: 250 mx.example.net\nc: AUTH PLAIN AHRo");
    let printed = format!("{session:?} {:?}", Event::Auth(login));
    assert!(!printed.contains("the-") && !printed.contains("AHRo"), "{printed}");
    session.feed(b"\r\n");
}
