//! Smart host: with and without TLS and password. A password is never sent in clear text to another machine.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use postroad_model::MessageId;
use postroad_testkit::smtp_peer::{Answer, PeerTls, Script, Stage};
use postroad_testkit::{SmtpPeer, TestCertificate};

use super::limits::{send_many, write_providers_file};
use super::outside::{Outside, to};
use super::tls_demands::Authorities;
use crate::world::{Engine, World};

const HOST: &str = "smart.example";
const USER: &str = "postroad-user";
const PASSWORD: &str = "correct horse battery staple";

struct SmartHost {
    outside: Outside,
    peer: SmtpPeer,
    world: World,
}

impl SmartHost {
    /// `tls` is the setting `delivery.smarthost_tls`; a password is always set.
    fn start(tls: &str, script: Script, trusted: Option<&TestCertificate>) -> Self {
        let outside = Outside::new();
        let peer = outside.host(HOST, script);
        let address = format!("{HOST}:{}", outside.port());
        let authorities = trusted.map(|certificate| Authorities::of(&[certificate]));
        let mut envs = vec![
            ("POSTROAD_DELIVERY_SMARTHOST", address.as_str()),
            ("POSTROAD_DELIVERY_SMARTHOST_TLS", tls),
            ("POSTROAD_DELIVERY_SMARTHOST_USERNAME", USER),
            ("POSTROAD_DELIVERY_SMARTHOST_PASSWORD", PASSWORD),
            ("POSTROAD_DELIVERY_ALLOW_PRIVATE_DESTINATIONS", "false"),
        ];
        envs.extend(
            authorities.as_ref().map(|authorities| ("POSTROAD_DELIVERY_CA_FILE", authorities.path())),
        );
        let world = outside.start(Engine::Sqlite, &envs);
        Self { outside, peer, world }
    }

    fn commands(&self) -> Vec<String> {
        self.peer.connections().into_iter().flat_map(|connection| connection.commands).collect()
    }

    async fn send(&self) -> i64 {
        // The recipient's domain is not looked up: the smart host knows what to do with it.
        self.world.accepted_id(&to("ann@unknown-domain.example")).await
    }
}

fn auth_command() -> String {
    format!("AUTH PLAIN {}", BASE64_STANDARD.encode(format!("\0{USER}\0{PASSWORD}")))
}

fn script_with_auth() -> Script {
    Script::new().offering(&["AUTH PLAIN LOGIN"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_through_the_smart_host_with_starttls_and_a_password() {
    let certificate = TestCertificate::for_names(&[HOST]);
    let script = script_with_auth().with_tls(PeerTls::With(certificate.clone()));
    let mut smart = SmartHost::start("required", script, Some(&certificate));
    let id = smart.send().await;
    let deliveries = smart.world.until_status(id, "Sent").await;
    assert_eq!((&deliveries[0]["mx"], &deliveries[0]["sent_with_ssl"]), (&HOST.into(), &true.into()));
    let commands = smart.commands();
    let position_of = |wanted: &str| commands.iter().position(|line| line.starts_with(wanted)).unwrap();
    assert!(
        position_of("STARTTLS") < position_of("AUTH") && position_of("AUTH") < position_of("MAIL"),
        "{commands:?}"
    );
    assert_eq!(commands[position_of("AUTH")], auth_command());
    assert!(smart.peer.messages()[0].is_encrypted);
    assert_eq!(
        smart.outside.dns.questions("unknown-domain.example", postroad_testkit::dns_server::RecordType::MX),
        0
    );

    let log = smart.world.daemon.stderr_text();
    let store = smart.world.stopped_store().await;
    let servers = store.list_servers().await.unwrap();
    let transcripts = store.list_newest_transcripts(servers[0].id, MessageId(id), 10).await.unwrap();
    let shown = format!("{transcripts:?}");
    assert!(shown.contains("AUTH"), "{shown}");
    let secret = auth_command().replace("AUTH PLAIN ", "");
    for text in [&shown, &log] {
        assert!(!text.contains(PASSWORD) && !text.contains(&secret), "the password is shown: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_through_the_smart_host_with_tls_from_the_first_byte() {
    let certificate = TestCertificate::for_names(&[HOST]);
    let script = script_with_auth().with_implicit_tls(PeerTls::With(certificate.clone()));
    let smart = SmartHost::start("implicit", script, Some(&certificate));
    let id = smart.send().await;
    smart.world.until_status(id, "Sent").await;
    let commands = smart.commands();
    assert!(!commands.contains(&"STARTTLS".to_owned()) && commands.contains(&auth_command()), "{commands:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_untrusted_certificate_gets_no_password() {
    let certificate = TestCertificate::for_names(&[HOST]);
    let script = script_with_auth().with_tls(PeerTls::With(certificate));
    let smart = SmartHost::start("required", script, None);
    let id = smart.send().await;
    let deliveries = smart.world.until_deliveries(id, 1).await;
    let details = deliveries[0]["details"].as_str().unwrap();
    assert!(details.contains("is demanded by the smart host's setting"), "{details}");
    assert_eq!(deliveries[0]["status"], "SoftFail");
    let commands = smart.commands();
    assert!(commands.contains(&"STARTTLS".to_owned()), "it got as far as the certificate: {commands:?}");
    assert!(
        !commands.iter().any(|line| line.starts_with("AUTH") || line.starts_with("MAIL")),
        "{commands:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_password_is_sent_without_tls() {
    // A password is sent to another machine only inside TLS, whatever the setting says.
    for (tls, class) in [("off", "auth_failure"), ("opportunistic", "protocol")] {
        let smart = SmartHost::start(tls, script_with_auth(), None);
        let id = smart.send().await;
        let deliveries = smart.world.until_deliveries(id, 1).await;
        assert_eq!(deliveries[0]["status"], "SoftFail", "{tls}: {deliveries:#?}");
        assert_eq!(deliveries[0]["bounce_class"], class, "{deliveries:#?}");
        let commands = smart.commands();
        assert!(commands.iter().any(|line| line.starts_with("EHLO")), "{tls}: {commands:?}");
        assert!(
            !commands.iter().any(|line| line.starts_with("AUTH") || line.starts_with("MAIL")),
            "{commands:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_password_defers_the_message() {
    let certificate = TestCertificate::for_names(&[HOST]);
    let refusal = Answer::reply("535 5.7.8 Authentication credentials invalid");
    let script =
        script_with_auth().with_tls(PeerTls::With(certificate.clone())).first(1, Stage::Auth, refusal);
    let smart = SmartHost::start("required", script, Some(&certificate));
    let id = smart.send().await;
    let deliveries = smart.world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 2, "{deliveries:#?}");
    assert_eq!((&deliveries[0]["status"], &deliveries[0]["code"]), (&"SoftFail".into(), &535.into()));
    assert_eq!(deliveries[0]["bounce_class"], "auth_failure");
}

/// Nobody can listen between two programs on one machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_needs_no_tls_on_the_same_machine() {
    let outside = Outside::new();
    let peer = SmtpPeer::start(script_with_auth());
    let address = peer.address().to_string();
    let envs = [
        ("POSTROAD_DELIVERY_SMARTHOST", address.as_str()),
        ("POSTROAD_DELIVERY_SMARTHOST_TLS", "off"),
        ("POSTROAD_DELIVERY_SMARTHOST_USERNAME", USER),
        ("POSTROAD_DELIVERY_SMARTHOST_PASSWORD", PASSWORD),
    ];
    let world = outside.start(Engine::Sqlite, &envs);
    let id = world.accepted_id(&to("ann@unknown-domain.example")).await;
    world.until_status(id, "Sent").await;
    assert!(peer.connections()[0].commands.contains(&auth_command()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_to_a_smart_host_is_signed_unless_dkim_is_turned_off() {
    for (dkim, signatures) in [("true", 1), ("false", 0)] {
        let outside = Outside::new();
        let peer = outside.host(HOST, Script::new());
        let address = format!("{HOST}:{}", outside.port());
        let envs = [("POSTROAD_DELIVERY_SMARTHOST", address.as_str()), ("POSTROAD_DELIVERY_DKIM", dkim)];
        let world = outside.start(Engine::Sqlite, &envs);
        let id = world.accepted_id(&to("ann@unknown-domain.example")).await;
        world.until_status(id, "Sent").await;
        let text = String::from_utf8_lossy(&peer.messages()[0].bytes).into_owned();
        assert_eq!(text.matches("DKIM-Signature:").count(), signatures, "dkim = {dkim}: {text}");
        assert!(text.starts_with("Received: "), "{text}");
    }
}

/// Sends `count` messages through a slow smart host; returns the highest number of connections at once, and the time
/// from the first message to the last.
async fn send_through_slow_smart_host(count: usize, envs: &[(&str, &str)]) -> (usize, Duration) {
    let outside = Outside::new();
    let slow = Answer::reply("250 2.0.0 taken").after(Duration::from_millis(50));
    let peer = outside.host(HOST, Script::new().on(Stage::Message, slow));
    let address = format!("{HOST}:{}", outside.port());
    // Rules for providers do not apply to a smart host, whatever its name.
    let file = write_providers_file(
        "[smart]\nmx = [\"smart.example\"]\nconnections_max = 1\nmessages_per_minute = 60\n",
    );
    let mut all = vec![
        ("POSTROAD_DELIVERY_SMARTHOST", address.as_str()),
        ("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap()),
    ];
    all.extend_from_slice(envs);
    let world = outside.start(Engine::Sqlite, &all);
    send_many(&world, &world.key, "somewhere.example", count).await;
    peer.wait_until(|record| record.messages.len() == count).await;
    let messages = peer.messages();
    let begun = messages.iter().map(|message| message.begun_at).min().unwrap();
    let ended = messages.iter().map(|message| message.at).max().unwrap();
    (peer.open_connections_max(), ended.duration_since(begun))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_smart_host_gets_twenty_connections_and_no_rate_limit_by_default() {
    let (peak, time) = send_through_slow_smart_host(400, &[]).await;
    assert!((15..=20).contains(&peak), "{peak}");
    // The rule for the provider would allow one message a second.
    assert!(time < Duration::from_mins(1), "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_smart_host_has_limits_of_its_own() {
    let envs =
        [("POSTROAD_DELIVERY_SMARTHOST_CONNECTIONS", "3"), ("POSTROAD_DELIVERY_SMARTHOST_RATE", "20/s")];
    let (peak, time) = send_through_slow_smart_host(61, &envs).await;
    assert!((2..=3).contains(&peak), "{peak}");
    // Without the rate, three connections with 50 ms for each message would need one second.
    assert!(time >= Duration::from_millis(1_900), "20 a second: {time:?}");
}
