//! Parsing and classification of replies: lines, codes, arbitrary text from remote servers.

use postroad_mail::{EnhancedCode, Reply, ReplyProblem, classify};
use proptest::prelude::*;

#[track_caller]
fn check(shown: &str, code: u16, enhanced: Option<&str>, text: &str) {
    let reply = Reply::parse(shown).expect("a reply");
    assert_eq!(reply.code(), code);
    assert_eq!(reply.enhanced().map(|code| code.to_string()).as_deref(), enhanced);
    assert_eq!(reply.text(), text);
}

#[test]
fn lines_are_joined_without_their_codes() {
    check("550 5.1.1 User unknown", 550, Some("5.1.1"), "User unknown");
    check("550-5.1.1 No\r\n550 5.1.1 such user\r\n", 550, Some("5.1.1"), "No such user");
    check("550-No\n550-such\n550 user", 550, None, "No such user");
    check("550 5.1.1 No\n    such user", 550, Some("5.1.1"), "No such user");
    check("554-first\n554 5.7.1 second", 554, Some("5.7.1"), "first second");
    check("smtp; 550 5.2.2 <jo@example.com> full", 550, Some("5.2.2"), "<jo@example.com> full");
    check("SMTP;550 no", 550, None, "no");
    check("554 554 5.7.0 Header error (state 18)", 554, Some("5.7.0"), "Header error (state 18)");
    check("550", 550, None, "");
    check("421 ", 421, None, "");
}

/// In delivery reports the lines are already joined, with the codes between the words.
#[test]
fn codes_left_between_words_are_taken_out() {
    let shown = "550-5.1.1 The account does not exist. Please try 550-5.1.1 double-checking 550 5.1.1 it";
    check(shown, 550, Some("5.1.1"), "The account does not exist. Please try double-checking it");
}

#[test]
fn enhanced_codes_are_found_where_receivers_put_them() {
    check("550 #5.1.0 Address rejected.", 550, Some("5.1.0"), "Address rejected.");
    check("550 no mailbox here. (#5.1.1)", 550, Some("5.1.1"), "no mailbox here. (#5.1.1)");
    check("511 no mailbox (#5.1.1 - chkuser)", 511, Some("5.1.1"), "no mailbox (#5.1.1 - chkuser)");
    check("550 5.7.515: denied", 550, Some("5.7.515"), "denied");
    check("550 192.0.2.1 is blocked", 550, None, "192.0.2.1 is blocked");
    check("550 2.1.5 odd", 550, None, "2.1.5 odd");
    check("550 5.1 odd", 550, None, "5.1 odd");
}

#[test]
fn text_that_is_no_refusal_is_reported_as_such() {
    assert_eq!(Reply::parse("250 2.0.0 OK"), Err(ReplyProblem::NoRefusal(250)));
    assert_eq!(Reply::parse("999 what"), Err(ReplyProblem::NoRefusal(999)));
    for text in ["", "   ", "hello", "5.1.1 user unknown", "55", "5500 x", "550x", "é50 x", "smtp;"] {
        assert_eq!(Reply::parse(text), Err(ReplyProblem::NoCode), "{text}");
    }
    assert!(Reply::new(354, "go on").is_err());
}

#[test]
fn the_basic_code_decides_on_permanence() {
    let temporary = classify(&Reply::parse("450 5.1.1 User unknown").expect("a reply"));
    assert!(!temporary.permanent && !temporary.hard);
    let permanent = classify(&Reply::parse("550 4.1.1 User unknown").expect("a reply"));
    assert!(permanent.permanent && permanent.hard);
}

#[test]
fn vague_words_are_hard_only_at_rcpt_or_with_a_5_1_x_code() {
    for (words, rule) in [
        ("We have no trace of a user there; the name is not valid", "seems-no-such-user"),
        ("No mail host could be found that serves example.com", "seems-no-such-domain"),
    ] {
        let judge = |code: &str| classify(&Reply::parse(&format!("{code} {words}")).expect("a reply"));
        assert_eq!(judge("550").rule, rule);
        assert!(!judge("550").hard && !judge("550 5.0.0").hard, "{words}");
        assert!(judge("550").hard_at_rcpt && judge("550 5.1.0").hard, "{words}");
        assert!(!judge("450").hard_at_rcpt, "{words}");
    }
}

#[test]
fn refusals_of_the_sender_or_of_us_suppress_no_address() {
    for text in [
        "550 Your domain is not registered with us",
        "550 sender account does not exist",
        "550 <news@example.org>: invalid address in From header",
        "550 Return path address does not exist",
        "550 There is no record of your IP in DNS",
        "550 Envelope sender: user unknown",
        "550 This service is no longer available",
        "550 Invalid user or password",
        "535 5.7.8 user unknown",
        "550 unknown host: your reverse name cannot be verified",
        "550 domain is invalid in HELO",
        "550 Unknown local problem",
        "550 Hosts that are not registered may not send mail here",
    ] {
        let verdict = classify(&Reply::parse(text).expect("a reply"));
        assert!(!verdict.hard, "{text}: {verdict:?}");
    }
}

#[test]
fn long_replies_are_cut_and_still_judged() {
    let long = format!("550 5.1.1 User unknown {}", "ü ".repeat(1_000_000));
    let reply = Reply::parse(&long).expect("a reply");
    assert!(reply.text().len() <= 4096);
    assert_eq!(classify(&reply).rule, "bad-mailbox-code");
}

proptest! {
    #[test]
    fn any_text_gets_a_verdict(code in 400_u16..600, text in any::<String>()) {
        let reply = Reply::new(code, &text).expect("a refusal");
        let verdict = classify(&reply);
        prop_assert!(!verdict.permanent || code >= 500);
        prop_assert!(!verdict.hard || verdict.hard_at_rcpt);
        prop_assert!(!verdict.hard_at_rcpt || verdict.permanent);
    }

    #[test]
    fn any_input_is_parsed_or_refused(text in "(smtp;)?[45]?[0-9]{0,3}[- ]?[245]?\\.?[0-9.#()@<>\\s\\PC]{0,60}") {
        if let Ok(reply) = Reply::parse(&text) {
            classify(&reply);
        }
    }

    #[test]
    fn enhanced_codes_are_read_back(class in 4_u16..6, subject in 0_u16..1000, detail in 0_u16..1000) {
        let code = EnhancedCode { class, subject, detail };
        prop_assert_eq!(EnhancedCode::parse(&code.to_string()), Some(code));
    }
}
