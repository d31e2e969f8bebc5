//! Notices with several codes, commands or replies: which of them decides the class.

use crate::returned_check::{check, notice, report};

#[test]
fn the_refused_command_decides_whether_an_unknown_user_is_hard() {
    let transcript = |command: &str, reply: &str| {
        format!(
            "   ----- Transcript of session follows -----\r\n... while talking to in.example.com.:\r\n{command}<<< {reply}\r\n"
        )
    };
    let fields = |status: &str, reply: &str| {
        format!(
            "Reporting-MTA: dns; mx.example.net\r\n\r\nFinal-Recipient: rfc822; jo@example.com\r\nAction: failed\r\n\
             Status: {status}\r\nRemote-MTA: dns; in.example.com\r\nDiagnostic-Code: smtp; {reply}\r\n"
        )
    };
    let (rcpt, data) = (">>> RCPT To:<jo@example.com>\r\n", ">>> DATA\r\n");
    for (command, status, reply, expected) in [
        (data, "5.0.0", "550 Unknown user", "5.0.0 550 policy permanent -"),
        (data, "5.1.1", "550 5.1.1 Unknown user", "5.1.1 550 bad_mailbox permanent hard"),
        (rcpt, "5.1.1", "550 Unknown user", "5.1.1 550 bad_mailbox permanent hard"),
        (rcpt, "5.7.1", "553 Unknown user", "5.7.1 553 policy permanent -"),
        // The remote host's greeting, before any command.
        ("", "5.0.0", "554 in.example.com", "5.0.0 554 policy permanent -"),
        ("", "5.1.1", "550 Unknown host", "5.1.1 550 policy permanent -"),
    ] {
        check(
            &report(&transcript(command, reply), &fields(status, reply)),
            &[&format!("jo@example.com bounce {expected}")],
        );
    }
}

#[test]
fn a_failed_recipient_with_status_4_0_0_is_permanent() {
    let fields = "Reporting-MTA: dns; mx.example.net\r\n\r\nFinal-Recipient: rfc822; jo@example.com\r\nAction: failed\r\nStatus: 4.0.0\r\n\
        Diagnostic-Code: smtp; DNS Error: DNS type 'mx' lookup of example.com responded with code NXDOMAIN Domain name not found\r\n";
    check(
        &report("The domain could not be found.\r\n", fields),
        &["jo@example.com bounce 4.0.0 - bad_domain permanent hard"],
    );
}

#[test]
fn temporary_refusals_until_expiry_are_timeouts_unless_they_give_a_reason() {
    let fields = |reply: &str| {
        format!(
            "Reporting-MTA: dns; mx.example.net\r\n\r\nFinal-Recipient: rfc822; jo@example.com\r\nAction: failed\r\n\
             Status: 4.4.7\r\nRemote-MTA: dns; in.example.com\r\nDiagnostic-Code: smtp; {reply}\r\n"
        )
    };
    for (reply, expected) in [
        ("451 4.7.1 Greylisting in action, please come back later", "4.7.1 451 timeout permanent -"),
        ("451 4.3.0 Not now", "4.4.7 451 timeout permanent -"),
        ("452 4.2.2 Mailbox full", "4.2.2 452 full permanent -"),
    ] {
        check(
            &report("Message could not be delivered for 5 days\r\n", &fields(reply)),
            &[&format!("jo@example.com bounce {expected}")],
        );
    }
    // Exim's notice of the same failure.
    let text = "This is a permanent error. The following address(es) failed:\r\n\r\n  jo@example.com\r\n\
        \x20   host in.example.com [192.0.2.1]\r\n    SMTP error from remote mail server after RCPT TO:<jo@example.com>:\r\n\
        \x20   450 4.2.0 Greylisted: retry timeout exceeded\r\n";
    check(
        &notice(
            "Mailer-Daemon@mx.example.net",
            "Mail delivery failed",
            text,
            "----- Original message -----\r\n",
        ),
        &["jo@example.com bounce 4.2.0 450 timeout permanent -"],
    );
}

#[test]
fn the_category_of_powermta_is_used_if_the_reply_gives_no_reason() {
    let fields = |reply: &str, category: &str| {
        format!(
            "Reporting-MTA: dns; mx.example.net\r\n\r\nFinal-Recipient: rfc822; jo@example.com\r\nAction: failed\r\nStatus: 5.0.0\r\n\
             Diagnostic-Code: smtp;{reply}\r\nX-PowerMTA-BounceCategory: {category}\r\n"
        )
    };
    // A category changes only the class: `bad-mailbox` does not prove that the address is dead.
    for (reply, category, expected) in [
        ("550 Sorry", "spam-related", "spam_block permanent -"),
        ("550 Sorry", "bad-mailbox", "bad_mailbox permanent -"),
        ("550 Sorry", "other", "other permanent -"),
        ("550 Mailbox full", "bad-mailbox", "full permanent -"),
    ] {
        check(
            &report("<jo@example.com>  delivery failed\r\n", &fields(reply, category)),
            &[&format!("jo@example.com bounce 5.0.0 550 {expected}")],
        );
    }
}

#[test]
fn the_status_in_the_text_of_an_exchange_notice_is_read() {
    let message = |text: &str, status: &str| {
        notice(
            "System Administrator <postmaster@mx.example.net>",
            "Undeliverable: Hello",
            &format!(
                "Your message did not reach the following recipient(s):\r\n\r\njo@example.com on 29/04/2026 18:14\r\n    {text}\r\n\
                 \x20   <mx.example.net #{status}>\r\n"
            ),
            "----- Original message -----\r\n",
        )
    };
    for (text, status, expected) in [
        ("Could not deliver the message in the time limit.", "4.4.7", "4.4.7 - timeout permanent -"),
        ("The message has a type that is not supported.", "5.6.1", "5.6.1 - content permanent -"),
        ("Contact your administrator.", "5.1.1", "5.1.1 - bad_mailbox permanent hard"),
        // 5.5.0 is Exchange's status for any refusal: it does not prove that the recipient was refused.
        ("Contact your administrator.", "5.5.0 smtp;550 No such user", "5.5.0 550 policy permanent -"),
        (
            "The destination server for this recipient could not be found in Domain Name Service (DNS).",
            "5.4.0",
            "5.4.0 - bad_domain permanent hard",
        ),
    ] {
        check(&message(text, status), &[&format!("jo@example.com bounce {expected}")]);
    }
}

#[test]
fn the_session_state_in_gmail_notices_identifies_the_refused_command() {
    let message = |reply: &str| {
        notice(
            "Mail Delivery Subsystem <mailer-daemon@googlemail.com>",
            "Delivery Status Notification (Failure)",
            &format!(
                "Delivery to the following recipient failed permanently:\r\n\r\n     jo@example.com\r\n\r\n\
                 The error that the other server returned was: {reply}.\r\n"
            ),
            "----- Original message -----\r\n",
        )
    };
    for (reply, expected) in [
        ("550 550 No such user (state 14)", "jo@example.com bounce - 550 bad_mailbox permanent hard"),
        ("550 550 No such user (state 18)", "jo@example.com bounce - 550 policy permanent -"),
        ("550 550 No such user (state 13)", "jo@example.com bounce - 550 policy permanent -"),
        ("554 554 mx.example.com (state 6)", "jo@example.com bounce - 554 policy permanent -"),
    ] {
        check(&message(reply), &[expected]);
    }
}
