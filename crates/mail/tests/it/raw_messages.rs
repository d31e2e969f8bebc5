//! Changes to the bytes of a raw message.

use postroad_mail::{RawFallback, RawMessage, RawProblem, prepare_raw};

const FALLBACK: RawFallback<'_> =
    RawFallback { date: "Sun, 15 Nov 2026 03:00:00 +0000", message_id: "new@x.test" };
const COMPLETE: &str =
    "Date: Sat, 14 Nov 2026 01:02:03 +0100\r\nMessage-ID: <own@y.test>\r\nFrom: a@good.test\r\n";

#[track_caller]
fn prepared(message: &str) -> RawMessage {
    prepare_raw(message.into(), &FALLBACK).unwrap()
}

#[track_caller]
fn becomes(message: &str, expected: &str) {
    assert_eq!(String::from_utf8_lossy(&prepared(message).bytes), expected);
}

#[test]
fn a_complete_message_is_neither_changed_nor_copied() {
    let message = format!("{COMPLETE}Subject:  odd   spacing \r\n\r\n body \r\n.\r\n\0\u{7f}ü").into_bytes();
    let (copy, address) = (message.clone(), message.as_ptr());
    let raw = prepare_raw(message, &FALLBACK).unwrap();
    assert_eq!(raw.bytes, copy);
    assert_eq!(raw.bytes.as_ptr(), address);
    assert_eq!(raw.message_id, "own@y.test");
    assert_eq!(raw.subject, "odd   spacing");
}

#[test]
fn line_endings_become_crlf() {
    becomes(
        &format!("{}\nline\rline\r\nline\n\r", COMPLETE.replace('\r', "")),
        &format!("{COMPLETE}\r\nline\r\nline\r\nline\r\n\r\n"),
    );
}

#[test]
fn a_missing_last_line_break_is_not_added() {
    becomes(&format!("{COMPLETE}\r\nbody"), &format!("{COMPLETE}\r\nbody"));
    becomes(COMPLETE, COMPLETE);
    becomes(COMPLETE.trim_end(), COMPLETE.trim_end());
}

#[test]
fn missing_headers_are_added_on_top() {
    let raw = prepared("From: a@good.test\r\n\r\nbody");
    assert_eq!(raw.message_id, "new@x.test");
    assert_eq!(
        String::from_utf8_lossy(&raw.bytes),
        "Date: Sun, 15 Nov 2026 03:00:00 +0000\r\nMessage-ID: <new@x.test>\r\nFrom: a@good.test\r\n\r\nbody"
    );
    becomes(
        "message-id: <own@y.test>\r\nFrom: a@good.test\r\n\r\nDate: in the body",
        "Date: Sun, 15 Nov 2026 03:00:00 +0000\r\nmessage-id: <own@y.test>\r\nFrom: a@good.test\r\n\r\nDate: in the body",
    );
}

#[test]
fn a_blank_message_id_is_replaced() {
    for blank in ["Message-ID:\r\n", "Message-ID: <>\r\n", "Message-ID: \t\r\n"] {
        becomes(
            &format!("Date: x\r\n{blank}From: a@good.test\r\n\r\n"),
            "Message-ID: <new@x.test>\r\nDate: x\r\nFrom: a@good.test\r\n\r\n",
        );
    }
}

#[test]
fn the_first_of_several_message_ids_counts() {
    let raw = prepared(&format!("Message-ID:\r\n <first@y.test>\r\n{COMPLETE}\r\n"));
    assert_eq!(raw.message_id, "first@y.test");
    assert_eq!(prepared("Message-ID: no brackets\r\nFrom: a@good.test\r\n\r\n").message_id, "no brackets");
}

#[test]
fn private_headers_are_removed_with_their_folds() {
    becomes(
        &format!(
            "Return-Path: <x@x.test>\r\n{COMPLETE}bcc: secret@x.test,\r\n more@x.test,\r\n\tlast@x.test\r\n\
             To: b@x.test\r\nResent-Bcc: secret@x.test\r\nX-Postroad-Tag: t\r\nX-POSTAL-TAG: u\r\n\
             X-Other: stays\r\nX-Postroad-Anything:\r\n folded\r\n\r\nBcc: body stays\r\n"
        ),
        &format!("{COMPLETE}To: b@x.test\r\nX-Other: stays\r\n\r\nBcc: body stays\r\n"),
    );
    becomes(&format!("{COMPLETE}Bcc: last@x.test"), COMPLETE);
}

#[test]
fn control_headers_are_reported_separately() {
    let raw = prepared(&format!(
        "{COMPLETE}X-Postal-Tag: old\r\nX-Postroad-TAG: =?utf-8?q?gr=C3=BCn?=\r\nX-Postroad-Other: a\r\n  b\r\n\r\n"
    ));
    let controls = [("x-postal-tag", "old"), ("x-postroad-tag", "grün"), ("x-postroad-other", "a  b")];
    assert_eq!(raw.controls, controls.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(raw.tag(), Some("grün"));
    assert_eq!(
        prepared(&format!("{COMPLETE}X-Postal-Tag: old\r\nX-Postroad-Tag:\r\n\r\n")).tag(),
        Some("old")
    );
    assert_eq!(prepared(&format!("{COMPLETE}X-Tag: none\r\n\r\n")).tag(), None);
}

#[test]
fn the_subject_is_decoded() {
    let raw = prepared(&format!(
        "{COMPLETE}Subject: =?utf-8?q?Gr=C3=BC?=\r\n =?utf-8?q?=C3=9Fe?= x\r\nSubject: second\r\n\r\n"
    ));
    assert_eq!(raw.subject, "Grüße x");
    assert_eq!(prepared(COMPLETE).subject, "");
}

#[test]
fn sender_addresses_are_reported_apart_from_from_addresses() {
    let raw = prepared(&format!("{COMPLETE}Sender: S <s@other.test>\r\nsender: t@other.test\r\n\r\n"));
    assert_eq!(raw.from, ["a@good.test"]);
    assert_eq!(raw.sender, ["s@other.test", "t@other.test"]);
    let refused =
        prepare_raw(format!("{COMPLETE}Sender: b@evil.test <s@good.test>\r\n\r\n").into(), &FALLBACK);
    assert!(matches!(refused, Err(RawProblem::Sender(_))));
}

#[test]
fn a_message_without_headers_is_refused() {
    for bytes in [&b""[..], b"\r\n", b"\r\nbody", b"\n\n"] {
        assert_eq!(prepare_raw(bytes.into(), &FALLBACK), Err(RawProblem::NoHeaders));
    }
}

#[test]
fn options_by_header_are_taken_out_of_submissions_and_left_in_raw_messages() {
    let options = "X-Metadata-Order-ID: =?utf-8?q?=C3=BC?=\r\nx-test-mode: True\r\nX-Track-Opens: false\r\n\
                  X-Track-Clicks: true\r\nX-Idempotency-Key: k 1\r\nX-Metadata-a: 1\r\n";
    let message =
        format!("{COMPLETE}{options}X-Postal-Tag: t\r\nX-Other: stays\r\n\r\nX-Test-Mode: body\r\n");
    let raw = postroad_mail::prepare_submission(message.clone().into(), &FALLBACK).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&raw.bytes),
        format!("{COMPLETE}X-Other: stays\r\n\r\nX-Test-Mode: body\r\n")
    );
    assert_eq!(raw.metadata().collect::<Vec<_>>(), [("order-id", "ü"), ("a", "1")]);
    assert_eq!(raw.control("x-test-mode"), Some("True"));
    assert_eq!(raw.control("x-idempotency-key"), Some("k 1"));
    assert_eq!((raw.tag(), raw.control("x-unknown")), (Some("t"), None));
    becomes(&message, &message.replace("X-Postal-Tag: t\r\n", ""));
}

#[test]
fn the_bytes_of_headers_added_on_top_are_counted() {
    let raw = prepared("Bcc: x@y.test\r\nFrom: a@good.test\r\n\r\nbody");
    assert_eq!(&raw.bytes[raw.added_bytes..], b"From: a@good.test\r\n\r\nbody");
    assert_eq!(prepared(COMPLETE).added_bytes, 0);
}

#[test]
fn non_ascii_headers_are_encoded_except_local_parts_of_addresses() {
    let headers = "Subject: Grüße\r\nX-Note: ü\r\nTo: Zoë <zoë@x.test>, Zoë <ann@x.test>\r\n";
    let raw = prepare_raw(format!("{COMPLETE}{headers}\r\nKörper\r\n").into_bytes(), &FALLBACK).unwrap();
    assert_eq!(raw.subject, "Grüße");
    let text = String::from_utf8(raw.bytes).unwrap();
    let encoded_headers = "Subject: =?utf-8?B?R3LDvMOfZQ==?=\r\nX-Note: =?utf-8?B?w7w=?=\r\n\
                  To: =?utf-8?Q?Zo=C3=AB?= <zoë@x.test>, =?utf-8?Q?Zo=C3=AB?= <ann@x.test>\r\n";
    assert_eq!(text, format!("{COMPLETE}{encoded_headers}\r\nKörper\r\n"));
    assert!(postroad_mail::has_utf8_header(text.as_bytes()), "an address is still beyond ASCII");
    let latin = [COMPLETE.as_bytes(), b"Subject: J\xfcrgen\r\n\r\n\xfc\r\n"].concat();
    let raw = prepare_raw(latin, &FALLBACK).unwrap();
    assert_eq!(raw.subject, "Jürgen");
    assert!(!postroad_mail::has_utf8_header(&raw.bytes));
    assert!(raw.bytes.ends_with(b"\r\n\r\n\xfc\r\n"), "bodies are left alone");
}

#[test]
fn lines_over_998_bytes_are_refused() {
    let prepare = |text: String| prepare_raw(text.into_bytes(), &FALLBACK).map(|_| ());
    let line = |length: usize| "x".repeat(length);
    assert_eq!(prepare(format!("{COMPLETE}\r\n{}\r\n{}", line(998), line(998))), Ok(()));
    let lines = COMPLETE.matches('\n').count();
    assert_eq!(
        prepare(format!("{COMPLETE}\r\na\r\n{}\r\n", line(999))),
        Err(RawProblem::LineTooLong { line: lines + 3 })
    );
    assert_eq!(
        prepare(format!("{COMPLETE}\r\n{}", line(999))),
        Err(RawProblem::LineTooLong { line: lines + 2 })
    );
    assert_eq!(
        prepare(format!("{COMPLETE}X-A: {}\r\n\r\n", line(994))),
        Err(RawProblem::LineTooLong { line: lines + 1 })
    );
}

#[test]
fn a_message_that_loops_is_refused() {
    let prepare =
        |hops: String| prepare_raw(format!("{hops}{COMPLETE}\r\nhi").into_bytes(), &FALLBACK).map(|_| ());
    let foreign = "Received: from a by b with SMTP; x\r\n";
    let own = "received: by mx1.example.com (Postroad) with ESMTPSA id aB3dE5fG7hI9jK1l;\r\n\tSun, 15 Nov 2026 03:00:00 +0000\r\n";
    assert_eq!(prepare(foreign.repeat(49)), Ok(()));
    assert_eq!(prepare(foreign.repeat(50)), Err(RawProblem::Loop));
    assert_eq!(prepare(own.repeat(4)), Ok(()));
    assert_eq!(prepare(own.repeat(5)), Err(RawProblem::Loop));
}
