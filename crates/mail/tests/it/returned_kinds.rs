//! Returned messages that are not bounces: complaints, delays, automatic replies, and other mail.

use postroad_mail::returned::{ReturnedKind, read};

use crate::returned_check::{check, notice, report};

fn complaint(fields: &str) -> String {
    format!(
        "From: fbl@isp.example\r\nTo: fbl@sender.example\r\nSubject: FW: Hello\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain\r\n\r\nThis is an email abuse report.\r\n\
         --b\r\nContent-Type: message/feedback-report\r\n\r\n{fields}\r\n\
         --b\r\nContent-Type: message/rfc822\r\n\r\nFrom: news@sender.example\r\nTo: jo@example.com\r\nMessage-ID: <1@sender.example>\r\n\r\nHello\r\n--b--\r\n"
    )
}

#[test]
fn feedback_reports_name_who_complained() {
    let both = "Feedback-Type: abuse\r\nUser-Agent: X/1\r\nVersion: 1\r\nOriginal-Rcpt-To: <jo@example.com>\r\nOriginal-Rcpt-To: al@example.com\r\n\
        Reporting-MTA: dns; mail.isp.example\r\n";
    let message = complaint(both);
    check(&message, &["jo@example.com complaint - - - - -", "al@example.com complaint - - - - -"]);
    let read = read(message.as_bytes());
    assert_eq!(read.kind, ReturnedKind::Complaint);
    assert_eq!(read.original_message_id.as_deref(), Some("1@sender.example"));
    assert_eq!(read.recipients[0].reporting_mta.as_deref(), Some("mail.isp.example"));
    check(&complaint("Feedback-Type: abuse\r\nVersion: 1\r\n"), &["jo@example.com complaint - - - - -"]);
    let broken = complaint("Feedback-Type: abuse\r\nOriginal-Rcpt-To: al@example.com\r\n")
        .replace("boundary=b", "boundary=c");
    check(&broken, &["al@example.com complaint - - - - -"]);
    let redacted = complaint("Feedback-Type: fraud\r\n").replace("jo@example.com", "redacted");
    check(&redacted, &["- complaint - - - - -"]);
}

#[test]
fn feedback_reports_of_other_types_are_no_complaints() {
    check(&complaint("Feedback-Type: auth-failure\r\nVersion: 1\r\n"), &["jo@example.com other - - - - -"]);
    check(&complaint("Feedback-Type: not-spam\r\nVersion: 1\r\n"), &["jo@example.com other - - - - -"]);
}

#[test]
fn a_message_that_microsoft_forwards_is_a_complaint() {
    let message = "From: staff@hotmail.com\r\nSubject: complaint about message from 192.0.2.1\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
        --b\r\nContent-Type: message/rfc822\r\n\r\nX-HmXmrOriginalRecipient: jo@example.com\r\nFrom: news@sender.example\r\nTo: undisclosed\r\n\r\nHello\r\n--b--\r\n";
    check(message, &["jo@example.com complaint - - - - -"]);
}

#[test]
fn json_notifications_of_amazon_are_read() {
    let mail = |json: &str| {
        format!(
            "From: no-reply@sns.amazonaws.com\r\nSubject: AWS Notification Message\r\n\r\n{json}\r\n\r\n--\r\nIf you wish to stop …\r\n"
        )
    };
    let bounce = r#"{"notificationType":"Bounce","bounce":{"bounceType":"Permanent","reportingMTA":"dns; a.amazonses.com","bouncedRecipients":
[{"emailAddress":"jo@example.com","status":"5.1.1","action":"failed","diagnosticCode":"smtp; 550 5.1.1 user unknown"}]}}"#;
    check(&mail(bounce), &["jo@example.com bounce 5.1.1 550 bad_mailbox permanent hard"]);
    let complaint = r#"{"notificationType":"Complaint","complaint":{"complainedRecipients":[{"emailAddress":"jo@example.com"}]}}"#;
    check(&mail(complaint), &["jo@example.com complaint - - - - -"]);
    check(&mail(r#"{"notificationType":"Delivery","delivery":{"recipients":["jo@example.com"]}}"#), &[]);
    check(&mail(r#"{"notificationType":"Bounce"}"#), &["- other - - - - -"]);
}

#[test]
fn delays_are_neither_permanent_nor_hard() {
    let fields = "Final-Recipient: rfc822; jo@example.com\r\nAction: delayed\r\nStatus: 4.1.1\r\nDiagnostic-Code: smtp; 450 4.1.1 user unknown\r\n";
    check(&report("It will be retried.", fields), &["jo@example.com delay 4.1.1 450 bad_mailbox - -"]);
    let text = "**      THIS IS A WARNING MESSAGE ONLY      **\r\n\r\nDelivery to the following recipient has been delayed:\r\n\r\n     jo@example.com\r\n\r\nMessage will be retried for 2 more day(s)\r\n";
    check(
        &notice(
            "mailer-daemon@mx.example.net",
            "Delivery Status Notification (Delay)",
            text,
            "----- Original message -----\r\n",
        ),
        &["jo@example.com delay - - timeout - -"],
    );
}

#[test]
fn notices_of_success_have_no_recipients() {
    for action in ["delivered", "relayed", "expanded"] {
        let fields =
            format!("Final-Recipient: rfc822; jo@example.com\r\nAction: {action}\r\nStatus: 2.0.0\r\n");
        let message = report("Your message was successfully delivered.", &fields);
        check(&message, &[]);
        assert_eq!(read(message.as_bytes()).kind, ReturnedKind::Other);
    }
}

#[test]
fn automatic_replies_are_recognised_in_many_languages() {
    let reply = |headers: &str| {
        format!(
            "From: Jo <jo@example.com>\r\nTo: news@sender.example\r\n{headers}\r\n\r\nI am away. Error 550.\r\n"
        )
    };
    for headers in [
        "Subject: Re: Hello\r\nAuto-Submitted: auto-replied (vacation)",
        "Subject: Re: Hello\r\nX-Autoreply: yes",
        "Subject: Re: Hello\r\nPrecedence: auto_reply",
        "Subject: Automatic reply: Hello",
        "Subject: Out of Office: Hello",
        "Subject: Re: Out of Office",
        "Subject: [Ticket] Abwesenheitsnotiz",
        "Subject: =?utf-8?q?R=C3=A9ponse_automatique?= : Hello",
        "Subject: =?utf-8?q?Respuesta_autom=C3=A1tica:_Hello?=",
        "Subject: =?utf-8?b?6Ieq5Yqo5Zue5aSNOiBIZWxsbw==?=",
    ] {
        check(&reply(headers), &["jo@example.com auto_reply - - - - -"]);
    }
    check(&reply("Subject: Re: Hello"), &["- other - - - - -"]);
    check(&reply("Subject: Your invoice\r\nAuto-Submitted: auto-generated"), &["- other - - - - -"]);
}

#[test]
fn letters_about_bounces_are_no_bounces() {
    let message = "From: Jo <jo@example.com>\r\nSubject: my mail bounced\r\n\r\nCan you help me? It was to al@example.com.\r\n";
    check(message, &["- other - - - - -"]);
    let letter = "From: postmaster@example.com\r\nSubject: New mail server\r\n\r\nWe have moved to al@example.com.\r\n";
    check(letter, &["- other - - - - -"]);
    let away = "From: Jo <jo@example.com>\r\nSubject: Automatic reply: Undeliverable: Hello\r\n\r\n> 550 5.1.1 unknown\r\n";
    check(away, &["jo@example.com auto_reply - - - - -"]);
    check("", &["- other - - - - -"]);
}
