//! TLSA records, and when they count as secure.

use std::time::Duration;

use postroad_net::dns::{DnsSetupError, DnssecTrust, HostTlsa, RecordType};
use postroad_testkit::dns_server::Failure;

use super::*;

const DATA: [u8; 32] = [7; 32];

fn start_validating() -> DnsServer {
    let server = DnsServer::start();
    server.validating();
    server
}

/// Adds a host with an address and one record.
fn add_host(server: &DnsServer, host: &str) {
    server.a(host, [192, 0, 2, 1]).tlsa(host, 25, (3, 1, 1), &DATA);
}

fn dns_trusting_loopback(server: &DnsServer) -> Dns {
    let timeout = Duration::from_millis(500);
    let dnssec = DnssecTrust::Loopback;
    Dns::new(&DnsSettings { timeout, attempts: 2, dnssec, ..settings(server) }).unwrap()
}

async fn base_of(dns: &Dns, host: &str) -> Option<String> {
    match dns.tlsa(host, 25).await.tlsa {
        HostTlsa::Secure { base, records } => {
            assert_eq!(records.len(), 1);
            assert_eq!((records[0].usage, records[0].data.as_slice()), (3, DATA.as_slice()));
            Some(base)
        }
        HostTlsa::Absent => None,
        other => panic!("{host}: {other:?}"),
    }
}

#[tokio::test]
async fn records_count_only_if_a_trusted_resolver_validated_them() {
    let server = start_validating();
    add_host(&server, "mx.example");
    assert_eq!(base_of(&dns_trusting_loopback(&server), "mx.example").await.as_deref(), Some("mx.example"));
    assert_eq!(base_of(&patient(&server), "mx.example").await, None, "no resolver is trusted by default");
    assert!(!plan_is_secure(&patient(&server), &server).await);
    assert!(plan_is_secure(&dns_trusting_loopback(&server), &server).await);
}

async fn plan_is_secure(dns: &Dns, server: &DnsServer) -> bool {
    server.mx("signed.example", 10, "mx.example");
    plan(dns, "signed.example").await.unwrap().is_secure
}

#[tokio::test]
async fn a_resolver_that_does_not_validate_makes_no_answer_secure() {
    let server = DnsServer::start();
    add_host(&server, "mx.example");
    assert_eq!(base_of(&dns_trusting_loopback(&server), "mx.example").await, None);
    assert_eq!(server.questions("_25._tcp.mx.example", RecordType::TLSA), 0, "no query for an insecure host");
}

#[tokio::test]
async fn tlsa_records_do_not_count_if_they_or_the_addresses_are_unsigned() {
    let server = start_validating();
    add_host(&server, "mx.unsigned.example");
    add_host(&server, "mx.half.example");
    server.unsigned("unsigned.example").unsigned("_tcp.mx.half.example");
    let dns = dns_trusting_loopback(&server);
    assert_eq!(base_of(&dns, "mx.unsigned.example").await, None);
    assert_eq!(base_of(&dns, "mx.half.example").await, None);
    assert_eq!(base_of(&dns, "mx.absent.example").await, None);
}

#[tokio::test]
async fn a_failing_lookup_is_not_an_absent_record() {
    let server = start_validating();
    for host in ["mx.bogus.example", "mx.silent.example", "mx.lost.example"] {
        add_host(&server, host);
    }
    server.fail_type("_25._tcp.mx.bogus.example", RecordType::TLSA, Failure::ServFail);
    server.fail_type("_25._tcp.mx.silent.example", RecordType::TLSA, Failure::Silent);
    server.fail("mx.lost.example", Failure::ServFail);
    let dns = dns_trusting_loopback(&server);
    for host in ["mx.bogus.example", "mx.silent.example", "mx.lost.example"] {
        let answer = dns.tlsa(host, 25).await;
        assert!(matches!(answer.tlsa, HostTlsa::Unknown(_)), "{host}: {answer:?}");
        assert_eq!(answer.valid_for, Duration::from_mins(1), "the host is asked again soon");
    }
}

#[tokio::test]
async fn an_alias_is_followed_only_if_its_whole_chain_is_signed() {
    let server = start_validating();
    add_host(&server, "real.example");
    server.cname("alias.example", "real.example").cname("shady.unsigned.example", "real.example");
    server.a("bare.example", [192, 0, 2, 2]).cname("own.example", "bare.example");
    server.tlsa("own.example", 25, (3, 1, 1), &DATA).unsigned("unsigned.example");
    let dns = dns_trusting_loopback(&server);
    assert_eq!(base_of(&dns, "alias.example").await.as_deref(), Some("real.example"));
    assert_eq!(base_of(&dns, "shady.unsigned.example").await, None);
    // The cached answer gives the same result.
    assert_eq!(base_of(&dns, "shady.unsigned.example").await, None);
    assert_eq!(base_of(&dns, "own.example").await.as_deref(), Some("own.example"));
}

#[tokio::test]
async fn answers_are_cached_with_their_security() {
    let server = start_validating();
    server.ttl_secs(120);
    add_host(&server, "mx.example");
    let dns = dns_trusting_loopback(&server);
    let first = dns.tlsa("mx.example", 25).await;
    assert_eq!(first.valid_for, Duration::from_mins(2));
    server.fail("_25._tcp.mx.example", Failure::ServFail);
    assert_eq!(dns.tlsa("mx.example", 25).await.tlsa, first.tlsa);
    assert_eq!(server.questions("_25._tcp.mx.example", RecordType::TLSA), 1);
}

#[test]
fn a_resolver_on_another_machine_is_trusted_only_with_always() {
    let nameservers = vec!["192.0.2.53:53".parse().unwrap()];
    let with = |dnssec| {
        Dns::new(&DnsSettings { nameservers: nameservers.clone(), dnssec, ..DnsSettings::default() })
    };
    let refused = with(DnssecTrust::Loopback).unwrap_err();
    assert!(matches!(refused, DnsSetupError::NotLoopback(_)), "{refused}");
    assert!(with(DnssecTrust::Always).is_ok() && with(DnssecTrust::Off).is_ok());
}
