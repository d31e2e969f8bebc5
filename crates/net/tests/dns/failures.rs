//! Failed look-ups never count as an answer about the name.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use postroad_model::ServerId;
use postroad_net::dns::{Dns, DnsSettings, MxFailure};
use postroad_testkit::DnsServer;
use postroad_testkit::dns_server::{Failure, RecordType};

use super::{host_names, hurried, patient, plan};

async fn temporary_failure_text(dns: &Dns, name: &str) -> String {
    let failure = plan(dns, name).await.unwrap_err();
    assert!(!failure.is_permanent(), "{failure:?}");
    failure.to_string()
}

/// Client with short timeouts for failures without an answer, and with long ones for others.
fn client_for(failure: Failure, server: &DnsServer) -> Dns {
    if matches!(failure, Failure::Silent | Failure::WrongId) { hurried(server) } else { patient(server) }
}

#[tokio::test]
async fn each_failure_is_temporary_and_says_what_happened() {
    let server = DnsServer::start();
    for (name, failure, words) in [
        (
            "servfail.example",
            Failure::ServFail,
            "MX lookup of servfail.example: the name server answered SERVFAIL",
        ),
        ("refused.example", Failure::Refused, "answered REFUSED"),
        ("silent.example", Failure::Silent, "did not answer in time"),
        ("garbage.example", Failure::Garbage, "MX lookup of garbage.example"),
        ("forged.example", Failure::WrongId, "did not answer in time"),
        ("referral.example", Failure::Referral, "referred to others"),
    ] {
        server.mx(name, 10, "mx.example.com").fail(name, failure);
        let dns = client_for(failure, &server);
        let text = temporary_failure_text(&dns, name).await;
        assert!(text.contains(words), "{failure:?} gave {text:?}");
        assert!(server.questions(name, RecordType::MX) >= 1);
        server.clear_failures(name);
        assert_eq!(host_names(&plan(&dns, name).await.unwrap()), ["mx.example.com"], "after {failure:?}");
    }
}

#[tokio::test]
async fn failed_address_look_up_of_an_implicit_host_is_temporary() {
    let server = DnsServer::start();
    server.txt("example.com", "exists").fail_type("example.com", RecordType::A, Failure::ServFail);
    assert!(
        temporary_failure_text(&patient(&server), "example.com").await.contains("A lookup of example.com")
    );
}

#[tokio::test]
async fn an_empty_answer_without_soa_counts_as_no_record() {
    let server = DnsServer::start();
    server.a("example.com", [192, 0, 2, 1]).fail_type("example.com", RecordType::MX, Failure::Empty);
    assert!(plan(&patient(&server), "example.com").await.unwrap().implicit);
}

#[tokio::test]
async fn look_ups_of_alias_loops_end_with_a_temporary_failure() {
    let server = DnsServer::start();
    server.cname("self.example", "self.example");
    server.cname("ping.example", "pong.example").cname("pong.example", "ping.example");
    for number in 0..40 {
        server.cname(&format!("link{number}.example"), &format!("link{}.example", number + 1));
    }
    let dns = patient(&server);
    for name in ["self.example", "ping.example"] {
        assert!(temporary_failure_text(&dns, name).await.contains("aliases"), "{name}");
        assert!(server.questions(name, RecordType::MX) <= 10, "{name}");
    }
    // This chain is long but ends, at a name that does not exist.
    assert_eq!(plan(&dns, "link0.example").await, Err(MxFailure::NoSuchDomain));
}

#[tokio::test]
async fn truncated_answers_are_fetched_over_tcp() {
    let server = DnsServer::start();
    server.mx("example.com", 10, "mx.example.com").fail("example.com", Failure::Truncated);
    assert_eq!(host_names(&plan(&patient(&server), "example.com").await.unwrap()), ["mx.example.com"]);
    assert_eq!(server.questions("example.com", RecordType::MX), 2);
    assert_eq!(server.tcp_questions("example.com", RecordType::MX), 1);
}

#[tokio::test]
async fn a_look_up_does_not_wait_for_the_same_look_up_of_another_sending_server() {
    let server = DnsServer::start();
    let dns = patient(&server);
    let mut asking = tokio::task::JoinSet::new();
    let mut ask_for_first = |name: String| {
        let dns = dns.for_server(ServerId(1));
        asking.spawn(async move { plan(&dns, &name).await.is_ok() });
    };
    // More than one server's permits for slow names. These look-ups hold the permits until they are given up, 12
    // seconds from now.
    for number in 0..400 {
        let name = format!("silent{number}.example");
        server.fail(&name, Failure::Silent);
        ask_for_first(name);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.mx("slow.example", 10, "mx.example.com");
    server.fail("slow.example", Failure::Slow(Duration::from_secs(3)));
    ask_for_first("slow.example".to_owned());
    // By then the look-up has been too slow twice, and waits for such a permit.
    tokio::time::sleep(Duration::from_millis(2_300)).await;
    let of_second = dns.for_server(ServerId(2));
    let found = tokio::time::timeout(Duration::from_secs(8), plan(&of_second, "slow.example")).await;
    assert!(matches!(&found, Ok(Ok(plan)) if host_names(plan) == ["mx.example.com"]), "{found:?}");
}

#[tokio::test]
async fn the_next_name_server_is_asked_if_one_is_silent() {
    // Bound and never read: it stays silent, and no other process can take the port.
    let dead = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server = DnsServer::start();
    server.mx("example.com", 10, "mx.example.com");
    let nameservers = vec![dead.local_addr().unwrap(), server.address()];
    let timeout = Duration::from_millis(500);
    let dns = Dns::new(&DnsSettings { nameservers, timeout, attempts: 4, ..DnsSettings::default() }).unwrap();
    assert_eq!(host_names(&plan(&dns, "example.com").await.unwrap()), ["mx.example.com"]);
}
