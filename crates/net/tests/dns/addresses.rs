//! A and AAAA look-ups of a host, the effect of missing records, and TXT look-ups.

use std::net::IpAddr;

use postroad_net::dns::{AddressFailure, Dns, DnsSettings, LookupFailure};
use postroad_testkit::DnsServer;
use postroad_testkit::dns_server::{Failure, RecordType};

use super::{hurried, patient, settings};

const V6_1: [u16; 8] = [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1];
const V6_2: [u16; 8] = [0x2001, 0xdb8, 0, 0, 0, 0, 0, 2];

fn v4(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

#[tokio::test]
async fn ipv6_and_ipv4_addresses_alternate() {
    let server = DnsServer::start();
    let host = "mx.example.com";
    server.a(host, [192, 0, 2, 1]).a(host, [192, 0, 2, 2]).a(host, [192, 0, 2, 3]);
    server.aaaa(host, V6_1).aaaa(host, V6_2);
    let found = patient(&server).addresses(host).await.unwrap();
    assert_eq!(found.len(), 5);
    let is_v6: Vec<bool> = found.iter().map(IpAddr::is_ipv6).collect();
    assert_eq!(is_v6, [true, false, true, false, false]);

    let only_v4 = Dns::new(&DnsSettings { ipv6: false, ..settings(&server) }).unwrap();
    assert!(only_v4.addresses(host).await.unwrap().iter().all(IpAddr::is_ipv4));
}

#[tokio::test]
async fn a_host_with_only_ipv6_addresses_is_a_temporary_failure_if_ipv6_is_off() {
    let server = DnsServer::start();
    server.aaaa("six.example", V6_1);
    assert_eq!(patient(&server).addresses("six.example").await, Ok(vec![IpAddr::from(V6_1)]));
    let only_v4 = Dns::new(&DnsSettings { ipv6: false, ..settings(&server) }).unwrap();
    let failure = only_v4.addresses("six.example").await.unwrap_err();
    assert!(!failure.is_permanent() && failure.to_string().contains("IPv6"), "{failure:?}");
    assert_eq!(only_v4.addresses("none.example").await, Err(AddressFailure::NoSuchHost));
}

#[tokio::test]
async fn if_one_address_family_fails_the_other_is_returned() {
    let server = DnsServer::start();
    server.a("mx.example.com", [192, 0, 2, 1]);
    for failure in [Failure::ServFail, Failure::Silent, Failure::Refused] {
        server.fail_type("mx.example.com", RecordType::AAAA, failure);
        assert_eq!(hurried(&server).addresses("mx.example.com").await, Ok(vec![v4(1)]), "{failure:?}");
    }
}

#[tokio::test]
async fn missing_hosts_missing_addresses_and_failures_are_distinguished() {
    let server = DnsServer::start();
    server.txt("empty.example", "exists").txt("sick.example", "exists");
    server.fail_type("sick.example", RecordType::AAAA, Failure::ServFail);
    let dns = patient(&server);
    assert_eq!(dns.addresses("nowhere.example").await, Err(AddressFailure::NoSuchHost));
    assert_eq!(dns.addresses("empty.example").await, Err(AddressFailure::NoAddress));
    assert!(AddressFailure::NoSuchHost.is_permanent() && AddressFailure::NoAddress.is_permanent());
    let failure = dns.addresses("sick.example").await.unwrap_err();
    assert!(!failure.is_permanent() && failure.to_string().contains("SERVFAIL"), "{failure:?}");
}

#[tokio::test]
async fn aliases_of_a_host_are_followed() {
    let server = DnsServer::start();
    server.cname("mx.example.com", "real.example.net").a("real.example.net", [192, 0, 2, 7]);
    server.cname("self.example", "self.example");
    let dns = patient(&server);
    assert_eq!(dns.addresses("mx.example.com").await, Ok(vec![v4(7)]));
    assert!(!dns.addresses("self.example").await.unwrap_err().is_permanent());
}

#[tokio::test]
async fn at_most_sixteen_addresses_are_returned() {
    let server = DnsServer::start();
    for last in 1..=40 {
        server.a("many.example", [192, 0, 2, last]);
    }
    assert_eq!(patient(&server).addresses("many.example").await.unwrap().len(), 16);
}

#[tokio::test]
async fn an_address_literal_is_returned_without_a_query() {
    let server = DnsServer::start();
    assert_eq!(patient(&server).addresses("192.0.2.9").await, Ok(vec![v4(9)]));
    assert_eq!(server.questions("192.0.2.9", RecordType::A), 0);
}

#[tokio::test]
async fn the_strings_of_a_txt_record_are_joined() {
    let server = DnsServer::start();
    let long = "x".repeat(600);
    server.txt("example.com", &long).txt("example.com", "second");
    let dns = patient(&server);
    let mut texts = dns.texts("example.com").await.unwrap();
    texts.sort();
    assert_eq!(texts, [b"second".to_vec(), long.into_bytes()]);
    assert_eq!(dns.texts("nowhere.example").await, Err(LookupFailure::NoSuchName));
}
