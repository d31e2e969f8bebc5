//! Bounces with status fields (RFC 3464, RFC 6533), in the shapes that mail systems give them.

use postroad_mail::returned::{ReturnedKind, read};

use crate::returned_check::{check, report};

#[test]
fn status_fields_distinguish_each_recipient() {
    let fields = "Reporting-MTA: dns; mx.example.net\r\nArrival-Date: Thu, 5 Nov 2026 10:00:00 +0000\r\n\r\n\
        Final-Recipient: rfc822; jo@example.com\r\nOriginal-Recipient: rfc822;Jo.Doe@example.com\r\nAction: failed\r\n\
        Status: 5.1.1\r\nRemote-MTA: dns; in.example.com\r\nDiagnostic-Code: smtp; 550 5.1.1 <jo@example.com>: Recipient\r\n\
        \x20   address rejected: User unknown in local recipient table\r\n\r\n\
        Final-Recipient: rfc822; al@example.com\r\nAction: failed\r\nStatus: 5.2.2\r\n\
        Diagnostic-Code: smtp; 552 5.2.2 Mailbox full\r\n\r\n\
        Final-Recipient: rfc822; bo@example.com\r\nAction: delayed\r\nStatus: 4.4.1\r\n\
        Diagnostic-Code: X-Postfix; connect to in.example.com[192.0.2.1]:25: Connection timed out\r\n\r\n\
        Final-Recipient: rfc822; cy@example.com\r\nAction: delivered\r\nStatus: 2.0.0\r\n";
    let message = report("<jo@example.com>: host in.example.com said: 550", fields);
    check(
        &message,
        &[
            "Jo.Doe@example.com bounce 5.1.1 550 bad_mailbox permanent hard",
            "al@example.com bounce 5.2.2 552 full permanent -",
            "bo@example.com delay 4.4.1 - timeout - -",
        ],
    );
    let read = read(message.as_bytes());
    assert_eq!(read.kind, ReturnedKind::Bounce);
    assert_eq!(read.original_message_id.as_deref(), Some("1@sender.example"));
    assert_eq!(read.recipients[0].reporting_mta.as_deref(), Some("mx.example.net"));
    assert_eq!(
        read.recipients[0].diagnostic,
        "550 5.1.1 <jo@example.com>: Recipient address rejected: User unknown in local recipient table"
    );
}

#[track_caller]
fn check_fields(fields: &str, expected: &str) {
    check(&report("Your message was not delivered.", &fields.replace('\n', "\r\n")), &[expected]);
}

#[test]
fn the_code_of_the_remote_host_takes_precedence_over_that_of_the_reporting_host() {
    check_fields(
        "Final-Recipient: rfc822;jo@example.com\nAction: failed\nStatus: 5.0.0 (permanent failure)\n\
         Diagnostic-Code: smtp; 5.1.0 - Unknown address error 550-'5.7.1 <x@rp.sender.example>... Access denied' (delivery attempts: 0)",
        "jo@example.com bounce 5.7.1 550 policy permanent -",
    );
    check_fields(
        "Final-Recipient: rfc822;jo@example.com\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 : User unknown",
        "jo@example.com bounce 5.1.1 550 bad_mailbox permanent hard",
    );
}

#[test]
fn status_fields_may_be_missing_or_unusual() {
    // McAfee: no final recipient, no status.
    check_fields(
        "Original-Recipient: <jo@example.com>\nAction: failed\nDiagnostic-Code: smtp; 550 5.1.1 <jo@example.com>... User unknown",
        "jo@example.com bounce 5.1.1 550 bad_mailbox permanent hard",
    );
    // Oracle's Messaging Server explains the status instead of quoting a reply.
    check_fields(
        "Original-recipient: rfc822;jo@example.com\nAction: failed\nStatus: 5.4.4 (Illegal host/domain name found)",
        "jo@example.com bounce 5.4.4 - bad_domain permanent hard",
    );
    // SendGrid writes an action that RFC 3464 does not have, and no type before the diagnostic.
    check_fields(
        "Final-Recipient: rfc822; jo@example.com\nAction: expired\nStatus:\nDiagnostic-Code: Connection timed out",
        "jo@example.com bounce - - timeout permanent -",
    );
    // Without an action the status decides.
    check_fields(
        "Final-Recipient: rfc822; jo@example.com\nStatus: 5.1.2",
        "jo@example.com bounce 5.1.2 - bad_domain permanent hard",
    );
}

#[test]
fn the_text_of_a_notice_completes_its_status_fields() {
    let text = "The original message was received at Thu, 5 Nov 2026\r\n\r\n   ----- The following addresses had permanent fatal errors -----\r\n\
        <jo@example.com>\r\n\r\n   ----- Transcript of session follows -----\r\n\
        <jo@example.com>... Deferred: Name server: example.com.: host name lookup failure\r\n\
        Message could not be delivered for 5 days\r\nMessage will be deleted from queue\r\n";
    let fields = "Final-Recipient: RFC822; jo@example.com\r\nAction: failed\r\nStatus: 5.0.0\r\n";
    check(&report(text, fields), &["jo@example.com bounce 5.0.0 - dns permanent -"]);
    let text = "An error has occurred while attempting to deliver a message for\r\n    the following list of recipients:\r\n\r\n\
        jo@example.com: 550 5.7.26 Multiple authentication checks failed\r\n";
    check(&report(text, fields), &["jo@example.com bounce 5.7.26 550 auth_failure permanent -"]);
}

#[test]
fn user_unknown_is_hard_only_as_a_reply_to_rcpt() {
    let fields = "Final-Recipient: rfc822; jo@example.com\r\nAction: failed\r\nStatus: 5.0.0\r\n\
        Diagnostic-Code: smtp; 550 Unknown user jo@example.com\r\n";
    let postfix = |command: &str| {
        format!(
            "<jo@example.com>: host in.example.com[192.0.2.1] said: 550 Unknown user\r\n    jo@example.com (in reply to {command} command)\r\n"
        )
    };
    check(&report(&postfix("end of DATA"), fields), &["jo@example.com bounce 5.0.0 550 policy permanent -"]);
    check(
        &report(&postfix("RCPT TO"), fields),
        &["jo@example.com bounce 5.0.0 550 bad_mailbox permanent hard"],
    );
    check(&report(&postfix("MAIL FROM"), fields), &["jo@example.com bounce 5.0.0 550 policy permanent -"]);
}

#[test]
fn vague_words_are_hard_only_as_a_reply_to_rcpt() {
    let fields = "Final-Recipient: rfc822; jo@example.com\r\nAction: failed\r\nStatus: 5.0.0\r\n\
        Diagnostic-Code: smtp; 550 Such a mailbox could no longer be reached\r\n";
    check(&report("Sorry.", fields), &["jo@example.com bounce 5.0.0 550 policy permanent -"]);
    let at_rcpt = "<jo@example.com>: host in.example.com[192.0.2.1] said: 550 Such a mailbox could\r\n    no longer be reached (in reply to RCPT TO command)\r\n";
    check(&report(at_rcpt, fields), &["jo@example.com bounce 5.0.0 550 bad_mailbox permanent hard"]);
}

#[test]
fn in_a_transcript_only_replies_of_the_remote_host_count() {
    // Sendmail remarks "User unknown" on everything that was refused at RCPT.
    let text = "   ----- The following addresses had permanent fatal errors -----\r\n<jo@example.com>\r\n    (reason: 550 cut off)\r\n\r\n\
        \x20  ----- Transcript of session follows -----\r\n... while talking to in.example.com.:\r\n>>> RCPT To:<jo@example.com>\r\n\
        <<< 550 mail from 192.0.2.1 refused, see Spamhaus blocklist\r\n550 5.1.1 <jo@example.com>... User unknown\r\n>>> DATA\r\n<<< 503 5.0.0 Need RCPT\r\n";
    let fields = "Final-Recipient: RFC822; jo@example.com\r\nAction: failed\r\nStatus: 5.0.0\r\nDiagnostic-Code: SMTP; 550 cut off\r\n";
    check(&report(text, fields), &["jo@example.com bounce 5.0.0 550 reputation permanent -"]);
}

#[test]
fn unknown_users_that_yahoo_refuses_after_the_data_are_dead_addresses() {
    let text = "   ----- Transcript of session follows -----\r\n... while talking to mta6.example.com.:\r\n>>> DATA\r\n\
        <<< 554 delivery error: dd This user doesn't have a yahoo.com account (jo@example.com) [0] - mta1061\r\n554 5.0.0 Service unavailable\r\n";
    let fields = "Final-Recipient: RFC822; jo@example.com\r\nAction: failed\r\nStatus: 5.0.0\r\n\
        Diagnostic-Code: SMTP; 554 delivery error: dd This user doesn't have a yahoo.com account (jo@example.com) [0]\r\n";
    check(&report(text, fields), &["jo@example.com bounce 5.0.0 554 bad_mailbox permanent hard"]);
}

#[test]
fn temporary_replies_of_user_unknown_are_hard_once_the_sender_has_given_up() {
    let fields = |action: &str, text: &str| {
        format!(
            "Final-Recipient: rfc822; jo@example.com\r\nAction: {action}\r\nStatus: 4.1.1\r\n\
             Diagnostic-Code: smtp; 450 4.1.1 <jo@example.com>: Recipient address rejected: {text} (in reply to RCPT TO command)\r\n"
        )
    };
    for (action, text, expected) in [
        (
            "failed",
            "User unknown in virtual alias table",
            "jo@example.com bounce 4.1.1 450 bad_mailbox permanent hard",
        ),
        ("failed", "unverified address", "jo@example.com bounce 4.1.1 450 bad_mailbox permanent -"),
        ("delayed", "User unknown in virtual alias table", "jo@example.com delay 4.1.1 450 bad_mailbox - -"),
    ] {
        check(&report("Sorry.", &fields(action, text)), &[expected]);
    }
}

/// A notice of a gateway that encloses a report as the returned message.
fn notice_with_enclosed_report(text: &str) -> String {
    let fields = "Final-Recipient: rfc822; jo@example.com\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 User unknown\r\n";
    let inside = report("<jo@example.com>", fields);
    format!(
        "From: MAILER-DAEMON@gw.example.net\r\nTo: bounce+1@rp.sender.example\r\nSubject: Returned mail: User unknown\r\n\
         MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=gw\r\n\r\n\
         --gw\r\nContent-Type: text/plain\r\n\r\n{text}\r\n--gw\r\nContent-Type: message/rfc822\r\n\r\n{inside}\r\n--gw--\r\n"
    )
}

#[test]
fn an_enclosed_report_counts_only_if_the_outer_notice_names_no_recipient() {
    let message =
        notice_with_enclosed_report("----- The following addresses had permanent delivery errors -----\r\n");
    check(&message, &["jo@example.com bounce 5.1.1 550 bad_mailbox permanent hard"]);
    assert_eq!(read(message.as_bytes()).original_message_id.as_deref(), Some("1@sender.example"));
    // Here the report itself could not be delivered; the recipient that it names does not matter.
    let message =
        notice_with_enclosed_report("<al@example.net>: host in.example.net said: 552 5.2.2 Mailbox full\r\n");
    check(&message, &["al@example.net bounce 5.2.2 552 full permanent -"]);
    let message = notice_with_enclosed_report("<al@example.net>: the mailbox is full\r\n");
    check(&message, &["al@example.net bounce - - full permanent -"]);
}

#[test]
fn international_reports_are_read() {
    let message = report(
        "x",
        "Final-Recipient: utf-8; \\x{fc}ser@b\\x{FC}cher.example\r\nAction: failed\r\nStatus: 5.1.1\r\n",
    )
    .replace("message/delivery-status", "message/global-delivery-status")
    .replace("message/rfc822", "message/global");
    check(&message, &["üser@bücher.example bounce 5.1.1 - bad_mailbox permanent hard"]);
}

#[test]
fn status_fields_are_found_in_text_and_in_broken_multiparts() {
    let fields = "Reporting-MTA: dns; mx.example.net\r\n\r\nFinal-Recipient: rfc822; jo@example.com\r\nAction: failed\r\n\
        Status: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 user unknown\r\n";
    let head = "From: MAILER-DAEMON@mx.example.net\r\nSubject: Delivery Status Notification (Failure)\r\n";
    let expected = ["jo@example.com bounce 5.1.1 550 bad_mailbox permanent hard"];
    check(&format!("{head}\r\nTechnical report:\r\n\r\n{fields}"), &expected);
    let broken = format!(
        "{head}Content-Type: multipart/report; boundary=\"other\"\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n{fields}\r\n--b--\r\n"
    );
    check(&broken, &expected);
}
