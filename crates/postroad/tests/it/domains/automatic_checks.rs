//! Automatic checks of domains' DNS records.

use std::time::Duration;

use postroad_testkit::dns_server::{Failure, RecordType};
use postroad_testkit::postgres::Database;
use postroad_testkit::{DnsServer, ReceivedPost, WebhookCatcher, eventually};
use serde_json::{Value, json};

use super::{publish, start_with, status};
use crate::world::{Engine, World, both_engines};

const PURPOSES: [&str; 5] = ["spf", "dkim", "dmarc", "return_path", "tracking"];
/// The shortest allowed intervals, so that the test does not wait for minutes or hours.
const SHORT_INTERVALS: [(&str, &str); 2] =
    [("POSTROAD_DOMAINS_CHECK_INTERVAL", "1s"), ("POSTROAD_DOMAINS_CHECK_INTERVAL_MAX", "1s")];

impl World {
    /// The stored domain, without a check.
    async fn stored_domain(&self, name: &str) -> Value {
        self.domains("get", &json!({ "name": name })).await
    }

    /// Waits until automatic checks have found a state of the domain for which `condition` is true.
    async fn until_stored_domain(&self, name: &str, condition: impl Fn(&Value) -> bool) -> Value {
        eventually(async || {
            let domain = self.stored_domain(name).await;
            if condition(&domain) { Ok(domain) } else { Err(format!("{domain:#}")) }
        })
        .await
    }

    async fn domain_events(&self) -> Vec<String> {
        let types = json!({"types": ["domain.verified", "domain.failing"]});
        let listed = self.call("/api/v1/events/list", &types).await;
        let items = listed["data"]["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["type"].as_str().unwrap().to_owned()).collect()
    }
}

both_engines!(dns_records_that_come_and_go_are_seen_without_a_call);

async fn dns_records_that_come_and_go_are_seen_without_a_call(engine: Engine) {
    let (world, dns) = start_with(engine, &SHORT_INTERVALS);
    let catcher = WebhookCatcher::start();
    world.webhooks("create", &json!({"url": catcher.url("/in")})).await;
    let is_reported = |kind: &'static str| {
        move |posts: &[ReceivedPost]| posts.iter().any(|post| post.json()["type"] == kind)
    };
    let patience = Duration::from_secs(30);
    let created = world.domains("create", &json!({"name": "shop.example"})).await;
    let missing = world.until_stored_domain("shop.example", |domain| domain["checked_at"].is_string()).await;
    assert!(PURPOSES.iter().all(|purpose| status(&missing, purpose) == "missing"), "{missing:#}");
    assert_eq!((&missing["verified"], &missing["failing_since"]), (&json!(false), &Value::Null));

    publish(&dns, &created);
    catcher.wait_until("/in", patience, is_reported("domain.verified"));
    let verified = world.stored_domain("shop.example").await;
    assert_eq!((&verified["verified"], &verified["verified_by"]), (&json!(true), &json!("dns")));
    let (_, mail_from) = world.send_from("hello@shop.example", "bob@example.net").await;
    assert!(mail_from.ends_with("@rp.shop.example"), "{mail_from}");

    // Failures of name servers show in the status of the records, and change nothing else.
    let names: Vec<&str> = created["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["name"].as_str().unwrap())
        .collect();
    for name in &names {
        dns.fail(name, Failure::ServFail);
    }
    let is_trouble = |domain: &Value| PURPOSES.iter().all(|purpose| status(domain, purpose) == "dns_error");
    let troubled = world.until_stored_domain("shop.example", is_trouble).await;
    let again = world
        .until_stored_domain("shop.example", |domain| domain["checked_at"] != troubled["checked_at"])
        .await;
    for field in ["verified", "verified_by", "failing_since", "return_path", "dkim"] {
        assert_eq!((&troubled[field], &again[field]), (&verified[field], &verified[field]), "{field}");
    }
    assert_eq!(world.domain_events().await, ["domain.verified"]);

    for name in &names {
        dns.clear_failures(name);
    }
    dns.remove("_dmarc.shop.example");
    let posts = catcher.wait_until("/in", patience, is_reported("domain.failing"));
    let event = posts.iter().map(ReceivedPost::json).find(|post| post["type"] == "domain.failing").unwrap();
    assert_eq!(event["data"]["domain"]["name"], "shop.example", "{event:#}");
    let failing = world.stored_domain("shop.example").await;
    assert_eq!((&failing["verified"], status(&failing, "dmarc")), (&json!(true), "missing"));
    assert!(failing["failing_since"].is_string());
    eventually(async || {
        let events = world.domain_events().await;
        if events == ["domain.verified", "domain.failing"] { Ok(()) } else { Err(format!("{events:?}")) }
    })
    .await;
}

/// The number of DNS queries for the DKIM record shows how many nodes checked it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_two_nodes_checks_a_due_domain() {
    let (dns, database) = (DnsServer::start(), Database::create());
    dns.a("postroad.localhost", [127, 0, 0, 1]);
    let name_server = dns.address().to_string();
    let pause = Duration::from_secs(5);
    let envs = [
        ("POSTROAD_DNS_NAMESERVERS", name_server.as_str()),
        ("POSTROAD_DOMAINS_CHECK_INTERVAL", "5s"),
        ("POSTROAD_DOMAINS_CHECK_INTERVAL_MAX", "1h"),
        ("POSTROAD_LOG", "info,postroad_app::domains=debug"),
    ];
    let url = database.url().to_owned();
    let one = World::start_on(Some(&url), Some(database), &envs);
    let other = World::start_on(Some(&url), None, &envs);
    let key_record = |domain: &Value| domain["records"][1]["name"].as_str().unwrap().to_owned();
    let by_hand = one.domains("create", &json!({"name": "byhand.example"})).await;
    publish(&dns, &by_hand);
    one.domains("verify", &json!({"name": "byhand.example"})).await;
    let questions_per_check = dns.questions(&key_record(&by_hand), RecordType::TXT);
    let mut names = Vec::new();
    for number in 0..8 {
        let name = format!("shop{number}.example");
        let created = one.domains("create", &json!({ "name": name })).await;
        publish(&dns, &created);
        names.push((name, key_record(&created)));
    }
    for (name, record) in &names {
        one.until_stored_domain(name, |domain| domain["verified"] == true).await;
        assert_eq!(dns.questions(record, RecordType::TXT), questions_per_check, "{record}");
    }
    // After this pause, both nodes have looked for due domains; the domains are not due again for an hour.
    tokio::time::sleep(pause + Duration::from_secs(1)).await;
    for (_, record) in &names {
        let logs = [&one, &other].map(|world| world.daemon.stderr_text());
        assert_eq!(dns.questions(record, RecordType::TXT), questions_per_check, "{record} {logs:#?}");
    }
}
