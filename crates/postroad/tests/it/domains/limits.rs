//! Limits on domains and on the work for them.

use std::time::{Duration, Instant};

use postroad_testkit::DnsServer;
use postroad_testkit::dns_server::Failure;
use serde_json::{Value, json};

use super::start;
use crate::world::{Engine, World, both_engines};

both_engines!(
    a_server_has_no_more_domains_than_the_operator_allows,
    concurrent_calls_create_no_more_domains_than_the_limit,
    an_accounts_checks_leave_room_for_other_accounts,
    a_check_reports_when_the_next_check_runs
);

async fn a_server_has_no_more_domains_than_the_operator_allows(engine: Engine) {
    let world = World::start_with(engine, &[("POSTROAD_DOMAINS_PER_SERVER", "2")]);
    world.domains("create", &json!({"name": "one.example"})).await;
    let answer = world.call("/api/v1/domains/create", &json!({"name": "two.example"})).await;
    let message = "The server, or its account, has 2 domains, the maximum; delete one first";
    assert_eq!(
        (&answer["data"]["code"], &answer["data"]["message"]),
        (&json!("TooManyDomains"), &json!(message))
    );
    // An existing domain is reported before the limit.
    assert_eq!(world.refused_domains("create", &json!({"name": "one.example"})).await, "DomainExists");
    world.domains("delete", &json!({"name": "one.example"})).await;
    world.domains("create", &json!({"name": "two.example"})).await;
}

async fn concurrent_calls_create_no_more_domains_than_the_limit(engine: Engine) {
    let world = World::start_with(engine, &[("POSTROAD_DOMAINS_PER_SERVER", "2")]);
    let create = async |number: usize| {
        world.call("/api/v1/domains/create", &json!({"name": format!("d{number}.example")})).await
    };
    let answers: [Value; 4] = tokio::join!(create(0), create(1), create(2), create(3)).into();
    let made = answers.iter().filter(|answer| answer["status"] == "success").count();
    assert_eq!(made, 1, "there is room for one beside the domain of `dev`: {answers:#?}");
    let refused = answers.iter().filter(|answer| answer["data"]["code"] == "TooManyDomains").count();
    assert_eq!(refused, 3, "{answers:#?}");
}

async fn an_accounts_checks_leave_room_for_other_accounts(engine: Engine) {
    let (world, dns) = start(engine);
    world.admin(&["account", "create", "other"]);
    world.admin(&["server", "create", "elsewhere", "--account", "other"]);
    let made = world.admin(&["key", "create", "--server", "elsewhere"]);
    let other = made["api_key"].as_str().unwrap();
    for number in 0..5 {
        world.domains("create", &json!({"name": format!("d{number}.example")})).await;
    }
    let answer = world.call_as(other, "/api/v1/domains/create", &json!({"name": "quick.example"})).await;
    assert_eq!(answer["status"], "success", "{answer}");
    silence_dns(&dns);
    let verify = async |number: usize| {
        world.call("/api/v1/domains/verify", &json!({"name": format!("d{number}.example")})).await
    };
    let crowd = async {
        // All five at once: one of them is refused, because too many are running.
        let answers = tokio::join!(verify(0), verify(1), verify(2), verify(3), verify(4));
        [answers.0, answers.1, answers.2, answers.3, answers.4]
    };
    let elsewhere = async {
        let begun = Instant::now();
        let answer = world.call_as(other, "/api/v1/domains/verify", &json!({"name": "quick.example"})).await;
        (answer, begun.elapsed())
    };
    let (crowd, (checked, took)) = tokio::join!(crowd, elsewhere);
    let busy = crowd.iter().filter(|answer| answer["data"]["code"] == "DomainsBusy").count();
    assert_eq!(busy, 1, "{crowd:#?}");
    assert_eq!(checked["status"], "success", "{checked}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

async fn a_check_reports_when_the_next_check_runs(engine: Engine) {
    let (world, _dns) = start(engine);
    world.domains("create", &json!({"name": "one.example"})).await;
    for _ in 0..2 {
        let reply = world.post("/api/v1/domains/verify", &json!({"name": "one.example"})).await;
        assert_eq!(reply.json()["status"], "success", "{}", reply.text());
        let header = |name: &str| reply.header(&format!("ratelimit-{name}")).unwrap().parse::<u64>().unwrap();
        assert_eq!((header("limit"), header("remaining")), (1, 0));
        assert!((1..=10).contains(&header("reset")), "{}", header("reset"));
    }
    let reply = world.post("/api/v1/domains/verify", &json!({"name": "two.example"})).await;
    assert_eq!(reply.header("ratelimit-limit"), None, "a call for an unknown domain does not count");
}

fn silence_dns(dns: &DnsServer) {
    for number in 0..5 {
        let name = format!("d{number}.example");
        for name in [name.clone(), format!("_dmarc.{name}"), format!("rp.{name}"), format!("track.{name}")] {
            dns.fail(&name, Failure::Silent);
        }
    }
}
