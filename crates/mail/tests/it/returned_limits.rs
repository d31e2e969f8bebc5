//! Any bytes can be read, and the results stay within their limits.

use std::time::Instant;

use postroad_mail::returned::read;
use proptest::prelude::*;

use crate::returned_check::report;

#[test]
fn at_most_a_thousand_recipients_are_read() {
    let group =
        |n| format!("Final-Recipient: rfc822; u{n}@example.com\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n");
    let groups = (0..5_000).map(group).collect::<Vec<_>>().concat();
    assert_eq!(read(report("x", &groups).as_bytes()).recipients.len(), 1_000);
    let line = |n| format!("<u{n}@example.com>: 550 5.1.1 unknown\r\n");
    let lines = (0..5_000).map(line).collect::<Vec<_>>().concat();
    let message = format!("From: MAILER-DAEMON@mx.example.net\r\nSubject: failure notice\r\n\r\n{lines}");
    assert_eq!(read(message.as_bytes()).recipients.len(), 1_000);
}

#[test]
fn nested_multiparts_and_long_lines_are_read_within_limits() {
    let level = |n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n");
    let levels = (0..2_000).map(level).collect::<Vec<_>>().concat();
    let message = format!("From: MAILER-DAEMON@mx.example.net\r\n{levels}");
    assert!(read(message.as_bytes()).recipients.len() <= 1);
    let line = format!("From: MAILER-DAEMON\r\n\r\njo@example.com: 550 {}", "5.1.1 x".repeat(1 << 20));
    let found = read(line.as_bytes());
    assert!(found.recipients.iter().all(|one| one.diagnostic.len() <= 1_024));
}

#[test]
fn long_recipients_and_many_sections_take_linear_time() {
    let time = |sections: usize, long_bytes: usize| {
        let group = |n| format!("Final-Recipient: rfc822; u{n}@example.com\r\nAction: failed\r\n\r\n");
        let groups = (0..sections).map(group).collect::<Vec<_>>().concat();
        let long = format!("Final-Recipient: rfc822; {}\r\nAction: failed\r\n\r\n", "x".repeat(long_bytes));
        let line = |n| format!("<u{n}@example.com>: 550 5.1.1 unknown\r\n");
        let lines = (0..sections).map(line).collect::<Vec<_>>().concat();
        let message = report(&lines, &(groups + &long));
        let once = || {
            let begun = Instant::now();
            assert_eq!(read(message.as_bytes()).recipients.len(), sections + 1);
            begun.elapsed()
        };
        // The best of three runs: other load only adds time.
        once().min(once()).min(once())
    };
    let (many, long, both) = (time(900, 10), time(1, 1_800_000), time(900, 1_800_000));
    assert!(both < 3 * (many + long), "{many:?}, {long:?}, and together {both:?}");
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\r\n".to_owned()),
        Just("\r\n\r\n".to_owned()),
        Just("--b/1\r\n".to_owned()),
        Just("Content-Type: message/delivery-status\r\n\r\n".to_owned()),
        Just("Content-Type: message/feedback-report\r\n\r\n".to_owned()),
        Just("Content-Type: message/rfc822\r\n\r\n".to_owned()),
        Just("Content-Type: text/html\r\n\r\n<p>".to_owned()),
        Just("Final-Recipient: rfc822; jo@example.com\r\n".to_owned()),
        Just("Original-Recipient: utf-8;\\x{110000}\\x{}\\x{zz\r\n".to_owned()),
        Just("Action: failed\r\n".to_owned()),
        Just("Status: 5.".to_owned()),
        Just("Diagnostic-Code: smtp; 550-5.7.1".to_owned()),
        Just("<<< 550 5.1.1".to_owned()),
        Just(">>> DATA\r\n".to_owned()),
        Just("{\"notificationType\":\"Bounce\"".to_owned()),
        Just("----- Original message -----\r\n".to_owned()),
        "[<>@#.:;()\\[\\] 0-9a-zäß中]{0,20}",
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_mixture_of_forms_is_read(pieces in proptest::collection::vec(piece(), 0..40)) {
        let body = pieces.concat();
        let in_report = read(report(&body, &body).as_bytes());
        for one in &in_report.recipients {
            prop_assert!(!one.hard || one.permanent, "{one:?}");
        }
        let _ = read(format!("From: MAILER-DAEMON\r\nSubject: failure notice\r\n{body}").as_bytes());
    }
}
