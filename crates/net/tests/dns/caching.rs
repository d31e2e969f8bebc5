//! Answers are cached, and concurrent look-ups are joined.

use std::time::Duration;

use futures_util::future::join_all;
use postroad_net::dns::MxFailure;
use postroad_testkit::DnsServer;
use postroad_testkit::dns_server::{Failure, RecordType};

use super::{patient, plan};

#[tokio::test]
async fn answers_are_kept_for_their_ttl() {
    let server = DnsServer::start();
    server.mx("kept.example", 10, "mx.example.com").ttl_secs(0).mx("fleeting.example", 10, "mx.example.com");
    let dns = patient(&server);
    for _ in 0..3 {
        plan(&dns, "kept.example").await.unwrap();
        plan(&dns, "fleeting.example").await.unwrap();
    }
    assert_eq!(server.questions("kept.example", RecordType::MX), 1);
    assert_eq!(server.questions("fleeting.example", RecordType::MX), 3);
}

#[tokio::test]
async fn denials_are_kept_for_the_ttl_of_the_soa() {
    let server = DnsServer::start();
    server.txt("nodata.example", "exists");
    let dns = patient(&server);
    for _ in 0..3 {
        assert_eq!(plan(&dns, "missing.example").await, Err(MxFailure::NoSuchDomain));
        assert_eq!(plan(&dns, "nodata.example").await, Err(MxFailure::NoMail));
    }
    assert_eq!(server.questions("missing.example", RecordType::MX), 1);
    for record_type in [RecordType::MX, RecordType::A, RecordType::AAAA] {
        assert_eq!(server.questions("nodata.example", record_type), 1, "{record_type}");
    }

    server.negative_ttl_secs(0);
    assert_eq!(plan(&dns, "fleeting.example").await, Err(MxFailure::NoSuchDomain));
    server.mx("fleeting.example", 10, "mx.example.com").mx("missing.example", 10, "mx.example.com");
    assert!(plan(&dns, "fleeting.example").await.is_ok());
    assert_eq!(plan(&dns, "missing.example").await, Err(MxFailure::NoSuchDomain));
}

#[tokio::test]
async fn failures_are_not_cached() {
    let server = DnsServer::start();
    server.mx("example.com", 10, "mx.example.com").fail("example.com", Failure::ServFail);
    let dns = patient(&server);
    assert!(plan(&dns, "example.com").await.is_err());
    server.clear_failures("example.com");
    assert!(plan(&dns, "example.com").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_concurrent_look_ups_send_one_query() {
    let server = DnsServer::start();
    server.mx("example.com", 10, "mx.example.com");
    // Late enough for many callers to meet, too early for hickory to repeat the query.
    server.fail("example.com", Failure::Slow(Duration::from_millis(50)));
    let dns = patient(&server);
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let dns = dns.clone();
            tokio::spawn(async move { plan(&dns, "EXAMPLE.com").await.map(|plan| plan.hosts.len()) })
        })
        .collect();
    for done in join_all(tasks).await {
        assert_eq!(done.unwrap(), Ok(1));
    }
    assert_eq!(server.questions("example.com", RecordType::MX), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_names_at_once_are_all_answered() {
    let server = DnsServer::start();
    for number in 0..1_000 {
        server.mx(&format!("domain{number}.example"), 10, "mx.example.com");
    }
    let dns = patient(&server);
    let names: Vec<String> = (0..1_000).map(|number| format!("domain{number}.example")).collect();
    for found in join_all(names.iter().map(|name| plan(&dns, name))).await {
        assert_eq!(found.map(|plan| plan.hosts.len()), Ok(1));
    }
}
