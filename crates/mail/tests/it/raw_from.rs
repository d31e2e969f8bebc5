//! Sender of a raw message. Every trick here has fooled some pair of programs that read From differently.

use postroad_mail::{AddressListProblem, RawFallback, RawProblem, find_spelled_addresses, prepare_raw};
use proptest::prelude::*;

fn from_of(headers: &[u8]) -> Result<Vec<String>, RawProblem> {
    let fallback = RawFallback { date: "Sun, 15 Nov 2026 03:00:00 +0000", message_id: "m@x.test" };
    prepare_raw([headers, b"\r\nSubject: s\r\n\r\nbody"].concat(), &fallback).map(|raw| raw.from)
}

/// Checks that these header lines are accepted, and which From addresses are found in them.
#[track_caller]
fn accepts_headers(headers: &str, addresses: &[&str]) {
    assert_eq!(
        from_of(headers.as_bytes()).as_deref(),
        Ok(&addresses.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
        "{headers:?}"
    );
}

/// Checks that a From header with this value is refused.
#[track_caller]
fn refuses_value(value: impl AsRef<[u8]>, problem: AddressListProblem) {
    let header = [b"From: ", value.as_ref()].concat();
    assert_eq!(from_of(&header), Err(RawProblem::From(problem)), "{}", String::from_utf8_lossy(&header));
}

#[test]
fn every_regular_form_is_read() {
    for value in [
        "a@good.test",
        "<a@good.test>",
        "Ann Lee <a@good.test>",
        "Ann Q. Lee <a@good.test>",
        "\"Lee, Ann\" <a@good.test>",
        "\"a@good.test\" <a@good.test>",
        "\"Ann \\\"x\\\" Lee\" <a@good.test>",
        "=?utf-8?q?=C3=9Cn=C3=AF?= <a@good.test>",
        "=?utf-8?b?w5xuw68=?= =?utf-8?b?w5xuw68=?= <a@good.test>",
        "Ünï <a@good.test>",
        "a@good.test (Ann (the one) \\) Lee)",
        "(note) Ann <a@good.test> (note)",
        "Ann\r\n Lee\r\n\t<a@good.test>",
        "  a@good.test  ",
        "Team: a@good.test;",
    ] {
        accepts_headers(&format!("From: {value}"), &["a@good.test"]);
    }
    accepts_headers("From: \"a b\"@good.test", &["\"a b\"@good.test"]);
    accepts_headers("From: ü@bücher.test", &["ü@xn--bcher-kva.test"]);
    assert_eq!(from_of(b"From: \xfcnn <a@good.test>").unwrap(), ["a@good.test"]);
}

fn apparent_senders(headers: &str) -> Vec<String> {
    let fallback = RawFallback { date: "Sun, 15 Nov 2026 03:00:00 +0000", message_id: "m@x.test" };
    let message = format!("{headers}\r\nSubject: s\r\n\r\nbody");
    prepare_raw(message.into_bytes(), &fallback).unwrap().apparent_senders
}

#[test]
fn an_address_spelled_in_encoded_words_or_non_ascii_text_is_an_apparent_sender() {
    for value in [
        "=?utf-8?q?ceo=40evil.test?= <a@good.test>",
        "=?utf-8?b?Y2VvQGV2aWwudGVzdA==?= <a@good.test>",
        "\"=?utf-8?q?ceo=40evil.test?=\" <a@good.test>",
        "=?utf-8?q?CEO_=3Cceo=40evil.test=3E?= <a@good.test>",
        "=?utf-8?q?ceo=40ev?= =?utf-8?q?il.test?= <a@good.test>",
        "=?utf-8?q?ceo=EF=BC=A0evil.test?= <a@good.test>",
        "a@good.test (=?utf-8?q?ceo=40evil.test?=)",
        "=?utf-8?q?ceo=40evil.test?=: a@good.test;",
        "\"Zoë ceo@evil.test\" <a@good.test>",
        "\"Zoë ceo@ev\u{200d}il\u{200c}.test\" <a@good.test>",
    ] {
        for header in ["From: ", "From: a@good.test\r\nSender: "] {
            let senders = apparent_senders(&format!("{header}{value}"));
            assert!(senders.iter().any(|address| address.ends_with("@evil.test")), "{value}: {senders:?}");
        }
    }
    for value in [
        "=?utf-8?q?Zo=C3=AB?= <a@good.test>",
        "=?utf-8?q?Zo=C3=AB_=40_home?= <a@good.test>",
        "=?utf-8?q?Zo=C3=AB=40home?= <a@good.test>",
        // An emoji of a cook, and a Persian word: both contain joiners.
        "\u{1f469}\u{200d}\u{1f373} Kitchen <a@good.test>",
        "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645} <a@good.test>",
        "\"a@other.test via Shop\" <a@good.test>",
    ] {
        let senders = apparent_senders(&format!("From: {value}"));
        assert!(senders.iter().all(|address| address.ends_with("@good.test")), "{value}: {senders:?}");
    }
}

/// RFC 5892 A.1: after some letters a joiner is a part of the name, and the name without it is another domain.
#[test]
fn joiners_of_a_domain_that_needs_them_are_kept() {
    let persian = "\u{646}\u{627}\u{645}\u{647}\u{200c}\u{627}\u{6cc}.example";
    assert_eq!(find_spelled_addresses(&format!("ann@{persian} <a@good.test>"))[0], format!("x@{persian}"));
    assert_eq!(find_spelled_addresses("ceo@ev\u{200c}il\u{200d}.test")[0], "x@evil.test");
    assert_eq!(find_spelled_addresses("ceo\u{200d}@\u{200d}evil.test\u{200c}")[0], "x@evil.test");
}

#[test]
fn addresses_in_resent_from_and_resent_sender_are_apparent_senders() {
    let headers = "From: a@good.test\r\nResent-From: b@evil.test\r\nResent-Sender: C <c@worse.test>\r\nResent-From: d@last.test";
    assert_eq!(apparent_senders(headers), ["b@evil.test", "c@worse.test", "d@last.test"]);
    assert_eq!(
        from_of(b"From: a@good.test\r\nResent-From: b@evil.test <c@good.test>"),
        Err(RawProblem::Resent("Resent-From", AddressListProblem::Ambiguous))
    );
}

#[test]
fn lists_are_read_to_their_limit_and_no_further() {
    let list = |count: usize| format!("From: {}", vec!["a@good.test"; count].join(",\r\n "));
    assert_eq!(from_of(list(50).as_bytes()).unwrap().len(), 50);
    // Entries beyond the limit are not examined.
    let long = format!("{},(((", list(51));
    assert_eq!(from_of(long.as_bytes()), Err(RawProblem::From(AddressListProblem::TooMany)));
    let groups = format!("From: {}x", "x:;,\r\n ".repeat(2_000));
    assert_eq!(from_of(groups.as_bytes()), Err(RawProblem::From(AddressListProblem::TooMany)));
    let many = "X-A: b\r\n".repeat(1_000);
    assert_eq!(from_of(format!("{many}From: a@good.test").as_bytes()), Err(RawProblem::TooManyHeaders));
    let fold = "x\r\n ".repeat(70_000);
    assert_eq!(
        from_of(format!("X-A: {fold}x\r\nFrom: a@good.test").as_bytes()),
        Err(RawProblem::HeadersTooLong)
    );
}

#[test]
fn all_addresses_of_all_from_headers_count() {
    accepts_headers("From: a@good.test, Bad <b@evil.test>", &["a@good.test", "b@evil.test"]);
    accepts_headers("From: a@good.test\r\nfROM: b@evil.test", &["a@good.test", "b@evil.test"]);
    accepts_headers(
        "From: T: a@good.test, B <b@evil.test>;, c@other.test",
        &["a@good.test", "b@evil.test", "c@other.test"],
    );
    // Some programs take a bare CR or LF for a line break, so we do too.
    accepts_headers("From: a@good.test\rFrom: b@evil.test", &["a@good.test", "b@evil.test"]);
    accepts_headers("From: a@good.test\nFrom: b@evil.test", &["a@good.test", "b@evil.test"]);
}

#[test]
fn ambiguous_from_headers_are_refused() {
    use AddressListProblem::{Ambiguous, Control, Empty, Syntax, Unclosed};
    refuses_value("b@evil.test <a@good.test>", Ambiguous);
    refuses_value("x b@evil.test <a@good.test>", Ambiguous);
    refuses_value("<b@evil.test><a@good.test>", Ambiguous);
    refuses_value("<b@evil.test> <a@good.test>", Ambiguous);
    refuses_value("<b@evil.test> a@good.test", Ambiguous);
    refuses_value("b@evil.test a@good.test", Ambiguous);
    refuses_value("\"<b@evil.test>\" <a@good.test>", Ambiguous);
    refuses_value("a@good.test (<b@evil.test>)", Ambiguous);
    refuses_value("\"b@evil.test\"@good.test", Ambiguous);
    refuses_value("=?utf-8?q?b=40evil.test?=@good.test", Ambiguous);
    refuses_value("=?utf-8?q?b=40evil.test=00?= <a@good.test>", Control);
    refuses_value("=?utf-8?b?YkBldmlsLnRlc3QNCg==?= <a@good.test>", Control);
    refuses_value("=?utf-8?q?x,?= <a@good.test>", Syntax);
    refuses_value("<a@good.test", Unclosed);
    refuses_value("a@good.test>", Ambiguous);
    refuses_value("<<a@good.test>>", Syntax);
    refuses_value("<a@good.test,b@evil.test>", Unclosed);
    refuses_value("<@evil.test:a@good.test>", Syntax);
    refuses_value("<@evil.test,@x.test:a@good.test>", Syntax);
    refuses_value("\"Ann <a@good.test>", Ambiguous);
    refuses_value("\"Ann a@good.test", Unclosed);
    refuses_value("Ann\" <a@good.test>", Ambiguous);
    refuses_value("a@good.test (open", Unclosed);
    refuses_value("a@good.test )", Unclosed);
    refuses_value("a@evil.test@good.test", Ambiguous);
    refuses_value("a @good.test", Syntax);
    refuses_value("a@ good.test", Syntax);
    refuses_value("a@(x)good.test", Syntax);
    refuses_value("< a@good.test>", Syntax);
    refuses_value("<a@good.test >", Unclosed);
    refuses_value("a@[127.0.0.1]", Syntax);
    refuses_value("a@good.test.", Syntax);
    refuses_value(".a@good.test", Syntax);
    refuses_value("a\\b@good.test", Syntax);
    refuses_value("Ann [x] <a@good.test>", Syntax);
    refuses_value("a@good.test;b@evil.test", Ambiguous);
    refuses_value("a@good.test,", Syntax);
    refuses_value(",a@good.test", Syntax);
    refuses_value("Team: a@good.test", Unclosed);
    refuses_value("Team: a@good.test; b@evil.test", Ambiguous);
    refuses_value("T: U: a@good.test;;", Syntax);
    refuses_value(": a@good.test;", Syntax);
    refuses_value("a@good.test\u{202e}", Control);
    refuses_value("a@good.test\u{1b}", Control);
    refuses_value("Z\u{200b}oe <a@good.test>", Control);
    // A byte that is not UTF-8 is decoded as ISO 8859-1.
    refuses_value(b"a@good.test \xff", Ambiguous);
    refuses_value("Ann", Syntax);
    refuses_value("Nobody:;", Empty);
    refuses_value("", Empty);
    refuses_value("(just a note)", Empty);
    refuses_value("<>", Syntax);
    // A second From header is checked like the first.
    assert_eq!(from_of(b"From: a@good.test\r\nFrom: <b@evil.test"), Err(RawProblem::From(Unclosed)),);
}

#[test]
fn lines_that_are_headers_only_to_some_programs_are_refused() {
    for (headers, line) in [
        ("From : a@good.test", 1),
        ("From\t: a@good.test", 1),
        ("From: a@good.test\r\nno colon here", 2),
        ("From: a@good.test\r\nX-Folded: 1\r\n 2\r\nSub ject: x", 4),
        (" From: a@good.test", 1),
        ("From: a@good.test\r\n \t\r\nFrom: b@evil.test", 1),
        ("From a@good.test Sun Nov 15 03:00:00 2026", 1),
        (": a@good.test", 1),
        // The `o` is Cyrillic.
        ("Fr\u{43e}m: a@good.test", 1),
    ] {
        assert_eq!(from_of(headers.as_bytes()), Err(RawProblem::HeaderLine(line)), "{headers:?}");
    }
    assert_eq!(from_of(b"From: a@good.test\r\nX: \0"), Err(RawProblem::Nul));
    assert_eq!(from_of(b"From: a@good.test\0"), Err(RawProblem::Nul));
}

#[test]
fn a_message_without_a_from_header_is_refused() {
    assert_eq!(from_of(b"To: a@good.test"), Err(RawProblem::FromMissing));
    assert_eq!(from_of(b"To: a@good.test\r\n\r\nFrom: a@good.test"), Err(RawProblem::FromMissing));
    assert_eq!(from_of(b"\r\nFrom: a@good.test"), Err(RawProblem::NoHeaders));
}

#[test]
fn problems_read_as_sentences() {
    let problem = from_of(b"From: b@evil.test <a@good.test>").unwrap_err();
    assert_eq!(problem.to_string(), "The From header could be read as a different address by other software");
}

proptest! {
    /// Whatever the order of the pieces, an address outside quotes and comments is reported, or the message is
    /// refused.
    #[test]
    fn no_address_goes_unreported(pieces in proptest::collection::vec(
        prop_oneof![
            Just("b@evil.test"), Just("<b@evil.test>"), Just("a@good.test"), Just("<a@good.test>"), Just(","),
            Just(" "), Just(":"), Just(";"), Just("("), Just(")"), Just("\""), Just("\\"), Just("name"), Just("\r\n "),
            Just("=?utf-8?q?x?="), Just("<"), Just(">"), Just("@"), Just("\r\nFrom: "),
        ], 1..9)) {
        let text = pieces.concat();
        if let Ok(addresses) = from_of(format!("From: {text}").as_bytes()) {
            // All difficult forms are refused, so a very simple reader can check the accepted ones.
            let mut unquoted = String::new();
            let mut is_quoted = false;
            for piece in text.split('"') {
                if !is_quoted { unquoted.push_str(piece); }
                is_quoted = !is_quoted;
            }
            let named = unquoted.matches("b@evil.test").count();
            let reported = addresses.iter().filter(|address| address.contains("b@evil.test")).count();
            prop_assert_eq!(named, reported, "{:?} {:?}", text, addresses);
        }
    }
}
