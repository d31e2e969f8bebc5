//! Replies of all kinds of receivers, and the consequences of each for message, address and destination. The samples of
//! the rule file test which rule matches; these tests check the verdict.

use postroad_mail::{Reply, ReplyPhase, Verdict, classify, classify_in};

/// Class and outcome of a verdict, as the tables write them. Outcomes: gone (permanent and hard), no (permanent), wait,
/// slow (wait and throttle).
fn class_and_outcome(verdict: &Verdict) -> (&'static str, &'static str) {
    let outcome = match (verdict.permanent, verdict.hard, verdict.throttle) {
        (true, true, false) => "gone",
        (true, false, false) => "no",
        (false, false, false) => "wait",
        (false, false, true) => "slow",
        _ => "impossible",
    };
    (verdict.class.as_str(), outcome)
}

/// Checks a table with one row per line: class, outcome, reply. `\n` in a reply is a line break. The refused command is
/// unknown.
#[track_caller]
fn check(table: &str) {
    check_with(table, &[None]);
}

/// Like `check`, and also in every phase: as the greeting, or as the reply to MAIL, RCPT or the message.
#[track_caller]
fn check_in_all_phases(table: &str) {
    let phases = ReplyPhase::ALL.map(Some);
    check_with(table, &[&phases[..], &[None]].concat());
}

#[track_caller]
fn check_with(table: &str, phases: &[Option<ReplyPhase>]) {
    let mut wrong = Vec::new();
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let mut parts = row.splitn(3, ' ');
        let mut part = || parts.next().expect("class, outcome, reply").trim();
        let (class, outcome, reply) = (part(), part(), part().replace("\\n", "\n"));
        let reply = Reply::parse(&reply).unwrap_or_else(|problem| panic!("{reply}: {problem}"));
        for phase in phases {
            let verdict = phase.map_or_else(|| classify(&reply), |phase| classify_in(phase, &reply));
            let (found_class, found_outcome) = class_and_outcome(&verdict);
            if (found_class, found_outcome) != (class, outcome) {
                let (rule, at) = (verdict.rule, phase.map_or("any command", ReplyPhase::as_str));
                wrong.push(format!(
                    "{found_class} {found_outcome} by {rule} at {at}, not {class} {outcome}: {row}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn replies_about_dead_addresses_are_bad_mailbox_or_bad_domain() {
    check(
        r"
        bad_mailbox gone 550 5.1.1 User unknown
        bad_mailbox gone 550 5.1.1 <jo@example.com>: Recipient address rejected: User unknown in local recipient table
        bad_mailbox gone 550 5.1.1 <jo@icloud.com>: inactive email address
        bad_mailbox gone 550 5.1.1 unknown or illegal alias: jo@icloud.com
        bad_mailbox gone 550 5.1.1 Not our Customer
        bad_mailbox gone 550 5.1.1 RESOLVER.ADR.RecipNotFound; not found
        bad_mailbox gone 550 5.7.1 <jo@example.com>: Recipient address rejected: user unknown
        bad_mailbox gone 550 5.2.1 <jo@example.com>: Recipient address rejected: User unknown
        bad_mailbox gone 550 5.4.1 [jo@example.com]: Recipient address rejected: Access denied [BN8NAM12FT037.eop-nam12.prod.protection.outlook.com]
        bad_mailbox gone 550 sorry, no mailbox here by that name. (#5.1.1)
        bad_mailbox gone 511 sorry, no mailbox here by that name (#5.1.1 - chkuser)
        bad_mailbox gone 550 Message was not accepted -- invalid mailbox.  Local mailbox jo@mail.ru is unavailable: user not found
        bad_mailbox gone 554 delivery error: dd jo@yahoo.com is no longer valid.
        bad_mailbox gone 550 5.5.1 Recipient rejected - mailbox not found
        bad_mailbox gone 550-jo@example.com\n550 Unknown local part jo in <jo@example.com>
        bad_domain gone 553 5.1.2 We weren't able to find the recipient domain.
        bad_domain gone 550 5.1.2 Bad destination system address
        bad_domain gone 556 5.1.10 Domain does not accept mail
        bad_domain gone 550 No such domain at this location
        bad_domain gone 550 5.4.4 [internal] no MX or A for domain
        bad_mailbox gone 550 empfänger unbekannt / recipient unknown
        bad_mailbox wait 450 4.1.1 <jo@example.com>: Recipient address rejected: User unknown in virtual alias table
        ",
    );
}

#[test]
fn full_mailboxes_are_retried_and_disabled_ones_are_not() {
    check(
        r"
        full wait 552 5.2.2 Mailbox full
        full wait 452-4.2.2 The recipient's inbox is out of storage space. Please direct the\n452 4.2.2 recipient to https://support.google.com/mail/?p=OverQuotaTemp - gsmtp
        full wait 452 4.2.2 The email account that you tried to reach is over quota.
        full wait 552 5.2.2 STOREDRV.Deliver; mailbox full. The following information should help identify the cause
        full wait 554 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException.MapiExceptionShutoffQuotaExceeded
        full wait 552 Mailbox limit exceeded for this email address
        full wait 550 The recipient's mailbox has exceeded its disk space limit
        full slow 452 Insufficient storage
        full slow 452 4.3.1 Insufficient system storage
        full slow 452 Requested action not taken: insufficient system storage
        full wait 552 Requested mail action aborted: exceeded storage allocation
        inactive no 550 5.2.1 The email account that you tried to reach is inactive.
        inactive no 550 5.2.1 Mailbox disabled, not accepting messages
        inactive no 525 5.7.13 Disabled recipient address
        inactive no 554 5.7.1 <jo@example.com>: Recipient address rejected: account is locked
        inactive no 550 This account has been disabled or discontinued [#101].
        inactive gone 550 account has been closed
        ",
    );
}

#[test]
fn blocklist_and_reputation_refusals_throttle() {
    check(
        r"
        reputation slow 554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using Barracuda Reputation; http://www.barracudacentral.org/reputation?r=1&ip=192.0.2.1
        reputation slow 550 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using Spamhaus. To request removal from this list see https://www.spamhaus.org/query/ip/192.0.2.1 (AS3130)
        reputation slow 550 5.7.1 Your email was rejected due to having a domain present in the Spamhaus DBL -- see https://www.spamhaus.org/dbl/
        reputation slow 550-JunkMail rejected - mail.example.org (mail.example.org) [192.0.2.1]:40000 is in\n550 an RBL, see https://www.spamhaus.org/query/ip/192.0.2.1
        reputation slow 550 5.7.1 [192.0.2.1] Messages from this network are on our block list
        reputation slow 421-4.7.0 [192.0.2.1 15] Our system has detected that this message is suspicious\n421-4.7.0 due to the very low reputation of the sending IP address.\n421 4.7.0 mail sent from your IP address has been temporarily rate limited.
        reputation slow 550 5.7.606 Access denied, banned sending IP [192.0.2.1]
        reputation slow 550 5.7.511 Access denied, banned sender[192.0.2.1].
        reputation slow 451 4.7.650 The mail server [192.0.2.1] has been temporarily rate limited due to IP reputation.
        reputation slow 421 4.7.0 [TS01] Messages from 192.0.2.1 temporarily deferred due to user complaints - 4.16.55.1
        reputation slow 554 5.7.1 Client host rejected: Abus detecte GU_EIB_02
        reputation slow 550 5.7.1 Recipient not on bypass list, your IP has been found on a block list
        reputation slow 521 5.7.1 Service unavailable; client [192.0.2.1] blocked using b.barracudacentral.org
        reputation slow 550 Mail from 192.0.2.1 refused: blacklisted by uceprotect
        reputation slow 554-kundenserver.de (mxeue110) Nemesis ESMTP Service not available\n554-No SMTP service\n554-IP address is block listed.\n554 For explanation visit http://postmaster.1and1.com/error-messages?ip=192.0.2.1
        ",
    );
}

#[test]
fn spam_verdicts_and_policies_are_distinguished() {
    check(
        r#"
        spam_block slow 550 5.1.1 rejected due to spam
        spam_block slow 554 5.7.1 Message rejected as spam by Content Filtering.
        spam_block slow 550 High probability of spam
        spam_block slow 550 5.7.1 message content rejected due to spam
        spam_block slow 554 rejected due to spam content
        spam_block slow 550 5.7.350 Remote server returned message detected as spam -> 554 5.7.1
        spam_block slow 550 "The mail server detected your message as spam and has prevented delivery."
        spam_block slow 550 5.7.1 This message looks like spam
        policy slow 550 5.7.1 rejected
        policy slow 550 5.7.1 Access denied
        policy slow 554 Message not allowed - [PH01] Email not accepted for policy reasons. Please visit https://postmaster.yahooinc.com/error-codes
        policy slow 554 Mail from news@example.org rejected for policy reasons.
        policy slow 554 Email rejected due to security policies - https://community.mimecast.com/docs/DOC-1369#554
        policy slow 550 5.7.1 Policy rejection on the target address
        policy slow 501 Connection rejected by policy [7.7] 16016, please visit www.messagelabs.com/support for more details about this error message.
        policy slow 450 4.7.1 <mail.example.org>: Helo command rejected: Host not found
        rate_limited slow 421 4.7.0 Try again later, closing connection.
        policy wait 451 4.7.1 Greylisting in effect, please come back later
        policy wait 450 4.2.0 <jo@example.com>: Recipient address rejected: Greylisted for 300 seconds
        policy no 550 5.7.1 RESOLVER.RST.NotAuthorized; not authorized
        policy no 550 5.7.129 RESOLVER.RST.RestrictedToRecipientsPermission; not authorized
        policy no 550 5.1.0 <news@example.org> sender rejected
        policy wait 530 5.7.0 Must issue a STARTTLS command first. - gsmtp
        "#,
    );
}

#[test]
fn authentication_failures_and_denied_relaying_are_distinguished() {
    check(
        r"
        auth_failure no 550-5.7.26 The MAIL FROM domain [example.org] has an SPF record with a hard\n550-5.7.26 fail policy (-all) but it fails to pass SPF checks with the ip:\n550 5.7.26 [192.0.2.1]. To best protect our users from spam and phishing, the message has been blocked.
        auth_failure no 554 5.7.1 Your message was rejected due to example.org's DMARC policy. See https://support.apple.com/en-us/HT204137 for info
        auth_failure no 554 5.7.5 Permanent error evaluating DMARC policy
        auth_failure no 550 DMARC Sender Invalid - envelope rejected
        auth_failure no 550 5.7.1 <news@example.org>: Sender address rejected: Please see http://www.openspf.org/Why?s=mfrom;id=news%40example.org
        auth_failure no 550 5.7.1 DKIM verification failed
        auth_failure no 550 5.7.515 Access denied, sending domain EXAMPLE.ORG does not meet the required authentication level. Spf= Fail , Dkim= Fail , DMARC= Fail
        auth_failure wait 451-4.7.26 Unauthenticated email from example.org is not accepted due to domain's\n451 4.7.26 DMARC policy, but temporary DNS failures prevent authentication.
        auth_failure slow 550 5.7.25 [192.0.2.1] The IP address sending this message does not have a PTR record setup
        auth_failure slow 550 ERROR: No or mismatched reverse DNS (PTR) entries for 192.0.2.1
        auth_failure slow 535 5.7.8 Error: authentication failed: UGFzc3dvcmQ6
        auth_failure slow 550 5.7.57 Client not authenticated to send mail. Error: 535 5.7.3 Authentication unsuccessful
        relaying_denied wait 454 4.7.1 <jo@example.com>: Relay access denied
        relaying_denied no 550 5.7.0 Mail relay denied <192.0.2.1>.
        relaying_denied no 551 5.7.1 We do not relay
        relaying_denied no 550 5.1.1 <jo@example.com>: Relay access denied
        relaying_denied no 553 Sorry, that domain is not in my list of allowed rcpthosts.
        relaying_denied no 550 5.7.54 SMTP; Unable to relay recipient in non-accepted domain
        ",
    );
}

#[test]
fn rates_sizes_and_contents_are_distinguished() {
    check(
        r"
        rate_limited slow 421 4.7.28 Gmail has detected an unusual rate of mail originating from your SPF domain.
        rate_limited slow 421 4.3.2 The maximum number of concurrent connections has exceeded a limit, closing transmission channel
        rate_limited slow 421 4.7.66 TLS 1.0 and 1.1 are not supported. Too many connections
        rate_limited slow 421 gmx.net (mxgmx001) Nemesis ESMTP Service not available - Too many connections
        rate_limited slow 450 4.7.1 Error: too much mail from 192.0.2.1
        rate_limited slow 451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (AS77712)
        rate_limited slow 550 5.7.1 rate limit exceeded
        rate_limited slow 452 4.5.3 Too many recipients
        rate_limited wait 450 4.2.1 The user you are trying to contact is receiving mail too quickly.
        too_large no 552 5.3.4 Message size exceeds fixed limit
        too_large no 552 5.3.4 Message too big for system
        too_large no 554 5.7.1 message size limit exceeded
        too_large no 550 message exceeds maximum size
        too_large wait 452 4.2.3 Message size exceeds the space left
        content no 550 5.7.0 Virus detected
        content no 552 5.7.0 Our system detected an illegal attachment on your message.
        content no 554 5.6.0 Corrupt message content
        content no 550 5.7.1 Our system has detected that this message is not RFC 5322 compliant
        ",
    );
}

#[test]
fn dns_timeout_protocol_and_other_refusals_are_distinguished() {
    check(
        r"
        dns wait 451 4.1.8 Domain of sender address news@example.org does not resolve
        dns wait 450 4.1.8 <news@example.org>: Sender address rejected: Domain not found
        dns no 550 5.1.8 <news@example.org>: Sender address rejected: Domain not found
        dns no 550-Requested action not taken: mailbox unavailable\n550 invalid DNS MX or A/AAAA resource record
        dns wait 451 4.4.3 Name server lookup failed
        timeout wait 451 4.4.2 Timeout - closing connection. - gsmtp
        timeout wait 421 4.4.2 idle timeout exceeded
        timeout wait 421 4.4.1 Connection timed out
        protocol no 500 5.5.2 Error: bad syntax
        protocol no 503 5.5.1 Error: need RCPT command
        protocol no 502 5.5.1 Unrecognized command
        protocol no 501 5.5.4 Syntax: MAIL FROM:<address>
        protocol no 504 Command parameter not implemented
        other slow 421 Service not available
        other slow 421 4.3.0 Temporary System Problem.  Try again later.
        other slow 450 4.3.2 Service currently unavailable
        other wait 451 Temporary local problem - please try later
        other wait 451 4.3.0 Error: queue file write error
        other wait 450 4.2.0 Mailbox unavailable
        other no 554 Transaction failed.
        other no 550 Rejected
        other no 550
        other no 554 5.4.6 Hop count exceeded - possible mail loop
        ",
    );
}

#[test]
fn a_policy_of_the_recipient_is_final_and_does_not_throttle() {
    check_in_all_phases(
        r"
        policy no 550 5.7.1 TRANSPORT.RULES.RejectMessage; the message was rejected by organization policy
        policy no 554 5.7.1 <jo@example.com>: Recipient address rejected: Policy rejection
        policy no 550 permanent failure for one or more recipients (jo@example.com:blocked)
        policy no 550 5.7.1 Rejected: sender is on the recipient's personal block list
        policy no 550 5.7.1 <news@example.org> is in the personal blocklist of jo@example.com
        policy no 550 5.7.1 Message rejected due to user rules
        ",
    );
}

#[test]
fn refusals_that_every_attempt_would_meet_are_final_and_do_not_throttle() {
    check_in_all_phases(
        r"
        content no 554 5.6.1 Eight bit data not allowed
        content no 550 5.6.7 Non-ASCII addresses not permitted
        content no 550 5.6.7 Non-ASCII addresses not permitted for that sender/recipient
        content no 550 maximum allowed line length is 998 octets, got 2012
        protocol no 501 5.5.4 Invalid domain name
        protocol no 501 5.5.4 <example..org>: Invalid domain name
        ",
    );
}

#[test]
fn rate_limits_are_recognised_by_many_texts() {
    check_in_all_phases(
        r"
        rate_limited slow 451 Resources temporarily not available - Please try again later [#4.16.1].
        rate_limited slow 451 4.7.1 <jo@example.com>: hourly limit exceeded
        rate_limited slow 451 4.7.1 Received too much mail from 192.0.2.1, hourly limit exceeded, please try again later
        rate_limited slow 451 4.7.1 <jo@example.com>: Recipient address rejected: hourly limit exceeded
        rate_limited slow 451 4.7.1 Greylisting in action: hourly limit exceeded
        rate_limited slow 451 4.7.1 Hourly e-mail limit exceeded, come back later
        rate_limited slow 421 RP-001 (BAY004-MC1F12) Unfortunately, some messages from 192.0.2.1 weren't sent. Please try again.
        rate_limited slow 421 RP-002 Unfortunately, some messages on this connection weren't sent
        rate_limited slow 421-gmx.net (mxgmx115) Nemesis ESMTP Service not available\n421-No SMTP service\n421 Try again later
        rate_limited slow 421 gmx.net (mxgmx101) Nemesis ESMTP Service not available. Try again later. For explanation visit https://postmaster.gmx.net/en/error-messages
        rate_limited slow 421 Nemesis ESMTP Service not available - Requested action aborted, try again later
        ",
    );
}

/// The same text in reply to different commands.
#[test]
fn the_refused_command_decides_if_the_text_does_not() {
    use ReplyPhase::{Data, Greeting, MailFrom, Recipient};
    // Class, permanent, hard, throttle.
    let verdict = |phase, text| {
        let verdict = classify_in(phase, &Reply::parse(text).expect("a reply"));
        (verdict.class.as_str(), verdict.permanent, verdict.hard, verdict.throttle)
    };
    // At MAIL the refusal is about the announced SIZE, at RCPT about the mailbox.
    assert_eq!(verdict(MailFrom, "552 Aborted"), ("too_large", true, false, false));
    assert_eq!(verdict(Recipient, "552 Aborted"), ("full", false, false, false));
    // A bare refusal is about our host in the greeting, about the sender at MAIL, and says nothing at DATA.
    assert_eq!(verdict(Greeting, "554 No"), ("policy", false, false, true));
    assert_eq!(verdict(MailFrom, "550 No"), ("policy", true, false, false));
    assert_eq!(verdict(Data, "550 No"), ("other", true, false, false));
    // At HELO our host name is invalid; at RCPT the recipient's domain does not exist.
    assert_eq!(verdict(Greeting, "501 Invalid domain name"), ("protocol", true, false, false));
    assert_eq!(verdict(Recipient, "550 Invalid domain name"), ("bad_domain", true, true, false));
    // Greylisting that does not name itself.
    assert_eq!(verdict(Recipient, "451 4.7.1 Please try again later"), ("policy", false, false, false));
    assert_eq!(verdict(Data, "451 4.7.1 Please try again later"), ("policy", false, false, true));
    assert_eq!(verdict(Recipient, "550 User unknown"), ("bad_mailbox", true, true, false));
    assert_eq!(verdict(Data, "550 User unknown"), ("policy", true, false, false));
}

/// Words about destinations, recipients and mailboxes that do not say that the address or the domain does not exist.
#[test]
fn no_address_is_suppressed_without_evidence_that_it_does_not_exist() {
    let replies = [
        "554 5.7.1 Message rejected due to policies of destination domain",
        "550 5.7.1 Access to destination domain denied for 192.0.2.1",
        "550 5.7.0 Quota for destination domain reached",
        "550 5.7.1 client has no such hostname",
        "550 5.7.1 192.0.2.1 has no such hostname",
        "550 Too many rejected recipients from 192.0.2.1",
        "550 Can't open mailbox path: Permission denied",
        "554 5.4.0 The message could not be delivered to the destination domain: connection refused",
        "550 5.4.317 Message expired, cannot connect to remote server: destination domain example.com",
        "550 This service has been replaced by a new one, see https://example.com/",
        "550 Unknown destination port",
        "550 unknown destination: connection timed out",
        "550 Error in name directory, try later",
        "550 One or more recipients was undeliverable",
        "550 No route found to domain example.com",
        "550 5.7.1 Recipient is no longer accepting mail from your network",
        "550 5.7.1 not registered with our allow list",
    ];
    let mut wrong = Vec::new();
    for text in replies {
        let reply = Reply::parse(text).expect("a reply");
        for phase in ReplyPhase::ALL {
            let verdict = classify_in(phase, &reply);
            if verdict.hard || verdict.hard_at_rcpt {
                wrong.push(format!("{} by {} at {}: {text}", verdict.class, verdict.rule, phase.as_str()));
            }
        }
        let alone = classify(&reply);
        if alone.hard || alone.hard_at_rcpt {
            wrong.push(format!("{} by {}: {text}", alone.class, alone.rule));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Postfix says "Recipient address rejected" before the text of its policy service.
#[test]
fn a_rejected_recipient_is_tried_again_where_the_reason_may_pass() {
    let reasons = [
        "temporarily blocked, try again later",
        "You exceeded 100 mails",
        "Mail from your address space is blocked",
        "Server temporarily unavailable, retry",
        "greylisted",
        "Greylisting policy, come back in 5 minutes",
        "Access denied, rate limit reached",
        "Blocked for 300 seconds",
        "Client 192.0.2.1 refused by policy",
        "Not now",
    ];
    for reason in reasons {
        let text = format!("554 5.7.1 <jo@example.com>: Recipient address rejected: {reason}");
        let verdict = classify_in(ReplyPhase::Recipient, &Reply::parse(&text).expect("a reply"));
        assert!(!verdict.permanent && !verdict.hard, "{text}: {verdict:?}");
    }
}

/// The recipient's address is no evidence, whatever words it contains.
#[test]
fn words_in_an_address_do_not_affect_the_verdict() {
    check(
        r"
        bad_mailbox gone 550 5.1.1 <spam.detected@example.com>: Recipient address rejected: User unknown
        policy slow 550 <user.unknown@example.com>: message refused, try later
        other no 554 <virus@example.com> Transaction failed
        ",
    );
}
