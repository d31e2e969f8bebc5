//! Records as published: look-ups for checks, without a cache.

use std::net::{IpAddr, Ipv4Addr};

use postroad_net::dns::{Dns, DnsSettings, LookupFailure, RecordData, RecordType};
use postroad_testkit::DnsServer;

fn for_checks(server: &DnsServer) -> Dns {
    let settings = DnsSettings { nameservers: vec![server.address()], ..DnsSettings::default() };
    Dns::for_checks(&settings).unwrap()
}

#[tokio::test]
async fn records_of_each_type_are_read() {
    let server = DnsServer::start();
    let v6: IpAddr = "2001:db8::1".parse().unwrap();
    server.a("host.example", [192, 0, 2, 1]).aaaa("host.example", [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
    server
        .cname("Alias.example", "Host.Example")
        .mx("host.example", 5, "MX.example")
        .ns("host.example", "ns.example");
    server.ptr([192, 0, 2, 1], "host.example").txt_strings("host.example", &[b"one ", b"text"]);
    let dns = for_checks(&server);
    let name = |name: &str| RecordData::Name(name.to_owned());
    let v4 = RecordData::Address(Ipv4Addr::new(192, 0, 2, 1).into());
    for (name, record_type, expected) in [
        ("host.example", RecordType::A, v4.clone()),
        ("HOST.example.", RecordType::AAAA, RecordData::Address(v6)),
        ("alias.example", RecordType::CNAME, name("host.example")),
        ("alias.example", RecordType::A, v4),
        ("host.example", RecordType::MX, RecordData::Mx { preference: 5, host: "mx.example".to_owned() }),
        ("host.example", RecordType::NS, name("ns.example")),
        ("1.2.0.192.in-addr.arpa", RecordType::PTR, name("host.example")),
        ("host.example", RecordType::TXT, RecordData::Text(b"one text".to_vec())),
    ] {
        assert_eq!(dns.records(name, record_type).await, Ok(vec![expected]), "{name} {record_type}");
    }
    assert_eq!(dns.records("host.example", RecordType::CNAME).await, Err(LookupFailure::NoData));
    assert_eq!(dns.records("nowhere.example", RecordType::TXT).await, Err(LookupFailure::NoSuchName));
}

#[tokio::test]
async fn every_question_goes_to_the_name_server() {
    let server = DnsServer::start();
    let dns = for_checks(&server);
    assert_eq!(dns.records("host.example", RecordType::A).await, Err(LookupFailure::NoSuchName));
    server.a("host.example", [192, 0, 2, 1]);
    assert!(dns.records("host.example", RecordType::A).await.is_ok());
    server.remove("host.example");
    assert_eq!(dns.records("host.example", RecordType::A).await, Err(LookupFailure::NoSuchName));
    assert_eq!(server.questions("host.example", RecordType::A), 3);
}

#[tokio::test]
async fn long_answers_are_cut() {
    let server = DnsServer::start();
    for number in 0..300 {
        server.txt("many.example", &format!("text {number}"));
    }
    server.txt("long.example", &"x".repeat(20_000));
    let dns = for_checks(&server);
    assert_eq!(dns.records("many.example", RecordType::TXT).await.unwrap().len(), 256);
    let long = dns.records("long.example", RecordType::TXT).await.unwrap();
    assert_eq!(long, [RecordData::Text(vec![b'x'; 4_096])]);
}
