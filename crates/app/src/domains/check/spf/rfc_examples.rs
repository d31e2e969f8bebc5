//! The examples of RFC 7208 Appendix A, and the limits of the RFC, evaluated over fixed answers.

use std::net::IpAddr;

use postroad_net::dns::RecordData;

use super::evaluate::{PermErrorReason, Sender, SpfResult, evaluate};
use super::record::SpfRecord;
use crate::domains::check::answers::{Answer, AnswersView, DnsAnswers};
use crate::domains::check::record::RecordType;
use crate::domains::check::reverse_name::reverse_name;

/// The zones of Appendix A: addresses, mail hosts and PTR names.
const ZONE: &[(&str, RecordType, &str)] = &[
    ("example.com", RecordType::A, "192.0.2.10"),
    ("example.com", RecordType::A, "192.0.2.11"),
    ("example.com", RecordType::Mx, "mail-a.example.com"),
    ("example.com", RecordType::Mx, "mail-b.example.com"),
    ("amy.example.com", RecordType::A, "192.0.2.65"),
    ("bob.example.com", RecordType::A, "192.0.2.66"),
    ("mail-a.example.com", RecordType::A, "192.0.2.129"),
    ("mail-b.example.com", RecordType::A, "192.0.2.130"),
    ("example.org", RecordType::A, "192.0.2.10"),
    ("example.org", RecordType::Mx, "mail-c.example.org"),
    ("mail-c.example.org", RecordType::A, "192.0.2.140"),
    ("10.2.0.192.in-addr.arpa", RecordType::Ptr, "example.com"),
    ("65.2.0.192.in-addr.arpa", RecordType::Ptr, "amy.example.com"),
    ("140.2.0.192.in-addr.arpa", RecordType::Ptr, "mail-c.example.org"),
    // Somebody else's address, whose PTR record claims to be bob.
    ("4.0.0.10.in-addr.arpa", RecordType::Ptr, "bob.example.com"),
];

/// Evaluates a record for an address. Answers every question from the zone, as the DNS would.
fn evaluate_in_zone(zone: &[(&str, RecordType, &str)], record: &str, address: &str) -> SpfResult {
    let mut answers = DnsAnswers::default();
    let address: IpAddr = address.parse().unwrap();
    let sender = Sender { address, helo: "helo.example", domain: "example.com", trusted: None };
    let record = SpfRecord::parse(record);
    loop {
        let view = AnswersView::new(&answers);
        if let Ok(result) = evaluate(&view, sender, &record).result {
            return result;
        }
        for (name, record_type) in view.into_unanswered() {
            let found =
                zone.iter().filter(|(known, known_type, _)| *known == name && *known_type == record_type);
            let records: Vec<RecordData> = found.map(|(_, _, value)| data_of(record_type, value)).collect();
            let is_known = zone.iter().any(|(known, _, _)| *known == name);
            let answer = match (records.is_empty(), is_known) {
                (false, _) => Answer::Records(records),
                (true, true) => Answer::NoData,
                (true, false) => Answer::NoSuchName,
            };
            answers.insert(&name, record_type, answer);
        }
    }
}

fn data_of(record_type: RecordType, value: &str) -> RecordData {
    match record_type {
        RecordType::A | RecordType::Aaaa => RecordData::Address(value.parse().unwrap()),
        RecordType::Mx => RecordData::Mx { preference: 10, host: value.to_owned() },
        RecordType::Txt => RecordData::Text(value.as_bytes().to_vec()),
        RecordType::Cname | RecordType::Ns | RecordType::Ptr => RecordData::Name(value.to_owned()),
    }
}

fn passes(zone: &[(&str, RecordType, &str)], record: &str, address: &str) -> bool {
    matches!(evaluate_in_zone(zone, record, address), SpfResult::Pass { .. })
}

fn perm_error_reason(zone: &[(&str, RecordType, &str)], record: &str) -> PermErrorReason {
    match evaluate_in_zone(zone, record, "203.0.113.1") {
        SpfResult::PermError(error) => error.reason,
        other => panic!("{record}: {other:?}"),
    }
}

#[test]
fn simple_examples_of_the_rfc_give_the_documented_results() {
    for (record, passing, refused) in [
        ("v=spf1 +all", "1.2.3.4", ""),
        ("v=spf1 a -all", "192.0.2.10 192.0.2.11", "192.0.2.65"),
        ("v=spf1 a:example.org -all", "192.0.2.10", "192.0.2.11"),
        ("v=spf1 mx -all", "192.0.2.129 192.0.2.130", "192.0.2.140 192.0.2.10"),
        ("v=spf1 mx:example.org -all", "192.0.2.140", "192.0.2.129"),
        ("v=spf1 mx mx:example.org -all", "192.0.2.129 192.0.2.130 192.0.2.140", "192.0.2.10"),
        (
            "v=spf1 mx/30 mx:example.org/30 -all",
            "192.0.2.128 192.0.2.131 192.0.2.143",
            "192.0.2.132 192.0.2.144",
        ),
        ("v=spf1 ptr -all", "192.0.2.10 192.0.2.65", "192.0.2.140 10.0.0.4"),
        ("v=spf1 ip4:192.0.2.128/28 -all", "192.0.2.129 192.0.2.143", "192.0.2.65"),
    ] {
        for address in passing.split_whitespace() {
            assert!(passes(ZONE, record, address), "{record} refuses {address}");
        }
        for address in refused.split_whitespace() {
            assert_eq!(
                evaluate_in_zone(ZONE, record, address),
                SpfResult::NotAllowed,
                "{record} for {address}"
            );
        }
    }
}

#[test]
fn ptr_names_count_only_if_they_resolve_back_to_the_address() {
    let zone = [
        ("7.113.0.203.in-addr.arpa", RecordType::Ptr, "mail.example.com"),
        ("mail.example.com", RecordType::A, "203.0.113.7"),
    ];
    assert!(passes(&zone, "v=spf1 ptr -all", "203.0.113.7"));
    let listed = [zone[0], zone[1], ("mail.example.com.list.example", RecordType::A, "127.0.0.1")];
    assert!(passes(&listed, "v=spf1 exists:%{p}.list.example -all", "203.0.113.7"));
    assert!(!passes(&listed[..1], "v=spf1 exists:%{p}.list.example -all", "203.0.113.7"));
    assert_eq!(reverse_name("203.0.113.7".parse().unwrap()), zone[0].0);
}

#[test]
fn ten_lookups_and_two_void_lookups_are_allowed() {
    let names: Vec<String> = (0..11).map(|number| format!("n{number}.example")).collect();
    let zone: Vec<(&str, RecordType, &str)> =
        names.iter().map(|name| (name.as_str(), RecordType::A, "198.51.100.1")).collect();
    let record_with_names = |count: usize| {
        let terms: Vec<String> = names[..count].iter().map(|name| format!("a:{name}")).collect();
        format!("v=spf1 {} ip4:203.0.113.1 -all", terms.join(" "))
    };
    assert!(passes(&zone, &record_with_names(10), "203.0.113.1"));
    assert_eq!(perm_error_reason(&zone, &record_with_names(11)), PermErrorReason::TooManyLookups);
    assert!(passes(&[], "v=spf1 a:x.example mx:y.example ip4:203.0.113.1 -all", "203.0.113.1"));
    assert_eq!(
        perm_error_reason(&[], "v=spf1 a:x.example mx:y.example exists:z.example ip4:203.0.113.1 -all"),
        PermErrorReason::TooManyVoidLookups(vec![
            "a:x.example".into(),
            "mx:y.example".into(),
            "exists:z.example".into()
        ])
    );
}

#[test]
fn ten_mail_servers_of_an_mx_term_are_allowed() {
    let hosts: Vec<String> = (0..11).map(|number| format!("mx{number}.example")).collect();
    let mut zone: Vec<(&str, RecordType, &str)> = Vec::new();
    for host in &hosts {
        zone.push(("example.com", RecordType::Mx, host));
        zone.push((host, RecordType::A, "198.51.100.1"));
    }
    let record = "v=spf1 mx ip4:203.0.113.1 -all";
    assert!(passes(&zone[..20], record, "203.0.113.1"));
    assert_eq!(
        perm_error_reason(&zone, record),
        PermErrorReason::TooManyMailHosts { domain: "example.com".to_owned() }
    );
}

#[test]
fn an_include_matches_only_when_it_passes() {
    let zone = [
        ("soft.example", RecordType::Txt, "v=spf1 ~ip4:203.0.113.1 ?all"),
        ("good.example", RecordType::Txt, "v=spf1 ip4:203.0.113.1 -all"),
        ("outer.example", RecordType::Txt, "v=spf1 include:good.example -all"),
        ("two.example", RecordType::Txt, "v=spf1 -all"),
        ("two.example", RecordType::Txt, "v=spf1 +all"),
        ("bad.example", RecordType::Txt, "v=spf1 ip4:x"),
        ("text.example", RecordType::Txt, "hello"),
    ];
    assert!(passes(&zone, "v=spf1 include:soft.example include:good.example -all", "203.0.113.1"));
    assert!(!passes(&zone, "v=spf1 include:soft.example -all", "203.0.113.1"));
    // The qualifier of the outermost include decides, however deep the match is.
    assert!(!passes(&zone, "v=spf1 -include:outer.example +all", "203.0.113.1"));
    let target = |name: &str| name.to_owned();
    assert_eq!(
        perm_error_reason(&zone, "v=spf1 include:text.example"),
        PermErrorReason::NoRecord { target: target("text.example") }
    );
    assert_eq!(
        perm_error_reason(&zone, "v=spf1 redirect=none.example"),
        PermErrorReason::NoRecord { target: target("none.example") }
    );
    assert_eq!(
        perm_error_reason(&zone, "v=spf1 include:two.example"),
        PermErrorReason::SeveralRecords { target: target("two.example") }
    );
    assert_eq!(
        perm_error_reason(&zone, "v=spf1 include:example.com"),
        PermErrorReason::Loop { target: target("example.com") }
    );
    assert_eq!(
        perm_error_reason(&zone, "v=spf1 include:bad.example"),
        PermErrorReason::InvalidTerm { domain: target("bad.example"), term: target("ip4:x") }
    );
}
