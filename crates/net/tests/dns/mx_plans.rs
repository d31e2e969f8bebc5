//! Mail hosts of a domain (RFC 5321 5.1, RFC 7505).

use std::time::Duration;

use postroad_net::dns::MxFailure;
use postroad_testkit::DnsServer;
use postroad_testkit::dns_server::RecordType;

use super::{host_names, patient, plan};

#[tokio::test]
async fn hosts_are_sorted_by_preference_and_in_lower_case() {
    let server = DnsServer::start();
    server
        .mx("example.com", 20, "b.example.com")
        .mx("example.com", 10, "MX.Example.NET")
        .mx("example.com", 20, "a.example.com")
        .mx("example.com", 5, "a.example.com");
    let plan = plan(&patient(&server), "example.com").await.unwrap();
    assert_eq!(host_names(&plan), ["a.example.com", "mx.example.net", "b.example.com"]);
    assert_eq!(plan.hosts.iter().map(|host| host.preference).collect::<Vec<_>>(), [5, 10, 20]);
    assert!(!plan.implicit);
}

#[tokio::test]
async fn plans_are_valid_for_the_ttl_of_the_records_within_bounds() {
    let server = DnsServer::start();
    for (name, ttl_secs) in [("short.example", 1), ("middle.example", 600), ("long.example", 864_000)] {
        server.ttl_secs(ttl_secs).mx(name, 10, "mx.example.com");
    }
    let dns = patient(&server);
    let mut valid = Vec::new();
    for name in ["short.example", "middle.example", "long.example"] {
        valid.push(plan(&dns, name).await.unwrap().valid_for);
    }
    assert_eq!((valid[0], valid[2]), (Duration::from_mins(1), Duration::from_hours(1)));
    // A few seconds may have passed since the answer.
    assert!((590..=600).contains(&valid[1].as_secs()), "{valid:?}");
}

#[tokio::test]
async fn without_mx_the_domain_is_its_own_host() {
    let server = DnsServer::start();
    server.a("four.example", [192, 0, 2, 1]).aaaa("six.example", [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
    let dns = patient(&server);
    for name in ["four.example", "six.example"] {
        let plan = plan(&dns, name).await.unwrap();
        assert_eq!((host_names(&plan), plan.implicit), (vec![name], true));
    }
}

#[tokio::test]
async fn null_mx_means_no_mail_even_with_an_address() {
    let server = DnsServer::start();
    server.null_mx("example.com").a("example.com", [192, 0, 2, 1]);
    let failure = plan(&patient(&server), "example.com").await.unwrap_err();
    assert_eq!((failure.is_permanent(), failure), (true, MxFailure::NullMx));
    assert_eq!(server.questions("example.com", RecordType::A), 0);
}

#[tokio::test]
async fn null_mx_beside_real_hosts_is_ignored() {
    let server = DnsServer::start();
    server.null_mx("example.com").mx("example.com", 10, "mx.example.com");
    let plan = plan(&patient(&server), "example.com").await.unwrap();
    assert_eq!(host_names(&plan), ["mx.example.com"]);
}

#[tokio::test]
async fn missing_names_and_missing_records_are_distinguished() {
    let server = DnsServer::start();
    server.txt("silent.example", "exists, without mail").a("www.below.example", [192, 0, 2, 1]);
    let dns = patient(&server);
    assert_eq!(plan(&dns, "nowhere.example").await, Err(MxFailure::NoSuchDomain));
    assert_eq!(plan(&dns, "silent.example").await, Err(MxFailure::NoMail));
    // RFC 8020: a name that has names below it exists.
    assert_eq!(plan(&dns, "below.example").await, Err(MxFailure::NoMail));
    assert!(MxFailure::NoSuchDomain.is_permanent() && MxFailure::NoMail.is_permanent());
}

#[tokio::test]
async fn aliases_of_the_domain_are_followed() {
    let server = DnsServer::start();
    server
        .cname("one.example", "two.example")
        .cname("two.example", "three.example")
        .mx("three.example", 10, "mx.example.com")
        .cname("dangling.example", "nowhere.example")
        .cname("mute.example", "silent.example")
        .txt("silent.example", "exists, without mail");
    let dns = patient(&server);
    assert_eq!(host_names(&plan(&dns, "one.example").await.unwrap()), ["mx.example.com"]);
    assert_eq!(plan(&dns, "dangling.example").await, Err(MxFailure::NoSuchDomain));
    assert_eq!(plan(&dns, "mute.example").await, Err(MxFailure::NoMail));
}

#[tokio::test]
async fn many_hosts_are_fetched_over_tcp_and_their_number_is_bounded() {
    let server = DnsServer::start();
    for number in 0..200 {
        server.mx("example.com", number, &format!("host-number-{number:03}.example.com"));
    }
    let plan = plan(&patient(&server), "example.com").await.unwrap();
    assert_eq!(plan.hosts.len(), 32);
    assert_eq!(
        (plan.hosts[31].name.as_str(), plan.hosts[31].preference),
        ("host-number-031.example.com", 31)
    );
    assert_eq!(server.tcp_questions("example.com", RecordType::MX), 1);
}

#[tokio::test]
async fn addresses_in_place_of_names_are_used_only_when_there_is_nothing_else() {
    let server = DnsServer::start();
    server.mx("mixed.example", 1, "192.0.2.1").mx("mixed.example", 10, "mx.example.com");
    server.mx("literal.example", 1, "192.0.2.1");
    let dns = patient(&server);
    assert_eq!(host_names(&plan(&dns, "mixed.example").await.unwrap()), ["mx.example.com"]);
    assert_eq!(host_names(&plan(&dns, "literal.example").await.unwrap()), ["192.0.2.1"]);
}

#[tokio::test]
async fn an_mx_target_that_is_no_host_name_cannot_name_another_site() {
    let server = DnsServer::start();
    server.mx("good.example", 1, "a.mx.example").mx("good.example", 1, "b.mx.example");
    server.mx("evil.example", 1, "(a|b).mx.example");
    let dns = patient(&server);
    assert_eq!(plan(&dns, "good.example").await.unwrap().site_name(), "(a|b).mx.example");
    assert!(matches!(plan(&dns, "evil.example").await, Err(MxFailure::Temporary(_))));
}
