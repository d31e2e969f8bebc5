//! A hard verdict puts a living person on the suppression list if it is wrong. These words are near to those that kill an
//! address and must not, in whatever phase; beside each stand the ones that do.

use postroad_mail::{Reply, ReplyPhase, classify, classify_in};

/// Whether the reply suppresses, in answer to each command and where nobody knows which.
fn suppresses(reply: &str) -> bool {
    let reply = Reply::parse(reply).unwrap_or_else(|problem| panic!("{reply}: {problem}"));
    classify(&reply).hard || ReplyPhase::ALL.iter().any(|phase| classify_in(*phase, &reply).hard)
}

#[track_caller]
fn check(near: &[&str], sure: &[&str]) {
    for reply in near {
        assert!(!suppresses(reply), "{reply}");
    }
    for reply in sure {
        assert!(suppresses(reply), "{reply}");
    }
}

#[test]
fn an_account_that_cannot_be_had_now_is_not_dead() {
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
fn a_domain_out_of_reach_is_not_a_domain_that_is_gone() {
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

/// In notices nobody knows what was answered: words that may be about either side need a code.
#[test]
fn words_about_either_side_need_a_command_or_a_code() {
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
