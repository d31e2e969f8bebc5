//! Sessions against a real peer on the loopback.

use bytes::Bytes;
use postroad_smtp::{
    Body, ClientConfig, Closed, Credentials, EndCause, Outcome, OutgoingMessage, Phase, TlsMode, Verdict,
};
use postroad_testkit::smtp_peer::{Answer, PeerTls, Script, Stage, Transfer};
use postroad_testkit::{SmtpPeer, TestCertificate};

use super::dialogue::{config, message};
use super::driver::{Driver, Report};

async fn deliver(peer: &SmtpPeer, config: ClientConfig, texts: &[&str]) -> Report {
    let messages = texts.iter().map(|text| message("bob@example.net", text)).collect();
    Driver::new(peer.address(), config).deliver(messages).await
}

fn codes(report: &Report) -> Vec<u16> {
    let code = |outcome: &Outcome| match &outcome.verdict {
        Verdict::Accepted(reply) | Verdict::Refused(reply) => reply.code,
        _ => 0,
    };
    report.outcomes.iter().map(code).collect()
}

const EVERYTHING: &[&str] = &["PIPELINING", "CHUNKING", "8BITMIME", "SMTPUTF8", "SIZE 10000000"];

#[tokio::test]
async fn every_way_of_sending_delivers_the_same_bytes() {
    let text = "Subject: hi||.dot|..|.|Grüße|end|";
    let expected = text.replace('|', "\r\n");
    for extensions in [&[] as &[&str], &["PIPELINING"], &["CHUNKING"], &["PIPELINING", "CHUNKING"]] {
        let peer = SmtpPeer::start(Script::new().offering(extensions));
        let report = deliver(&peer, config(), &[text, "second|"]).await;
        assert_eq!(codes(&report), [250, 250], "{extensions:?}\n{}", report.transcript);
        assert_eq!(report.closed, Closed::Quit);
        assert_eq!(report.journal_marks, 2);
        let messages = peer.messages();
        assert_eq!(messages[0].bytes, expected.as_bytes());
        assert_eq!(messages[0].mail_from, "a@rp.example.org");
        assert_eq!(messages[0].rcpt_to, ["bob@example.net"]);
        assert_eq!(messages[1].bytes, "second\r\n");
        assert!(messages.iter().all(|message| message.connection == 1 && message.is_acknowledged()));
        assert!(messages[1].begun_at >= messages[0].at);
        let is_chunked = extensions.contains(&"CHUNKING");
        let transfer = if is_chunked { Transfer::Chunks(vec![expected.len()]) } else { Transfer::Data };
        assert_eq!(messages[0].transfer, transfer);
        let connections = peer.connections();
        assert_eq!(connections[0].violations, [""; 0], "{extensions:?}");
        assert_eq!(connections[0].messages_begun, 2);
    }
}

#[tokio::test]
async fn small_message_is_a_single_write() {
    let peer = SmtpPeer::start(Script::new().offering(EVERYTHING));
    let report = deliver(&peer, config(), &["hi|"]).await;
    // EHLO, the whole message, QUIT.
    assert_eq!(report.writes.len(), 3, "{:?}", report.writes);
    assert_eq!(codes(&report), [250]);
}

#[tokio::test]
async fn eight_bit_bodies_and_utf8_addresses_are_announced_in_mail() {
    let peer = SmtpPeer::start(Script::new().offering(EVERYTHING));
    let messages = vec![message("jürgen@example.net", "Grüße|")];
    let report = Driver::new(peer.address(), config()).deliver(messages).await;
    assert_eq!(codes(&report), [250]);
    assert_eq!(peer.messages()[0].mail_parameters, "SIZE=9 BODY=8BITMIME SMTPUTF8");
    assert_eq!(peer.messages()[0].rcpt_to, ["jürgen@example.net"]);
}

#[tokio::test]
async fn one_mebibyte_arrives_whole_by_data_and_by_chunks() {
    let line = format!(".{}\r\n", "x".repeat(61));
    let header = Bytes::from_static(b"Subject: large\r\n\r\n");
    let text = Bytes::from(line.repeat(1 << 14));
    assert_eq!(text.len(), 1 << 20);
    let body = Body::parse(vec![header.clone(), text.clone()]).unwrap();
    for extensions in [&["PIPELINING"], &["CHUNKING"]] {
        let peer = SmtpPeer::start(Script::new().offering(extensions));
        let large = OutgoingMessage { body: body.clone(), ..message("bob@example.net", "") };
        let config = ClientConfig { chunk_bytes_max: 300_000, ..config() };
        let report = Driver::new(peer.address(), config).deliver(vec![large.clone(), large]).await;
        assert_eq!(codes(&report), [250, 250], "{}", report.transcript);
        for received in peer.messages() {
            assert!(received.bytes == [&header[..], &text[..]].concat(), "{} bytes", received.bytes.len());
            if let Transfer::Chunks(sizes) = received.transfer {
                assert_eq!(sizes, [300_000, 300_000, 300_000, 148_594]);
            }
        }
    }
}

#[tokio::test]
async fn starttls_carries_the_message_and_hides_the_password() {
    let certificate = TestCertificate::for_localhost();
    let script = Script::new().offering(EVERYTHING).offering(&["AUTH PLAIN LOGIN"]);
    let (username, password) = ("relay".to_owned(), "hunter2".to_owned());
    let credentials = Some(Credentials { username, password, allow_without_tls: false });
    let cases = [
        (TlsMode::Required, script.clone().with_tls(PeerTls::With(certificate.clone()))),
        (TlsMode::Implicit, script.with_implicit_tls(PeerTls::With(certificate.clone()))),
    ];
    for (tls, script) in cases {
        let peer = SmtpPeer::start(script);
        let config = ClientConfig { tls, credentials: credentials.clone(), ..config() };
        let mut driver = Driver::new(peer.address(), config);
        driver.trust = Some((certificate.ca_pem.clone(), "localhost"));
        let report = driver.deliver(vec![message("bob@example.net", "hi|")]).await;
        assert_eq!(codes(&report), [250], "{}", report.transcript);
        assert!(report.is_encrypted && peer.messages()[0].is_encrypted);
        assert!(!report.transcript.contains("AHJlbGF5"), "{}", report.transcript);
        let commands = &peer.connections()[0].commands;
        assert!(commands.contains(&"AUTH PLAIN AHJlbGF5AGh1bnRlcjI=".to_owned()), "{commands:?}");
    }
}

#[tokio::test]
async fn invalid_certificate_or_broken_tls_ends_the_session_in_the_handshake() {
    let good = TestCertificate::for_localhost();
    let names = ["localhost"];
    let bad = [
        PeerTls::With(TestCertificate::self_signed(&names)),
        PeerTls::With(TestCertificate::expired(&names)),
        PeerTls::With(TestCertificate::for_names(&["elsewhere.example"])),
        PeerTls::Garbage,
        PeerTls::HangUp,
        PeerTls::Stall,
    ];
    for tls in bad {
        let silent_phase = matches!(tls, PeerTls::Stall).then_some(Phase::TlsHandshake);
        // Trusts the authority of the certificate, even of an expired one or one with a wrong name, so that nothing
        // else is wrong with it.
        let ca_pem = match &tls {
            PeerTls::With(certificate) => certificate.ca_pem.clone(),
            _ => good.ca_pem.clone(),
        };
        let peer = SmtpPeer::start(Script::new().with_tls(tls));
        let mut driver = Driver::new(peer.address(), config());
        driver.trust = Some((ca_pem, "localhost"));
        driver.silent_phase = silent_phase;
        let report = driver.deliver(vec![message("bob@example.net", "hi|")]).await;
        assert_eq!(report.closed, Closed::Ended { phase: Phase::TlsHandshake, cause: EndCause::TlsFailed });
        assert!(report.outcomes.is_empty() && peer.messages().is_empty());
    }
}

#[tokio::test]
async fn refused_recipient_leaves_the_connection_for_the_next_message() {
    for extensions in [&[] as &[&str], &["PIPELINING"], EVERYTHING] {
        let script = Script::new().offering(extensions);
        let peer = SmtpPeer::start(script.first(1, Stage::RcptTo, Answer::reply("550 5.1.1 no such user")));
        let report = deliver(&peer, config(), &["one|", "two|"]).await;
        assert_eq!(codes(&report), [550, 250], "{}", report.transcript);
        assert_eq!(report.outcomes[0].phase, Phase::RcptTo);
        assert_eq!(peer.messages().len(), 1);
        assert_eq!((peer.connections().len(), peer.open_connections_max()), (1, 1));
    }
}

#[tokio::test]
async fn message_is_a_possible_duplicate_only_if_the_connection_is_lost_after_its_end() {
    for extensions in [&[] as &[&str], EVERYTHING] {
        let script = Script::new().offering(extensions);
        let peer = SmtpPeer::start(script.on(Stage::Message, Answer::hang_up()));
        let report = deliver(&peer, config(), &["hi|"]).await;
        assert!(report.outcomes[0].is_possible_duplicate(), "{:?}", report.outcomes);
        assert_eq!(report.outcomes[0].phase, Phase::Final);
        assert_eq!(peer.messages()[0].reply, None);
    }
    let peer = SmtpPeer::start(Script::new().on(Stage::Data, Answer::hang_up()));
    let report = deliver(&peer, config(), &["hi|"]).await;
    assert_eq!(report.outcomes[0].verdict, Verdict::Interrupted);
    assert!(!report.outcomes[0].is_possible_duplicate());
}

#[tokio::test]
async fn message_received_before_a_break_is_accepted_or_a_possible_duplicate() {
    for extensions in [&[] as &[&str], &["PIPELINING"], EVERYTHING] {
        for bytes in 1..180 {
            for is_sent in [false, true] {
                let script = Script::new().offering(extensions);
                let script =
                    if is_sent { script.close_after_sent(bytes) } else { script.close_after_received(bytes) };
                let peer = SmtpPeer::start(script);
                let report = deliver(&peer, config(), &["hi|"]).await;
                for received in peer.messages() {
                    let outcome = &report.outcomes[0];
                    let is_accepted = matches!(outcome.verdict, Verdict::Accepted(_));
                    assert!(is_accepted || outcome.is_possible_duplicate(), "{bytes}: {outcome:?}");
                    assert!(received.reply.is_some() || !is_accepted, "{bytes}: {outcome:?}");
                }
                assert!(report.outcomes.len() <= 1);
            }
        }
    }
}

#[tokio::test]
async fn refusal_in_the_middle_of_a_large_message_is_its_outcome() {
    let text = format!("{}|", "x".repeat(70)).repeat(40_000);
    let refusal = Answer::reply("354 go ahead\n552 5.3.4 too big").then_close();
    let peer = SmtpPeer::start(Script::new().on(Stage::Data, refusal));
    let report = deliver(&peer, config(), &[&text]).await;
    assert_eq!(codes(&report), [552], "{}", report.transcript);
    assert!(!report.outcomes[0].after_last_byte);
}

#[tokio::test]
async fn silent_server_runs_into_the_deadline_of_its_phase() {
    for (stage, phase) in
        [(Stage::Banner, Phase::Banner), (Stage::MailFrom, Phase::MailFrom), (Stage::Message, Phase::Final)]
    {
        let peer = SmtpPeer::start(Script::new().on(stage, Answer::stall()));
        let mut driver = Driver::new(peer.address(), config());
        driver.silent_phase = Some(phase);
        let report = driver.deliver(vec![message("bob@example.net", "hi|")]).await;
        assert_eq!(report.closed, Closed::Ended { phase, cause: EndCause::TimedOut });
        assert_eq!(report.outcomes.iter().any(Outcome::is_possible_duplicate), phase == Phase::Final);
    }
}

#[tokio::test]
async fn server_that_closes_between_messages_is_understood() {
    let peer = SmtpPeer::start(Script::new().offering(EVERYTHING).when(|context| {
        let is_second = context.stage == Stage::MailFrom && context.message == 2;
        is_second.then(|| Answer::reply("421 4.7.0 enough for today").then_close())
    }));
    let report = deliver(&peer, config(), &["one|", "two|", "three|"]).await;
    assert_eq!(codes(&report), [250, 421]);
    assert!(!report.outcomes[1].is_possible_duplicate(), "the server refused it");
    assert!(matches!(report.closed, Closed::ByServer { phase: Phase::MailFrom, .. }));
    peer.wait_until(|record| record.open_now == 0).await;
}
