//! A wrong hard verdict suppresses the address of a living person. Each test has replies that must not be hard in any
//! phase, and similar ones that must be.

use postroad_mail::{Reply, ReplyPhase, classify, classify_in};

/// Whether the reply is hard in any phase, or if the phase is unknown.
fn is_hard(reply: &str) -> bool {
    let reply = Reply::parse(reply).unwrap_or_else(|problem| panic!("{reply}: {problem}"));
    classify(&reply).hard || ReplyPhase::ALL.iter().any(|phase| classify_in(*phase, &reply).hard)
}

#[track_caller]
fn check(not_hard: &[&str], hard: &[&str]) {
    for reply in not_hard {
        assert!(!is_hard(reply), "{reply}");
    }
    for reply in hard {
        assert!(is_hard(reply), "{reply}");
    }
}

#[test]
fn an_unavailable_account_is_not_dead() {
    check(
        &[
            "550 account unavailable",
            "550 Recipient account is unavailable",
            "550 I cannot deliver mail for jo",
            "550 Missing home directory",
            "550 Recipient not ok",
            "550 5.1.1 User <jo@example.com> disabled",
            "550 5.1.1 jo@example.com is suspended",
            "550 Recipient <jo@example.com> account frozen",
            "550 That mailbox was closed for the holidays, is on hold",
            "550 5.1.1 RCP-P2 http://postmaster.facebook.com/response_codes",
            "550 The recipient cannot be verified",
        ],
        &[
            "550 5.1.1 account unavailable",
            "550 5.1.1 I cannot deliver mail for jo",
            "550 account does not exist",
            "550 account has been closed",
            "550 5.1.1 RCP-P1 http://postmaster.facebook.com/response_codes",
        ],
    );
}

#[test]
fn an_unreachable_domain_is_not_dead() {
    check(
        &[
            "554 The mail could not be delivered to the recipient because the domain is not reachable.",
            "550 No route found to domain example.com from server mx.example.com",
            "517-Domain does not exist: example.org\n517 Invalid sender",
            "550 HELO: unknown host",
            "550 Client host unknown: unknown host [192.0.2.1]",
            "550 Unknown host connecting",
            "550 5.4.4 Name service error: Malformed or unexpected name server reply",
        ],
        &[
            "550 Recipient domain does not exist",
            "550 5.1.2 the domain is not reachable",
            "550 The server for this recipient could not be found in Domain Name Service (DNS).",
            "550 5.1.2 Invalid domain",
        ],
    );
}

#[test]
fn a_refusal_of_us_does_not_count_against_the_recipient() {
    check(
        &[
            "550 Support for TLS 1.0 has been discontinued",
            "550 Your account has been terminated",
            "550 The sending account has been closed, sending account",
            "550 You must have an account here to send mail",
        ],
        &[
            "550 This address has been discontinued",
            "550 account has been terminated",
            "550 user doesn't have an account here",
        ],
    );
}

/// If the refused command is unknown, as in many notices, these texts may be about the sender or about the recipient.
#[test]
fn texts_that_may_be_about_the_sender_are_hard_only_at_rcpt() {
    for reply in [
        "553 Requested action not taken: mailbox name not allowed",
        "550 Invalid domain",
        "550 This host does not receive mail",
        "550 The address is not valid",
        "550 Sorry, I couldn't find any account by that name",
    ] {
        let read = Reply::parse(reply).unwrap();
        assert!(!classify(&read).hard, "{reply}");
        assert!(classify_in(ReplyPhase::Recipient, &read).hard, "{reply}");
        assert!(!classify_in(ReplyPhase::MailFrom, &read).hard, "{reply}");
    }
}
