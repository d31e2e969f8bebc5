//! Signatures of all kinds of messages verify at a receiver, and fail if somebody changes the message.

use postroad_mail::{Canonical, DkimKey, Signer, SignerError, dkim_txt};
use postroad_model::{DomainName, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::dkim_receiver::Receiver;

const SIGNED_AT: Timestamp = Timestamp::from_micros(1_794_711_600_000_000);

/// A sender with both kinds of keys, and a receiver that knows its records.
struct SenderAndReceiver {
    rsa: Signer,
    ed25519: Signer,
    receiver: Receiver,
}

impl SenderAndReceiver {
    fn new() -> Self {
        let domain = DomainName::parse("example.com").unwrap();
        let (rsa, ed25519) = (DkimKey::generate().unwrap(), DkimKey::generate_ed25519().unwrap());
        let mut receiver = Receiver::default();
        receiver.publish("pr1", "example.com", &dkim_txt(rsa.public_spki_der()));
        receiver.publish("pr2", "example.com", &dkim_txt(ed25519.public_spki_der()));
        Self {
            rsa: Signer::rsa("pr1", domain.clone(), rsa.private_pkcs8_der()).unwrap(),
            ed25519: Signer::ed25519("pr2", domain, ed25519.private_pkcs8_der()).unwrap(),
            receiver,
        }
    }

    /// The message as it is sent: with signatures on top and a complete last line.
    fn signed(&self, message: &[u8]) -> Vec<u8> {
        let canonical = Canonical::of(message);
        let mut sent =
            (self.rsa.sign(&canonical, SIGNED_AT) + &self.ed25519.sign(&canonical, SIGNED_AT)).into_bytes();
        sent.extend_from_slice(message);
        if !sent.ends_with(b"\r\n") {
            sent.extend_from_slice(b"\r\n");
        }
        sent
    }
}

const PLAIN: &str = "From: A <a@example.com>\r\nTo: b@example.net\r\nSubject: Hello\r\n\
                     Date: Sun, 15 Nov 2026 03:00:00 +0000\r\nMessage-ID: <1@example.com>\r\n\r\nDear B,\r\n\r\nbye.\r\n";

#[test]
fn two_domains_sign_headers_added_before_the_message() {
    let mut pair = SenderAndReceiver::new();
    let host = DkimKey::generate().unwrap();
    pair.receiver.publish("pr3", "mx.example.net", &dkim_txt(host.public_spki_der()));
    let domain = DomainName::parse("mx.example.net").unwrap();
    let installation = Signer::rsa("pr3", domain, host.private_pkcs8_der()).unwrap();
    let added = "Feedback-ID: welcome:s1:a2:prabcdef\r\nCFBL-Address: fbl@mx.example.net; report=arf\r\n";
    let canonical = Canonical::of_parts(added.as_bytes(), PLAIN.as_bytes());
    let signatures = pair.rsa.sign(&canonical, SIGNED_AT) + &installation.sign(&canonical, SIGNED_AT);
    let sent = format!("{signatures}{added}{PLAIN}");
    assert_eq!(pair.receiver.verify(sent.as_bytes()).len(), 2);
    assert!(pair.receiver.accepts(sent.as_bytes()));
    for (from, to) in [("welcome", "other"), ("fbl@mx", "fbl@my")] {
        assert!(!pair.receiver.accepts(sent.replace(from, to).as_bytes()), "{from}");
    }
    assert!(!pair.receiver.accepts(format!("CFBL-Address: x@y.example\r\n{sent}").as_bytes()));
}

#[test]
fn messages_of_all_kinds_verify() {
    let pair = SenderAndReceiver::new();
    let huge =
        format!("From: a@example.com\r\n\r\n{}", "A line  with some\ttext in it. \r\n".repeat(100_000));
    let many = format!("{}From: a@example.com\r\n\r\nx\r\n", "References: <1@x>\r\n".repeat(60));
    let long = format!("From: a@example.com\r\nSubject: {}\r\n\r\nx\r\n", "word \r\n\t".repeat(200) + "end");
    let messages: [&[u8]; 17] = [
        PLAIN.as_bytes(),
        b"From: a@example.com\r\n",
        b"From: a@example.com\r\n\r\n",
        b"From: a@example.com\r\n\r\n\r\n\r\n\r\n",
        b"From: a@example.com\r\n\r\nText \t\r\n\r\n\r\n",
        b"From: a@example.com\r\n\r\nno line ending",
        b"From: a@example.com\r\n\r\n\r\n\r\nempty lines first\r\n",
        b"From: a@example.com\r\nSubject: folded\r\n  twice\r\n\tand  spaced \t out \r\n\r\nx\r\n",
        b"From: a@example.com\r\nSubject:\r\n\r\nx\r\n",
        b"From:a@example.com\r\nsubject:tight\r\nTO:\tb@example.net\t\r\n\r\nx\r\n",
        "From: Zo\u{eb} <a@example.com>\r\nSubject: gr\u{fc}\u{df}e\r\n\r\n8 bit \u{fc}\r\n".as_bytes(),
        b"From: a@example.com\r\nSubject: latin \xe9\r\n\r\nlatin \xe9\xff\r\n",
        b"From: a@example.com\r\nList-Id: 1\r\nX: y\r\nList-Id: 2\r\nList-Unsubscribe: <https://x.example>\r\n\r\nx\r\n",
        b"From: a@example.com\r\nContent-Type: text/plain\r\n\r\n\ttabs\t\tand  spaces  \r\n .\r\n..\r\n",
        huge.as_bytes(),
        many.as_bytes(),
        long.as_bytes(),
    ];
    for message in messages {
        let results = pair.receiver.verify(&pair.signed(message));
        let shown = String::from_utf8_lossy(&message[..message.len().min(200)]);
        assert_eq!(results, vec![mail_auth::DkimResult::Pass; 2], "{shown:?}");
    }
}

#[test]
fn random_messages_verify() {
    let pair = SenderAndReceiver::new();
    let name =
        prop::sample::select(vec!["Subject", "to", "CC", "References", "List-Id", "X-Other", "Content-Type"]);
    let piece = || prop::sample::select(vec!["a", "Bc:", " ", "\t", "é", ";", "=", "\r\n ", "\r\n\t"]);
    let field = (name, prop::collection::vec(piece(), 0..12));
    let line = prop::sample::select(vec!["", " ", "word", "two  words", "\t", "end \t", ".", "ü"]);
    let message = (prop::collection::vec(field, 0..8), prop::collection::vec(line, 0..12));
    let mut runner =
        TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) });
    let outcome = runner.run(&message, |(fields, lines)| {
        let mut parts = vec!["From: a@example.com\r\n".to_owned()];
        for (name, pieces) in fields {
            // Avoid lines with only white space: messages with such a header line are not accepted.
            let value = pieces.concat().replace("\r\n ", "\r\n z").replace("\r\n\t", "\r\n\tz");
            parts.push(format!("{name}: {value}\r\n"));
        }
        // No lines of white space at the end: the verifier counts them, although RFC 6376 3.4.4 ignores them (step b
        // follows step a). `dkim::body` has tests for them.
        let body = lines.join("\r\n");
        parts.push(format!("\r\n{}", body.trim_end_matches([' ', '\t', '\r', '\n'])));
        let text = parts.concat();
        prop_assert!(pair.receiver.accepts(&pair.signed(text.as_bytes())), "{text:?}");
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn changes_that_the_relaxed_form_ignores_are_accepted() {
    let pair = SenderAndReceiver::new();
    let sent = String::from_utf8(pair.signed(PLAIN.as_bytes())).unwrap();
    for (from, to) in [
        ("Subject: Hello", "subject:   Hello  "),
        ("Dear B,", "Dear  B, "),
        ("bye.\r\n", "bye.\r\n\r\n"),
        ("Subject: Hello", "X-Relay: seen\r\nSubject: Hello"),
    ] {
        let touched = sent.replacen(from, to, 1);
        assert_ne!(touched, sent);
        assert!(pair.receiver.accepts(touched.as_bytes()), "{to:?}");
    }
}

#[test]
fn changes_of_signed_text_break_both_signatures() {
    let pair = SenderAndReceiver::new();
    let sent = String::from_utf8(pair.signed(PLAIN.as_bytes())).unwrap();
    assert!(pair.receiver.accepts(sent.as_bytes()));
    for (from, to) in [
        ("Dear B,", "Dear C,"),
        ("bye.\r\n", "bye.\r\nPS: and more\r\n"),
        ("Hello", "Hell"),
        ("<a@example.com>", "<x@example.com>"),
        ("b@example.net", "c@example.net"),
        ("03:00:00", "04:00:00"),
        ("<1@example.com>", "<2@example.com>"),
        ("t=1794711600", "t=1794711601"),
    ] {
        let touched = sent.replace(from, to);
        assert_ne!(touched, sent);
        let results = pair.receiver.verify(touched.as_bytes());
        assert_eq!(results.len(), 2);
        assert!(results.iter().all(|result| *result != mail_auth::DkimResult::Pass), "{to:?}: {results:?}");
    }
}

#[test]
fn a_second_visible_header_breaks_both_signatures() {
    let pair = SenderAndReceiver::new();
    // The second message does not have most of these headers.
    for message in [PLAIN, "From: a@example.com\r\n\r\nx\r\n"] {
        let sent = String::from_utf8(pair.signed(message.as_bytes())).unwrap();
        for added in
            ["From: x@evil.example", "Subject: other", "To: x@x.example", "Date: now", "Message-ID: <2@x>"]
        {
            // Above all other headers, and below them.
            let on_top = format!("{added}\r\n{sent}");
            let below = sent.replacen("\r\n\r\n", &format!("\r\n{added}\r\n\r\n"), 1);
            for touched in [on_top, below] {
                let results = pair.receiver.verify(touched.as_bytes());
                assert_eq!(results.len(), 2);
                assert!(results.iter().all(|result| *result != mail_auth::DkimResult::Pass), "{added}");
            }
        }
    }
}

#[test]
fn each_signature_is_independent() {
    let pair = SenderAndReceiver::new();
    let canonical = Canonical::of(PLAIN.as_bytes());
    let (rsa, ed25519) = (pair.rsa.sign(&canonical, SIGNED_AT), pair.ed25519.sign(&canonical, SIGNED_AT));
    for signatures in [rsa.clone(), ed25519.clone(), format!("{ed25519}{rsa}"), format!("{rsa}{ed25519}")] {
        assert!(pair.receiver.accepts(format!("{signatures}{PLAIN}").as_bytes()));
    }
}

#[test]
fn the_same_message_and_moment_give_the_same_bytes() {
    let pair = SenderAndReceiver::new();
    for signer in [&pair.rsa, &pair.ed25519] {
        let first = signer.sign(&Canonical::of(PLAIN.as_bytes()), SIGNED_AT);
        // Fractions of a second make no difference: `t=` has whole seconds.
        let again = signer
            .sign(&Canonical::of(PLAIN.as_bytes()), SIGNED_AT.plus(std::time::Duration::from_millis(999)));
        assert_eq!(first, again);
        let later =
            signer.sign(&Canonical::of(PLAIN.as_bytes()), SIGNED_AT.plus(std::time::Duration::from_secs(1)));
        assert_ne!(first, later);
    }
}

#[test]
fn a_signature_has_lines_of_76_columns_and_the_expected_tags() {
    let pair = SenderAndReceiver::new();
    let header = pair.rsa.sign(&Canonical::of(PLAIN.as_bytes()), SIGNED_AT);
    assert!(header.ends_with("\r\n") && !header.ends_with("\r\n\r\n"));
    assert!(header.lines().all(|line| line.len() <= 76), "{header}");
    assert!(header.lines().skip(1).all(|line| line.starts_with('\t')), "{header}");
    let (before_signature, _) = header.split_once(" b=").or_else(|| header.split_once("\tb=")).unwrap();
    insta::assert_snapshot!(before_signature.replace("\r\n\t", "\n"), @r"
    DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.com; s=pr1;
    t=1794711600; h=From:From:Sender:Reply-To:To:To:Cc:Subject:Subject:Date:
    Date:Message-ID:Message-ID:Content-Type:List-Unsubscribe:
    List-Unsubscribe-Post:Feedback-ID:CFBL-Address:CFBL-Feedback-ID;
    bh=BEG7WTiU50nQPNguEt6ZGPRuUOUnen57ooyZaFHS7vk=;
    ");
}

#[test]
fn a_signer_refuses_keys_and_selectors_that_cannot_work() {
    let domain = || DomainName::parse("example.com").unwrap();
    let ed25519 = DkimKey::generate_ed25519().unwrap();
    let wrong_kind = Signer::rsa("s", domain(), ed25519.private_pkcs8_der());
    assert_eq!(wrong_kind.unwrap_err(), SignerError::RsaKey);
    assert_eq!(Signer::ed25519("s", domain(), b"no key").unwrap_err(), SignerError::Ed25519Key);
    for selector in ["", "a b", "a;b", "a\r\nX: y", "a..b", "ü"] {
        let refused = Signer::ed25519(selector, domain(), ed25519.private_pkcs8_der());
        assert_eq!(refused.unwrap_err(), SignerError::Selector, "{selector:?}");
    }
    Signer::ed25519("a.b-1", domain(), ed25519.private_pkcs8_der()).unwrap();
}
