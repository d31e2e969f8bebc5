//! Effects of failing records and DNS failures over hours and days on a domain, as its owner sees them.

use std::net::Ipv4Addr;
use std::time::Duration;

use postroad_app::domains::DomainChecker;
use postroad_net::client_tls::ClientTls;
use postroad_net::dns::{Dns, DnsSettings};
use postroad_net::guarded_http::{GuardedHttp, GuardedHttpSettings};
use postroad_store::Database;
use postroad_testkit::dns_server::Failure;
use postroad_testkit::{DnsServer, HttpsAnswer, HttpsServer, ManualClock, TestCertificate, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::service::{SEND_MESSAGE, Service, message_to};

/// No bounce listener of the service takes receivers' reports.
const TAKES_REPORTS: bool = false;

/// A running service, with a DNS server and a clock that the test controls.
struct World {
    service: Service,
    dns: DnsServer,
    clock: ManualClock,
}

impl World {
    async fn start(database: Database) -> Self {
        Self::start_with(database, |dns| DomainChecker::new(dns, None, TAKES_REPORTS)).await
    }

    async fn start_with(database: Database, checker: impl FnOnce(Dns) -> DomainChecker) -> Self {
        let (clock, dns) = (ManualClock::default(), DnsServer::start());
        dns.a("mail.example.test", Ipv4Addr::new(192, 0, 2, 1)).ns("shop.example", "ns.shop.example");
        let service = Service::start_with_clock(database, clock.clone()).await;
        let settings = DnsSettings { nameservers: vec![dns.address()], ..DnsSettings::default() };
        service.app.set_domain_checker(checker(Dns::for_checks(&settings).unwrap()));
        Self { service, dns, clock }
    }

    /// Verifies the domain as soon as that is allowed again.
    async fn verify_soon(&self) -> Value {
        self.clock.advance(Duration::from_secs(10));
        self.call_domains("verify").await
    }

    /// Calls domains/`action` for the domain.
    async fn call_domains(&self, action: &str) -> Value {
        let answer =
            self.service.call(&format!("/api/v1/domains/{action}"), &json!({"name": "shop.example"})).await;
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    }

    /// Verifies the domain after `hours`.
    async fn verify_after_hours(&self, hours: u64) -> Value {
        self.clock.advance(Duration::from_hours(hours));
        self.call_domains("verify").await
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

    /// Waits for these events. On PostgreSQL, events appear once all older transactions of the database server are
    /// over, those of other tests included.
    async fn until_events(&self, expected: &[&str]) {
        eventually(async || {
            let events = self.events().await;
            if events == expected { Ok(()) } else { Err(format!("{events:?}")) }
        })
        .await;
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
    check_failing_records(World::start(Database::Sqlite(folder.path().join("postroad.db"))).await).await;
}

#[tokio::test]
async fn failing_records_stop_sending_after_72_hours_on_postgres() {
    let database = postroad_testkit::Database::create();
    check_failing_records(World::start(Database::Postgres(database.url().to_owned())).await).await;
}

async fn check_failing_records(world: World) {
    let created = world.call_domains("create").await;
    assert!(!world.can_send().await);
    world.publish(&created);
    let verified = world.verify_after_hours(1).await;
    assert_eq!(
        (&verified["verified"], &verified["return_path"]),
        (&json!(true), &json!("rp.shop.example")),
        "{verified:#}"
    );
    assert!(world.can_send().await);

    // The name servers are down: that changes nothing about the domain, however long it lasts.
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
        let troubled = world.verify_after_hours(100).await;
        let statuses: Vec<&Value> =
            troubled["records"].as_array().unwrap().iter().map(|record| &record["status"]).collect();
        assert_eq!(statuses, vec![&json!("dns_error"); names.len()]);
        let same = ["verified", "verified_at", "failing_since", "return_path", "dkim"];
        for field in same {
            assert_eq!(troubled[field], verified[field], "{field}");
        }
    }
    assert!(world.can_send().await);
    world.until_events(&["domain.verified"]).await;

    // The name servers are back, but the records are gone.
    for name in &names {
        world.dns.clear_failures(name).remove(name);
    }
    let failing = world.verify_after_hours(1).await;
    assert_eq!((&failing["verified"], &failing["return_path"]), (&json!(true), &json!("rp.shop.example")));
    assert_eq!(failing["dkim"][0]["state"], "active");
    let since = failing["failing_since"].clone();
    assert!(since.is_string() && world.can_send().await);
    world.until_events(&["domain.verified", "domain.failing"]).await;
    world.verify_after_hours(1).await;
    let dropped = world.verify_after_hours(1).await;
    assert_eq!(dropped["return_path"], "rp.mail.example.test", "three checks found its record wrong");
    let late = world.verify_after_hours(69).await;
    assert_eq!((&late["verified"], &late["failing_since"]), (&json!(true), &since));
    assert!(world.can_send().await);
    let stopped = world.verify_after_hours(1).await;
    assert_eq!((&stopped["verified"], &stopped["verified_by"]), (&json!(false), &json!(null)));
    world.clock.advance(Duration::from_secs(3));
    assert!(!world.can_send().await);

    world.publish(&created);
    let again = world.verify_after_hours(1).await;
    assert_eq!((&again["verified"], &again["failing_since"]), (&json!(true), &json!(null)));
    world.clock.advance(Duration::from_secs(3));
    assert!(world.can_send().await);
    world.until_events(&["domain.verified", "domain.failing", "domain.verified"]).await;
}

/// Resolvers may remember for a day that a name does not exist; a check asks again.
#[tokio::test]
async fn a_record_that_was_just_added_is_found_at_once() {
    let folder = TempDir::new().unwrap();
    let world = World::start(Database::Sqlite(folder.path().join("postroad.db"))).await;
    world.dns.negative_ttl_secs(86_400).ttl_secs(86_400);
    let created = world.call_domains("create").await;
    let missing = world.call_domains("verify").await;
    assert_eq!((&missing["verified"], &missing["records"][0]["status"]), (&json!(false), &json!("missing")));
    world.publish(&created);
    let same = world.call_domains("verify").await;
    assert_eq!(same["checked_at"], missing["checked_at"], "manual checks are at least ten seconds apart");
    let verified = world.verify_soon().await;
    assert_eq!(verified["verified"], true, "{verified:#}");
    // Found records are not remembered either.
    for record in created["records"].as_array().unwrap() {
        world.dns.remove(record["name"].as_str().unwrap());
    }
    let failing = world.verify_soon().await;
    assert_eq!(failing["records"][0]["status"], "missing", "{failing:#}");
}

/// The customer's host is used in links only while it answers with a certificate that browsers accept.
#[tokio::test]
async fn a_tracking_host_is_used_with_a_good_certificate_only() {
    let good = TestCertificate::for_names(&["track.shop.example"]);
    let server = HttpsServer::start(&good);
    server.answer("track.shop.example/", HttpsAnswer::status(404));
    let self_signed = HttpsServer::start(&TestCertificate::self_signed(&["track.shop.example"]));
    self_signed.answer("track.shop.example/", HttpsAnswer::status(404));
    let broken = HttpsServer::start(&good);
    broken.answer("track.shop.example/", HttpsAnswer::status(502));
    let folder = TempDir::new().unwrap();
    // As with the configuration key `[tracking] ca_file`.
    let authorities = folder.path().join("authorities.pem");
    std::fs::write(&authorities, &good.ca_pem).unwrap();
    for (number, (port, has_authority, is_used)) in [
        (server.address().port(), true, true),
        (server.address().port(), false, false),
        (self_signed.address().port(), true, false),
        (broken.address().port(), true, false),
    ]
    .into_iter()
    .enumerate()
    {
        let tls = ClientTls::new(has_authority.then_some(authorities.as_path())).unwrap();
        let allowed = vec!["127.0.0.0/8".parse().unwrap()];
        let settings = GuardedHttpSettings { allowed, idle_max: 0, ..GuardedHttpSettings::default() };
        let database = Database::Sqlite(folder.path().join(format!("{number}.db")));
        let checker = |dns: Dns| {
            let http = GuardedHttp::new(dns.clone(), tls.verified(), settings);
            DomainChecker::new(dns, Some(http), TAKES_REPORTS).with_tracking_port(port)
        };
        let world = World::start_with(database, checker).await;
        world.dns.a("track.mail.example.test", Ipv4Addr::LOCALHOST);
        world.publish(&world.call_domains("create").await);
        let domain = world.call_domains("verify").await;
        let tracking =
            domain["records"].as_array().unwrap().iter().find(|record| record["purpose"] == "tracking");
        assert_eq!(tracking.unwrap()["status"], "verified", "{domain:#}");
        let host = if is_used { "track.shop.example" } else { "track.mail.example.test" };
        assert_eq!((number, domain["tracking_host"].as_str()), (number, Some(host)));
    }
}
