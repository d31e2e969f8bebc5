//! Bounces without status fields: the texts of qmail, Exim, Exchange, Gmail and others.

use crate::returned_check::{check, notice};

/// Summary of a bounce that proves that the mailbox does not exist.
const DEAD_ADDRESS: &str = "jo@example.com bounce 5.1.1 550 bad_mailbox permanent hard";

#[test]
fn qmail_writes_the_reason_below_the_address() {
    let message = |reason: &str| {
        notice(
            "MAILER-DAEMON@mx.example.net",
            "failure notice",
            &format!(
                "Hi. This is the qmail-send program at mx.example.net.\r\nI'm afraid I wasn't able to deliver your message to the following addresses.\r\n\
                 This is a permanent error; I've given up. Sorry it didn't work out.\r\n\r\n<jo@example.com>:\r\n{reason}\r\n"
            ),
            "--- Below this line is a copy of the message.\r\n",
        )
    };
    for (reason, expected) in [
        (
            "Sorry, no mailbox here by that name. (#5.1.1)",
            "jo@example.com bounce 5.1.1 - bad_mailbox permanent hard",
        ),
        (
            "192.0.2.1 does not like recipient.\r\nRemote host said: 550 5.1.1 <jo@example.com>... User unknown\r\nGiving up on 192.0.2.1.",
            DEAD_ADDRESS,
        ),
        (
            "Connected to 192.0.2.1 but sender was rejected.\r\nRemote host said: 550 5.7.1 <x@sender.example>... Access denied",
            "jo@example.com bounce 5.7.1 550 policy permanent -",
        ),
        (
            "192.0.2.1 failed after I sent the message.\r\nRemote host said: 550 user unknown",
            "jo@example.com bounce - 550 policy permanent -",
        ),
        (
            "Sorry, I couldn't find any host named example.com. (#5.1.2)",
            "jo@example.com bounce 5.1.2 - bad_domain permanent hard",
        ),
        (
            "Sorry, I wasn't able to establish an SMTP connection. (#4.4.1)\r\nI'm not going to try again; this message has been in the queue too long.",
            "jo@example.com bounce 4.4.1 - timeout permanent -",
        ),
        (
            "The users mailfolder is over the allowed quota (size). (#5.2.2)",
            "jo@example.com bounce 5.2.2 - full permanent -",
        ),
    ] {
        check(&message(reason), &[expected]);
    }
}

#[test]
fn exim_names_the_address_and_the_command() {
    let message = |reason: &str| {
        notice(
            "Mail Delivery System <Mailer-Daemon@mx.example.net>",
            "Mail delivery failed: returning message to sender",
            &format!(
                "This message was created automatically by mail delivery software.\r\n\r\nA message that you sent could not be delivered to one or more of its\r\n\
                 recipients. This is a permanent error. The following address(es) failed:\r\n\r\n  jo@example.com\r\n{reason}\r\n"
            ),
            "------ This is a copy of the message, including all the headers. ------\r\n\r\nReturn-path: <x@sender.example>\r\n",
        )
    };
    for (reason, expected) in [
        (
            "    SMTP error from remote mail server after RCPT TO:<jo@example.com>:\r\n    host in.example.com [192.0.2.1]: 550 5.1.1 <jo@example.com>:\r\n    Recipient address rejected: User unknown",
            DEAD_ADDRESS,
        ),
        (
            "    host in.example.com [192.0.2.1]\r\n    SMTP error from remote mail server after end of data:\r\n    550 : User unknown",
            "jo@example.com bounce - 550 policy permanent -",
        ),
        (
            "    SMTP error from remote mail server after MAIL FROM:<x@sender.example> SIZE=1543:\r\n    553 5.1.0 sender.example does not exist E2110",
            "jo@example.com bounce 5.1.0 553 policy permanent -",
        ),
        (
            "    host in.example.com [192.0.2.1]\r\n    SMTP error from remote mail server after EHLO mx.example.net:\r\n    550 Rejected",
            "jo@example.com bounce - 550 policy permanent -",
        ),
        (
            "    host in.example.com [192.0.2.1]\r\n    SMTP error from remote mail server after initial connection:\r\n    550 Host unknown",
            "jo@example.com bounce - 550 policy permanent -",
        ),
        ("    Unrouteable address", "jo@example.com bounce - - bad_domain permanent hard"),
        ("    retry timeout exceeded", "jo@example.com bounce - - timeout permanent -"),
        ("    mailbox is full: retry timeout exceeded", "jo@example.com bounce - - full permanent -"),
        (
            "    all relevant MX records point to non-existent hosts",
            "jo@example.com bounce - - bad_domain permanent hard",
        ),
    ] {
        check(&message(reason), &[expected]);
    }
}

#[test]
fn a_notice_may_have_any_sender_if_it_encloses_the_message() {
    let message = |text: &str| {
        format!(
            "From: no-reply@isp.example\r\nTo: bounce+1@rp.sender.example\r\nSubject: Mail\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n{text}\r\n\
             --b\r\nContent-Type: message/rfc822\r\n\r\nFrom: news@sender.example\r\nTo: jo@example.com\r\n\r\nHello\r\n--b--\r\n"
        )
    };
    check(
        &message(
            "Your mail could not be delivered to: <jo@example.com>\r\n    As their mailbox is full.\r\n",
        ),
        &["jo@example.com bounce - - full permanent -"],
    );
    check(&message("Look what I got from jo@example.com."), &["- other - - - - -"]);
}

#[test]
fn a_list_of_the_envelope_is_no_proof_of_the_command() {
    let text = "Error message below:\r\n550 - Requested action not taken: no such user here\r\n\r\nMessage details:\r\n\
        \x20 MAIL FROM: x@sender.example\r\n  RCPT TO: jo@example.com\r\n";
    check(
        &notice("postmaster@mx.example.net", "Undelivered", text, "----- Original message -----\r\n"),
        &["jo@example.com bounce - 550 policy permanent -"],
    );
}

#[test]
fn unknown_users_in_notices_of_mailenable_and_courier_are_dead_addresses() {
    let mailenable = "MailEnable: Message could not be delivered to some recipients.\r\nThe following recipient(s) could not be reached:\r\n\r\n\
        \tRecipient: [SMTP:jo@example.com]\r\n\tReason: Remote SMTP Server Returned: 550 User unknown\r\n\r\n";
    check(
        &notice(
            "postmaster@mx.example.net",
            "Message Delivery Failure",
            mailenable,
            "Message headers follow:\r\n",
        ),
        &["jo@example.com bounce - 550 bad_mailbox permanent hard"],
    );
    let courier = "This is a delivery status notification from mx.example.net,\r\nrunning the Courier mail server, version 0.65.2.\r\n\r\n\
        \x20                          UNDELIVERABLE MAIL\r\n\r\nYour message to the following recipients cannot be delivered:\r\n\r\n\
        <jo@example.com>:\r\n    mx.example.com [192.0.2.1]:\r\n<<< 550 User unknown\r\n\r\n";
    check(
        &notice("postmaster@mx.example.net", "NOTICE: mail delivery status.", courier, ""),
        &["jo@example.com bounce - 550 bad_mailbox permanent hard"],
    );
}

#[test]
fn the_session_in_a_report_of_postfix_to_its_postmaster_is_read() {
    let text = "Transcript of session follows.\r\n\r\n Out: 220 mx.example.net ESMTP\r\n In:  EHLO a.example\r\n Out: 250-STARTTLS\r\n Out: 250 DSN\r\n\
        \x20In:  RCPT TO:<jo@example.com>\r\n Out: 250 2.1.5 Ok\r\n In:  DATA\r\n Out: 354 End data\r\n Out: 451 4.3.0 Error: queue file write error\r\n\
        \x20In:  QUIT\r\n Out: 221 2.0.0 Bye\r\n";
    check(
        &notice("MAILER-DAEMON@mx.example.net", "Postfix SMTP server: errors from a.example", text, ""),
        &["jo@example.com bounce 4.3.0 451 other permanent -"],
    );
}

#[test]
fn several_recipients_have_a_paragraph_each() {
    let text = "This is a permanent error. The following addresses failed:\r\n\r\n\"jo@example.com\":\r\nSMTP error from remote server after RCPT command:\r\n\
        host: in.example.com\r\n5.1.1 <jo@example.com>... User Unknown\r\n\r\n\"al@example.com\":\r\nSMTP error from remote server after RCPT command:\r\n\
        host: in.example.com\r\n5.2.2 <al@example.com>... Mailbox Full\r\n";
    check(
        &notice(
            "MAILER-DAEMON@gmx.example",
            "Mail delivery failed",
            text,
            "--- The header of the original message is following. ---\r\n",
        ),
        &[
            "jo@example.com bounce 5.1.1 - bad_mailbox permanent hard",
            "al@example.com bounce 5.2.2 - full permanent -",
        ],
    );
    // An old version of Sendmail.
    let text = "   ----- Transcript of session follows -----\r\nWhile talking to in.example.com:\r\n>>> MAIL From:<x@sender.example>\r\n\
        <<< 501 <x@sender.example>... no access from mail server [192.0.2.1] which is an open relay.\r\n\
        554 <jo@example.com>... Remote protocol error\r\n\
        550 example.org (smtp)... 550 Host unknown\r\n554 <al@example.org>... 550 Host unknown (Authoritative answer from name server)\r\n\
        While talking to in.example.net:\r\n>>> RCPT To:<bo@example.net>\r\n<<< 550 No such user here.\r\n550 <bo@example.net>... User unknown\r\n";
    check(
        &notice(
            "Mail Delivery Subsystem <MAILER-DAEMON>",
            "Returned mail: User unknown",
            text,
            "   ----- Unsent message follows -----\r\n",
        ),
        &[
            "jo@example.com bounce - 501 reputation permanent -",
            "al@example.org bounce - 554 bad_domain permanent hard",
            "bo@example.net bounce - 550 bad_mailbox permanent hard",
        ],
    );
}

#[test]
fn exchange_names_the_recipient_in_the_middle_of_the_text() {
    let text = "Your message\r\n\r\n  To:      Jo\r\n  Subject: Hello\r\n\r\ndid not reach the following recipient(s):\r\n\r\n\
        jo@example.com on Thu, 5 Nov 2026 10:00:00 +0000\r\n    The recipient name is not recognized\r\n    MSEXCH:IMS:X:Y:Z 0 (000C05A6) Unknown Recipient\r\n";
    check(
        &notice("System Administrator <postmaster@mx.example.net>", "Undeliverable: Hello", text, ""),
        &["jo@example.com bounce - - bad_mailbox permanent hard"],
    );
    let text = "Delivery has failed to these recipients or groups:\r\n\r\njo@example.com<mailto:jo@example.com>\r\nThe address wasn't found.\r\n\r\n\
        Diagnostic information for administrators:\r\nGenerating server: X.prod.outlook.com\r\njo@example.com\r\n\
        Remote Server returned '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup'\r\n";
    check(
        &notice(
            "<postmaster@mx.example.net>",
            "Undeliverable: Hello",
            text,
            "Original message headers:\r\n\r\n",
        ),
        &["jo@example.com bounce 5.1.10 550 bad_mailbox permanent hard"],
    );
}

#[test]
fn gmail_and_yahoo_name_the_recipient_above_the_reason() {
    let gmail = "Delivery to the following recipient failed permanently:\r\n\r\n     jo@example.com\r\n\r\nTechnical details of permanent failure: \r\n\
        Google tried to deliver your message, but it was rejected by the server for the recipient domain example.com by in.example.com. [192.0.2.1].\r\n\r\n\
        The error that the other server returned was:\r\n550 5.1.1 <jo@example.com>... User Unknown\r\n";
    check(
        &notice(
            "Mail Delivery Subsystem <mailer-daemon@googlemail.com>",
            "Delivery Status Notification (Failure)",
            gmail,
            "----- Original message -----\r\n",
        ),
        &[DEAD_ADDRESS],
    );
    let yahoo = "Sorry, we were unable to deliver your message to the following address.\r\n\r\n<jo@example.com>:\r\nNo mx record found for domain=example.com\r\n";
    check(
        &notice(
            "MAILER-DAEMON@yahoo.com",
            "Failure Notice",
            yahoo,
            "--- Below this line is a copy of the message.\r\n",
        ),
        &["jo@example.com bounce - - bad_domain permanent hard"],
    );
}

#[test]
fn the_recipient_may_be_named_in_a_sentence_or_in_a_header_or_not_at_all() {
    let text = "There was an error delivering your mail to <jo@example.com>.\r\n\r\nin.example.com [192.0.2.1] did not like our RCPT TO:\r\n550 5.1.1 no\r\n";
    check(
        &notice("MAILER-DAEMON <>", "Mail delivery failed", text, "Message headers follow.\r\n\r\n"),
        &[DEAD_ADDRESS],
    );
    let named = "Your group message was not posted. See https://groups.google.com/support/ for help.\r\n";
    let message = notice("mailer-daemon@googlemail.com", "Delivery Status Notification (Failure)", named, "");
    check(
        &format!("X-Failed-Recipients: list@googlegroups.com\r\n{message}"),
        &["list@googlegroups.com bounce - - policy permanent -"],
    );
    let nobody = "   ----- Transcript of session follows -----\r\n421 example.com (smtp)... Deferred: Connection timed out\r\n";
    check(
        &notice(
            "MAILER-DAEMON@mx.example.net",
            "Returned mail: Cannot send message for 4 days",
            nobody,
            "   ----- Unsent message follows -----\r\n",
        ),
        &["jo@example.com bounce - 421 timeout permanent -"],
    );
}

#[test]
fn other_charsets_and_html_are_read() {
    let html = "From: postmaster@mx.example.net\r\nSubject: Undeliverable\r\nContent-Type: text/html; charset=utf-8\r\n\r\n\
        <html><style>p { color: #550 }</style><p>Not delivered:</p><p>jo@example.com</p><p>550 5.1.1 Benutzer&nbsp;unbekannt</p></html>";
    check(html, &[DEAD_ADDRESS]);
    // ISO-2022-JP: "The mailbox does not exist", below the address.
    let japanese = b"From: postmaster@mx.example.jp\r\nSubject: failure notice\r\nContent-Type: text/plain; charset=iso-2022-jp\r\n\r\njo@example.com\r\n\x1b$B%f!<%6$,B8:_$7$^$;$s\x1b(B\r\n";
    check(std::str::from_utf8(japanese).unwrap(), &["jo@example.com bounce - - bad_mailbox permanent hard"]);
}

#[test]
fn unknown_user_is_hard_only_if_the_reply_to_rcpt_or_the_reporting_host_says_so() {
    let message = |reply: &str| {
        notice(
            "MAILER-DAEMON@mx.example.net",
            "Failure Notice",
            &format!(
                "Sorry, we were unable to deliver your message.\r\n\r\n<jo@example.com>:\r\n{reply}\r\n"
            ),
            "--- Below this line is a copy of the message.\r\n",
        )
    };
    check(
        &message("Remote host said: 550 User unknown [RCPT_TO]"),
        &["jo@example.com bounce - 550 bad_mailbox permanent hard"],
    );
    check(
        &message("Remote host said: 550 User unknown"),
        &["jo@example.com bounce - 550 policy permanent -"],
    );
    // Postfix and Sendmail begin a reply with the address only when they refuse that recipient.
    for reply in ["550 <jo@example.com>: User unknown", "550 <jo@example.com>... User unknown"] {
        check(&message(reply), &["jo@example.com bounce - 550 bad_mailbox permanent hard"]);
    }
    // No remote host: the reporting host itself has the mailboxes.
    check(&message("User unknown"), &["jo@example.com bounce - - bad_mailbox permanent hard"]);
}

#[test]
fn a_reason_for_one_recipient_does_not_apply_to_another() {
    let text = "An error has occurred while attempting to deliver a message for\r\nthe following list of recipients:\r\n\r\n\
        jo@example.com: 550 5.1.1 <jo@example.com>... User unknown\r\nal@example.com: Destination seems to sleep\r\n";
    check(
        &notice(
            "MAILER-DAEMON@mx.example.net",
            "Delivery status notification",
            text,
            "    Below is a copy of the original message:\r\n",
        ),
        &[
            "jo@example.com bounce 5.1.1 550 bad_mailbox permanent hard",
            "al@example.com bounce - - other permanent -",
        ],
    );
    let text = "Delivery to the following recipients failed.\r\n\r\n  jo@example.com\r\n  al@example.com\r\n\r\n552 5.2.2 Over quota\r\n";
    check(
        &notice("postmaster@mx.example.net", "Delivery Status Notification (Failure)", text, ""),
        &[
            "jo@example.com bounce 5.2.2 552 full permanent -",
            "al@example.com bounce 5.2.2 552 full permanent -",
        ],
    );
}
