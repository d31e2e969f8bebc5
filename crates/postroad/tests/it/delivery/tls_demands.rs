//! Verified TLS, required by the receiver (MTA-STS) or the sender (`require_tls`).

use postroad_testkit::smtp_peer::{PeerTls, Script};
use postroad_testkit::{HttpsAnswer, HttpsServer, SmtpPeer, TestCertificate};
use serde_json::json;

use super::outside::Outside;
use crate::world::{Engine, World, good_but};

/// File of trusted authorities, removed when dropped.
pub(super) struct Authorities(tempfile::NamedTempFile);

impl Authorities {
    pub(super) fn of(certificates: &[&TestCertificate]) -> Self {
        let file = tempfile::NamedTempFile::new().expect("the temporary folder is writable");
        let pems: String = certificates.iter().map(|certificate| certificate.ca_pem.as_str()).collect();
        std::fs::write(file.path(), pems).expect("the temporary folder is writable");
        Self(file)
    }

    pub(super) fn path(&self) -> &str {
        self.0.path().to_str().expect("temporary files have plain names")
    }
}

fn script_with_tls(certificate: &TestCertificate) -> Script {
    Script::new().with_tls(PeerTls::With(certificate.clone()))
}

async fn assert_not_delivered(world: &World, id: i64, peer: &SmtpPeer, why: &str) {
    let deliveries = world.until_deliveries(id, 2).await;
    for delivery in deliveries {
        assert_eq!(delivery["status"], "SoftFail", "{delivery}");
        let details = delivery["details"].as_str().unwrap();
        assert!(details.contains(why), "{why:?} in {details}");
    }
    let commands: Vec<String> = peer.connections().into_iter().flat_map(|c| c.commands).collect();
    assert!(!commands.iter().any(|line| line.starts_with("MAIL")), "{commands:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_mta_sts_policy_is_enforced() {
    let outside = Outside::new();
    let domains =
        ["good.example", "stranger.example", "plain.example", "unlisted.example", "testing.example"];
    let policy_hosts = domains.map(|domain| format!("mta-sts.{domain}"));
    let web = TestCertificate::for_names(&policy_hosts.each_ref().map(String::as_str));
    let policies = HttpsServer::start(&web);
    for (domain, host) in domains.iter().zip(&policy_hosts) {
        let mode = if *domain == "testing.example" { "testing" } else { "enforce" };
        let mx =
            if *domain == "unlisted.example" { "other.unlisted.example" } else { &format!("mx.{domain}") };
        let policy = format!("version: STSv1\r\nmode: {mode}\r\nmx: {mx}\r\nmax_age: 86400\r\n");
        policies.answer(&format!("{host}/.well-known/mta-sts.txt"), HttpsAnswer::text(&policy));
        outside.dns.txt(&format!("_mta-sts.{domain}"), "v=STSv1; id=20261115;").a(host, [127, 0, 0, 1]);
    }
    let listed = TestCertificate::for_names(&["mx.good.example", "mx.unlisted.example"]);
    let stranger = TestCertificate::self_signed(&["mx.stranger.example"]);
    let good = outside.site("good.example", script_with_tls(&listed));
    let wrong = outside.site("stranger.example", script_with_tls(&stranger));
    let plain = outside.site("plain.example", Script::new());
    let unlisted = outside.site("unlisted.example", script_with_tls(&listed));
    let testing = outside.site("testing.example", script_with_tls(&stranger));
    let authorities = Authorities::of(&[&web, &listed]);
    let port = policies.address().port().to_string();
    let envs = [
        ("POSTROAD_DELIVERY_CA_FILE", authorities.path()),
        ("POSTROAD_DELIVERY_MTA_STS_PORT", port.as_str()),
    ];
    let world = outside.start(Engine::Sqlite, &envs);
    let mut ids = Vec::new();
    for domain in domains {
        ids.push(world.accepted_id(&good_but(json!({"to": [format!("ann@{domain}")]}))).await);
    }
    let deliveries = world.until_status(ids[0], "Sent").await;
    assert_eq!(deliveries[0]["sent_with_ssl"], true, "{deliveries:#?}");
    assert!(good.messages()[0].is_encrypted);
    assert_not_delivered(&world, ids[1], &wrong, "is demanded by MTA-STS").await;
    assert_not_delivered(&world, ids[2], &plain, "TLS is required and the server does not offer it").await;
    assert_not_delivered(&world, ids[3], &unlisted, "the MTA-STS policy does not name the host").await;
    world.until_status(ids[4], "Sent").await;
    assert_eq!(testing.messages().len(), 1);
    assert_eq!(
        policies.requests("mta-sts.stranger.example/.well-known/mta-sts.txt"),
        1,
        "a policy is cached"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_mta_sts_policy_survives_a_restart() {
    let outside = Outside::new();
    let web = TestCertificate::for_names(&["mta-sts.plain.example"]);
    let policies = HttpsServer::start(&web);
    let policy = "version: STSv1\r\nmode: enforce\r\nmx: mx.plain.example\r\nmax_age: 86400\r\n";
    policies.answer("mta-sts.plain.example/.well-known/mta-sts.txt", HttpsAnswer::text(policy));
    outside.dns.txt("_mta-sts.plain.example", "v=STSv1; id=1;").a("mta-sts.plain.example", [127, 0, 0, 1]);
    let plain = outside.site("plain.example", Script::new());
    let authorities = Authorities::of(&[&web]);
    let port = policies.address().port().to_string();
    let envs = [
        ("POSTROAD_DELIVERY_CA_FILE", authorities.path()),
        ("POSTROAD_DELIVERY_MTA_STS_PORT", port.as_str()),
    ];
    let mut world = outside.start(Engine::Sqlite, &envs);
    let id = world.accepted_id(&good_but(json!({"to": ["ann@plain.example"]}))).await;
    let before = world.until_deliveries(id, 1).await.len();
    // An attacker breaks the domain's DNS and its web server, and waits for a restart.
    outside.dns.remove("_mta-sts.plain.example").remove("mta-sts.plain.example");
    drop(policies);
    world.crash_and_restart();
    // One more attempt may have ended before the crash, so the first new record is left out.
    for delivery in &world.until_deliveries(id, before + 2).await[before + 1..] {
        let details = delivery["details"].as_str().unwrap();
        assert!(details.contains("is required"), "{details}");
    }
    assert!(plain.messages().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_can_require_tls() {
    let outside = Outside::new();
    let trusted = TestCertificate::for_names(&["mx.good.example"]);
    let stranger = TestCertificate::for_names(&["mx.stranger.example"]);
    let good = outside.site("good.example", script_with_tls(&trusted));
    let wrong = outside.site("stranger.example", script_with_tls(&stranger));
    let plain = outside.site("plain.example", Script::new());
    let authorities = Authorities::of(&[&trusted]);
    // Slower retries than in other tests, so that they do not use up the connections per minute that a site gets.
    let envs =
        [("POSTROAD_DELIVERY_CA_FILE", authorities.path()), ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1s")];
    let world = outside.start(Engine::Sqlite, &envs);
    let requiring_tls =
        |domain: &str| good_but(json!({"to": [format!("ann@{domain}")], "require_tls": true}));
    let to_good = world.accepted_id(&requiring_tls("good.example")).await;
    let to_wrong = world.accepted_id(&requiring_tls("stranger.example")).await;
    let to_plain = world.accepted_id(&requiring_tls("plain.example")).await;
    let deliveries = world.until_status(to_good, "Sent").await;
    assert_eq!(deliveries[0]["sent_with_ssl"], true);
    assert!(good.messages()[0].is_encrypted);
    assert_not_delivered(&world, to_wrong, &wrong, "is demanded by the sender").await;
    assert_not_delivered(&world, to_plain, &plain, "TLS is required and the server does not offer it").await;
    // Mail to the same host that does not require TLS is not delayed.
    let without_requirement = world.accepted_id(&good_but(json!({"to": ["bob@plain.example"]}))).await;
    world.until_status(without_requirement, "Sent").await;
    assert_eq!(plain.messages()[0].rcpt_to, ["bob@plain.example"]);
}

/// `require_tls` is stored with the message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_requires_tls_still_requires_it_after_a_restart() {
    let outside = Outside::new();
    let plain = outside.site("plain.example", Script::new());
    let mut world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&good_but(json!({"to": ["ann@plain.example"], "require_tls": true}))).await;
    let before = world.until_deliveries(id, 1).await.len();
    world.crash_and_restart();
    world.until_deliveries(id, before + 2).await;
    assert!(plain.messages().is_empty());
    assert_eq!(world.expanded(id).await["status"]["status"], "SoftFail");
}
