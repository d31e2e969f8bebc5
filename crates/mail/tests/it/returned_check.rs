//! Compares parsed returned messages with a summary, and builds notices and reports.

use postroad_mail::returned::{ReturnedRecipient, read};

/// Each recipient as `recipient kind status code class permanent hard`, `-` for an unknown value.
#[track_caller]
pub(crate) fn check(message: &str, expected: &[&str]) {
    let found: Vec<String> = read(message.as_bytes()).recipients.iter().map(summary).collect();
    assert_eq!(found, expected, "{message}");
}

fn summary(found: &ReturnedRecipient) -> String {
    let flag = |is_set: bool, name: &'static str| if is_set { name } else { "-" };
    [
        found.recipient.clone().unwrap_or("-".to_owned()),
        found.kind.as_str().to_owned(),
        found.status.map_or("-".to_owned(), |status| status.to_string()),
        found.code.map_or("-".to_owned(), |code| code.to_string()),
        found.class.map_or("-", |class| class.as_str()).to_owned(),
        flag(found.permanent, "permanent").to_owned(),
        flag(found.hard, "hard").to_owned(),
    ]
    .join(" ")
}

/// A notice in plain text; below the text `separator`, then a copy of the original.
pub(crate) fn notice(from: &str, subject: &str, text: &str, separator: &str) -> String {
    format!(
        "Return-Path: <>\r\nFrom: {from}\r\nTo: bounce+1@rp.sender.example\r\nSubject: {subject}\r\n\r\n{text}\r\n{separator}\r\n\
         From: news@sender.example\r\nTo: jo@example.com\r\nMessage-ID: <1@sender.example>\r\nSubject: Hello\r\n\r\nHello\r\n"
    )
}

/// A multipart/report with status fields for one message.
pub(crate) fn report(text: &str, fields: &str) -> String {
    format!(
        "From: MAILER-DAEMON@mx.example.net\r\nTo: bounce+1@rp.sender.example\r\nSubject: Undelivered Mail\r\n\
         MIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=\"b/1\"\r\n\r\n\
         --b/1\r\nContent-Type: text/plain\r\n\r\n{text}\r\n\
         --b/1\r\nContent-Type: message/delivery-status\r\n\r\n{fields}\r\n\
         --b/1\r\nContent-Type: message/rfc822\r\n\r\nFrom: news@sender.example\r\nTo: jo@example.com\r\n\
         Message-ID: <1@sender.example>\r\nSubject: Hello\r\n\r\nHello\r\n--b/1--\r\n"
    )
}
