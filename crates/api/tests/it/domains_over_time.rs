//! What hours and days of failing records and of DNS trouble do to a domain, seen by its owner.

use std::net::Ipv4Addr;
use std::time::Duration;

use postroad_app::domains::DomainChecker;
use postroad_net::dns::{Dns, DnsSettings};
use postroad_store::Database;
use postroad_testkit::dns_server::Failure;
use postroad_testkit::{DnsServer, MovedClock};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::service::{SEND_MESSAGE, Service, message_to};

struct World {
    service: Service,
    dns: DnsServer,
    clock: MovedClock,
}

impl World {
    async fn start(database: Database) -> Self {
        let (clock, dns) = (MovedClock::default(), DnsServer::start());
        dns.a("mail.example.test", Ipv4Addr::new(192, 0, 2, 1)).ns("shop.example", "ns.shop.example");
        let service = Service::start_at(database, clock.clone()).await;
        let settings = DnsSettings { nameservers: vec![dns.address()], ..DnsSettings::default() };
        service.app.set_domain_checker(DomainChecker::new(Dns::for_checks(&settings).unwrap(), None, false));
        Self { service, dns, clock }
    }

    async fn domains(&self, action: &str) -> Value {
        let answer =
            self.service.call(&format!("/api/v1/domains/{action}"), &json!({"name": "shop.example"})).await;
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    }

    /// Checks after so many hours.
    async fn after_hours(&self, hours: u64) -> Value {
        self.clock.advance(Duration::from_hours(hours));
        self.domains("verify").await
    }

    async fn can_send(&self) -> bool {
        let mut message = message_to("ann@example.net");
        message["from"] = json!("hello@shop.example");
        let answer = self.service.call(SEND_MESSAGE, &message).await;
        if answer["status"] != "success" {
            assert_eq!(answer["data"]["code"], "UnauthenticatedFromAddress", "{answer}");
        }
        answer["status"] == "success"
    }

    async fn events(&self) -> Vec<String> {
        let types = json!({"types": ["domain.verified", "domain.failing"]});
        let listed = self.service.call("/api/v1/events/list", &types).await;
        let items = listed["data"]["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["type"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn publish(&self, domain: &Value) {
        for record in domain["records"].as_array().unwrap() {
            let (name, value) = (record["name"].as_str().unwrap(), record["value"].as_str().unwrap());
            if record["type"] == "CNAME" {
                self.dns.cname(name, value);
            } else {
                self.dns.txt(name, value);
            }
        }
    }
}

#[tokio::test]
async fn failing_records_stop_sending_after_72_hours_on_sqlite() {
    let folder = TempDir::new().unwrap();
    failing_records(World::start(Database::Sqlite(folder.path().join("postroad.db"))).await).await;
}

#[tokio::test]
async fn failing_records_stop_sending_after_72_hours_on_postgres() {
    let database = postroad_testkit::Database::create();
    failing_records(World::start(Database::Postgres(database.url().to_owned())).await).await;
}

async fn failing_records(world: World) {
    let created = world.domains("create").await;
    assert!(!world.can_send().await);
    world.publish(&created);
    let verified = world.after_hours(1).await;
    assert_eq!(
        (&verified["verified"], &verified["return_path"]),
        (&json!(true), &json!("rp.shop.example")),
        "{verified:#}"
    );
    assert!(world.can_send().await);

    // The name servers are down: that is no verdict, however long it lasts.
    let names: Vec<&str> = created["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["name"].as_str().unwrap())
        .collect();
    for name in &names {
        world.dns.fail(name, Failure::ServFail);
    }
    for _ in 0..4 {
        let troubled = world.after_hours(100).await;
        let statuses: Vec<&Value> =
            troubled["records"].as_array().unwrap().iter().map(|record| &record["status"]).collect();
        assert_eq!(statuses, vec![&json!("dns_error"); names.len()]);
        let same = ["verified", "verified_at", "failing_since", "return_path", "dkim"];
        for field in same {
            assert_eq!(troubled[field], verified[field], "{field}");
        }
    }
    assert!(world.can_send().await);
    assert_eq!(world.events().await, ["domain.verified"]);

    // They are back, and the records are gone.
    for name in &names {
        world.dns.heal(name).remove(name);
    }
    let failing = world.after_hours(1).await;
    assert_eq!((&failing["verified"], &failing["return_path"]), (&json!(true), &json!("rp.shop.example")));
    assert_eq!(failing["dkim"][0]["state"], "active");
    let since = failing["failing_since"].clone();
    assert!(since.is_string() && world.can_send().await);
    assert_eq!(world.events().await, ["domain.verified", "domain.failing"], "it is told at once");
    world.after_hours(1).await;
    let dropped = world.after_hours(1).await;
    assert_eq!(dropped["return_path"], "rp.mail.example.test", "three checks found it wrong");
    let late = world.after_hours(69).await;
    assert_eq!((&late["verified"], &late["failing_since"]), (&json!(true), &since));
    assert!(world.can_send().await);
    let stopped = world.after_hours(1).await;
    assert_eq!((&stopped["verified"], &stopped["verified_by"]), (&json!(false), &json!(null)));
    world.clock.advance(Duration::from_secs(3));
    assert!(!world.can_send().await);

    world.publish(&created);
    let again = world.after_hours(1).await;
    assert_eq!((&again["verified"], &again["failing_since"]), (&json!(true), &json!(null)));
    world.clock.advance(Duration::from_secs(3));
    assert!(world.can_send().await);
    assert_eq!(world.events().await, ["domain.verified", "domain.failing", "domain.verified"]);
}
