//! The last answer is used while the name servers of a domain are in trouble.

use std::time::{Duration, Instant};

use postroad_net::dns::{Dns, LookupFailure, MxFailure, RecordType};
use postroad_testkit::DnsServer;
use postroad_testkit::dns_server::Failure;

use crate::{host_names, hurried, patient, plan, settings};

#[tokio::test]
async fn the_last_answer_is_used_while_the_name_server_fails() {
    let server = DnsServer::start();
    server.ttl_secs(0).mx("known.example", 10, "mx.example.com").a("mx.example.com", [192, 0, 2, 1]);
    let dns = hurried(&server);
    assert_eq!(host_names(&plan(&dns, "known.example").await.unwrap()), ["mx.example.com"]);
    let addresses = dns.addresses("mx.example.com").await.unwrap();
    for failure in [Failure::ServFail, Failure::Refused, Failure::Garbage, Failure::Silent] {
        server.fail("known.example", failure).fail("mx.example.com", failure);
        let before = server.questions("known.example", RecordType::MX);
        let found = plan(&dns, "known.example").await;
        assert_eq!(host_names(&found.unwrap()), ["mx.example.com"], "{failure:?}");
        assert!(server.questions("known.example", RecordType::MX) > before, "the name server is still asked");
        assert_eq!(dns.addresses("mx.example.com").await, Ok(addresses.clone()), "{failure:?}");
    }
    // A name that was never answered has nothing to fall back on.
    server.fail("unknown.example", Failure::ServFail);
    assert!(matches!(plan(&dns, "unknown.example").await, Err(MxFailure::Temporary(_))));
    server.clear_failures("known.example").remove("known.example").mx(
        "known.example",
        10,
        "other.example.com",
    );
    assert_eq!(host_names(&plan(&dns, "known.example").await.unwrap()), ["other.example.com"]);
}

#[tokio::test]
async fn a_known_domain_does_not_wait_until_a_silent_name_server_times_out() {
    let server = DnsServer::start();
    server.ttl_secs(0).mx("known.example", 10, "mx.example.com");
    let dns = patient(&server);
    plan(&dns, "known.example").await.unwrap();
    server.fail("known.example", Failure::Silent);
    let begun = Instant::now();
    assert_eq!(host_names(&plan(&dns, "known.example").await.unwrap()), ["mx.example.com"]);
    // Without the last answer, the look-up would wait for the name server: three attempts of four seconds.
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_name_that_no_longer_exists_is_forgotten() {
    let server = DnsServer::start();
    server.ttl_secs(0).negative_ttl_secs(0).mx("gone.example", 10, "mx.example.com");
    let dns = patient(&server);
    plan(&dns, "gone.example").await.unwrap();
    server.remove("gone.example");
    assert_eq!(plan(&dns, "gone.example").await, Err(MxFailure::NoSuchDomain));
    server.fail("gone.example", Failure::ServFail);
    assert!(matches!(plan(&dns, "gone.example").await, Err(MxFailure::Temporary(_))));
}

#[tokio::test]
async fn checks_get_the_failure_and_no_old_answer() {
    let server = DnsServer::start();
    server.ttl_secs(0).mx("known.example", 10, "mx.example.com");
    let dns = Dns::for_checks(&settings(&server)).unwrap();
    dns.records("known.example", RecordType::MX).await.unwrap();
    server.fail("known.example", Failure::ServFail);
    assert!(matches!(dns.records("known.example", RecordType::MX).await, Err(LookupFailure::Temporary(_))));
}
