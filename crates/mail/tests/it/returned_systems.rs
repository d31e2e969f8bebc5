//! Bounces without status fields: the notices of less common mail systems, from hMailServer to KDDI. Each system names
//! recipient, command and reason in its own way.

use crate::returned_check::{check, notice};

/// Line between the notice and the copy of the original message.
const ORIGINAL_SEPARATOR: &str = "----- Original message -----\r\n";

#[track_caller]
fn check_all(from: &str, subject: &str, text: impl Fn(&str) -> String, cases: &[(&str, &str)]) {
    for (reason, expected) in cases {
        check(
            &notice(from, subject, &text(reason), ORIGINAL_SEPARATOR),
            &[&format!("jo@example.com bounce {expected}")],
        );
    }
}

#[test]
fn hmailserver_notices_quote_the_command_sent() {
    let text = |reason: &str| {
        format!(
            "Your message did not reach some or all of the intended recipients.\r\n\r\nThe following recipient(s) could not be reached:\r\n\r\n\
             jo@example.com\r\n   Error Type: SMTP\r\n   {reason}\r\n"
        )
    };
    check_all(
        "mailer-daemon@mx.example.net",
        "Message undeliverable: Hello",
        text,
        &[
            (
                "hMailServer sent: RCPT TO:<jo@example.com>\r\n   Remote server replied: 550 No such user",
                "- 550 bad_mailbox permanent hard",
            ),
            (
                "No mail servers appear to exists for the recipient's address.",
                "- - bad_domain permanent hard",
            ),
            (
                "Connection to recipients server failed.\r\n   No connection could be made because the target machine actively refused it.",
                "- - timeout permanent -",
            ),
        ],
    );
}

#[test]
fn mdaemon_transcripts_mark_lines_with_time_and_arrow() {
    let text = |session: &str| {
        format!(
            "The attached message had PERMANENT fatal delivery errors!\r\n\r\nFAILED ADDRESS - <jo@example.com>\r\n\r\n\
             --- Session Transcript ---\r\n 10:11:12: --> EHLO mx.example.net\r\n 10:11:12: <-- 250-STARTTLS\r\n{session}\r\n--- End Transcript ---\r\n"
        )
    };
    check_all(
        "MDaemon at mx.example.net <MDaemon@mx.example.net>",
        "Warning: jo@example.com - no!",
        text,
        &[
            (
                " 10:11:12: --> RCPT To:<jo@example.com>\r\n 10:11:12: <-- 550 No such user",
                "- 550 bad_mailbox permanent hard",
            ),
            (
                " 10:11:12: --> DATA\r\n 10:11:12: <-- 354 go\r\n 10:11:12: <-- 550 No such user",
                "- 550 policy permanent -",
            ),
        ],
    );
}

#[test]
fn smartermail_labels_the_recipient() {
    let text = |reason: &str| {
        format!(
            "Could not deliver message to the following recipient(s):\r\n\r\nFailed Recipient: jo@example.com\r\nReason: {reason}\r\n"
        )
    };
    check_all(
        "System Administrator <postmaster@mx.example.net>",
        "Delivery Failure",
        text,
        &[
            ("Remote host said: 550 5.1.1 User unknown", "5.1.1 550 bad_mailbox permanent hard"),
            ("The domain example.com could not be found", "- - bad_domain permanent -"),
            ("Message exceeded maximum retry attempts", "- - timeout permanent -"),
        ],
    );
}

#[test]
fn cisco_explains_the_code_before_it_quotes_the_reply() {
    let text = |reason: &str| {
        format!(
            "The following message to <jo@example.com> was undeliverable.\r\nThe reason for the problem:\r\n{reason}\r\n"
        )
    };
    check_all(
        "Mail Delivery System <MAILER-DAEMON@mx.example.net>",
        "Delivery Status Notification (Failure)",
        text,
        &[
            ("5.1.0 - Unknown address error 550-'No such user'", "- 550 bad_mailbox permanent hard"),
            (
                "5.1.2 - Bad destination host 'DNS Hard Error looking up example.com (MX): NXDomain'",
                "5.1.2 - bad_domain permanent hard",
            ),
            ("5.4.7 - Delivery expired (message too old) 'timeout'", "5.4.7 - timeout permanent -"),
        ],
    );
}

#[test]
fn mmdf_puts_the_address_and_the_reason_in_quotes() {
    let text = |reason: &str| {
        format!(
            "    Your message could not be delivered to\r\n'jo@example.com (host: example.com) (queue: smtp)' for the following\r\nreason:  ' {reason}'\r\n"
        )
    };
    check_all(
        "Memo Service <mmdf@mx.example.net>",
        "Failed mail  (msg.aa01234)",
        text,
        &[("<jo@example.com>... User unknown", "- - bad_mailbox permanent hard")],
    );
}

#[test]
fn sendmail_transcripts_show_expiry_and_refusals() {
    let text = |session: &str| {
        format!(
            "   ----- The following addresses had permanent fatal errors -----\r\n<jo@example.com>\r\n\r\n\
             \x20  ----- Transcript of session follows -----\r\n{session}\r\n"
        )
    };
    check_all(
        "Mail Delivery Subsystem <MAILER-DAEMON@mx.example.net>",
        "Returned mail: see transcript for details",
        text,
        &[
            (
                "... while talking to mx.example.com.:\r\n>>> RCPT To:<jo@example.com>\r\n<<< 450 4.2.0 Greylisted\r\n\
                 Message could not be delivered for 5 days\r\nMessage will be deleted from queue",
                "4.2.0 450 timeout permanent -",
            ),
            ("Cannot send message for 5 days", "- - timeout permanent -"),
            (
                "... while talking to mx.example.com.:\r\n>>> RCPT To:<jo@example.com>\r\n\
                 <<< 550 5.1.1 <jo@example.com>... User unknown",
                "5.1.1 550 bad_mailbox permanent hard",
            ),
        ],
    );
}

#[test]
fn reasons_of_old_exchange_versions_are_recognised() {
    let text = |reason: &str| {
        format!(
            "Your message\r\n\r\n  To:      jo@example.com\r\n  Subject: Hello\r\n\r\n\
             did not reach the following recipient(s):\r\n\r\njo@example.com on Thu, 29 Apr 2010 18:14:36 +0000\r\n\
             \x20   The recipient name is not recognized\r\n    MSEXCH:IMS:ORG:SITE:SERVER {reason}\r\n"
        )
    };
    check_all(
        "System Administrator <postmaster@mx.example.net>",
        "Undeliverable: Hello",
        text,
        &[
            ("0 (000C05A6) Unknown Recipient", "- - bad_mailbox permanent hard"),
            ("0 (000C0595) Ambiguous Recipient", "- - policy permanent -"),
        ],
    );
}

#[test]
fn reasons_in_the_words_of_opensmtpd_are_recognised() {
    let text = |reason: &str| {
        format!(
            "    Hi!\r\n\r\n    This is the MAILER-DAEMON, please DO NOT REPLY to this e-mail.\r\n\r\n\
             \x20   An error has occurred while attempting to deliver a message for\r\n    the following list of recipients:\r\n\r\n\
             jo@example.com: {reason}\r\n\r\n    Below is a copy of the original message:\r\n"
        )
    };
    check_all(
        "Mailer Daemon <MAILER-DAEMON@mx.example.net>",
        "Delivery status notification: error",
        text,
        &[
            ("Destination seem to reject all mails", "- - bad_domain permanent -"),
            ("Could not retrieve credentials", "- - auth_failure permanent -"),
            ("All routes to destination blocked", "- - timeout permanent -"),
            ("Envelope expired", "- - timeout permanent -"),
        ],
    );
}

#[test]
fn kddi_au_notices_have_the_reason_above_the_address() {
    let text = |reason: &str| format!("{reason}\r\n\r\n<jo@example.com>\r\n");
    check_all(
        "Postmaster@ezweb.ne.jp",
        "Mail System Error - Returned Mail",
        text,
        &[
            ("The user(s) account is temporarily limited.", "- - inactive permanent -"),
            ("The user(s) account is temporarily over quota.", "- - full permanent -"),
        ],
    );
}
