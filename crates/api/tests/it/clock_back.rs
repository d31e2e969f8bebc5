//! The whole service with its delivery engine, on a clock that was a day ahead and is set back while it runs.

use std::sync::Arc;
use std::time::Duration;

use postroad_api::{Api, HttpServer, Mode, Settings};
use postroad_app::App;
use postroad_delivery::{Delivery, Identity, RetryPolicy, WarmUpPlan};
use postroad_mail::Signer;
use postroad_model::{Clock, DomainName, GateAction, GateScope, Limits};
use postroad_store::{Database, NewGate, Role, Store};
use postroad_testkit::{Client, ManualClock, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::service::{MESSAGE, SEND_MESSAGE, message_to};

/// A running service with delivery into an inbox, and a clock that the test sets.
struct Service {
    clock: ManualClock,
    store: Store,
    delivery: Delivery,
    client: Client,
    key: String,
    _server: HttpServer,
    _folder: TempDir,
    _database: Option<postroad_testkit::Database>,
}

impl Service {
    async fn start(database: Option<postroad_testkit::Database>) -> Self {
        let (folder, clock) = (TempDir::new().unwrap(), ManualClock::default());
        let settings = postroad_store::Settings::small(match &database {
            Some(database) => Database::Postgres(database.url().to_owned()),
            None => Database::Sqlite(folder.path().join("postroad.db")),
        });
        let role = Role::Node { identity: "test".into() };
        let store = Store::open(settings, role, Arc::new(clock.clone())).await.unwrap();
        let hostname = DomainName::parse("mail.example.test").unwrap();
        let app = App::new(store.clone(), Arc::new(clock.clone()), Limits::default(), hostname.clone());
        let key = app.dev_setup().await.unwrap().api_key;
        let delivery = start_delivery(&folder, hostname, &app, &store, &clock).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()));
        let server = HttpServer::start(&Api::new(app, Settings::default()), listener, None, Mode::Serve);
        Self { clock, store, delivery, client, key, _server: server, _folder: folder, _database: database }
    }

    async fn call(&self, path: &str, body: &Value) -> Value {
        let reply = self.client.post_json(path, Some(&self.key), body).await.unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    async fn send(&self, address: &str, send_at: Option<String>) -> Value {
        let mut body = message_to(address);
        body["send_at"] = json!(send_at);
        self.call(SEND_MESSAGE, &body).await["data"]["messages"][address]["id"].clone()
    }

    async fn status(&self, id: &Value) -> String {
        let shown = self.call(MESSAGE, &json!({"id": id, "_expansions": ["status"]})).await;
        shown["data"]["status"]["status"].as_str().unwrap().to_owned()
    }

    async fn until_status(&self, id: &Value, wanted: &str) {
        eventually(async || {
            let status = self.status(id).await;
            if status == wanted { Ok(()) } else { Err(format!("it is {status} and not {wanted}")) }
        })
        .await;
    }

    fn caught_count(&self) -> usize {
        self.delivery.inbox().unwrap().list(10).len()
    }
}

async fn start_delivery(
    folder: &TempDir,
    hostname: DomainName,
    app: &App,
    store: &Store,
    clock: &ManualClock,
) -> Delivery {
    let settings = postroad_delivery::Settings {
        hostname: hostname.clone(),
        journal_dir: folder.path().join("flights"),
        smtp_port: 25,
        smart_host: None,
        allow_private_destinations: false,
        retry: RetryPolicy::default(),
        reply_timeout: Duration::from_mins(5),
        final_reply_timeout: Duration::from_mins(10),
        connect_timeout: Duration::from_secs(30),
        busy_greeting_timeout: Duration::from_secs(30),
        delay_notice_after: Duration::from_mins(5),
        idle_timeout: Duration::from_secs(5),
        connection_lifetime: Duration::from_mins(5),
        connections_max: 10,
        dkim: false,
        signing_threads: 1,
        fresh_bytes_max: 1 << 20,
        messages_max: 100_000,
        warm_up: WarmUpPlan::default(),
        provider_overrides: None,
        simulator_domain: DomainName::parse("sim.postroad.test").unwrap(),
        simulator: false,
        catch_all: true,
        drain_timeout: Duration::from_secs(30),
        ca_file: None,
        mta_sts_port: 443,
        mta_sts_file: folder.path().join("mta-sts-policies"),
        nameservers: Vec::new(),
        dnssec: postroad_net::dns::DnssecTrust::Off,
        ipv6: false,
    };
    let installation = app.installation().await.unwrap();
    let dkim = Signer::rsa(&installation.dkim_selector, hostname, &installation.dkim_private_pkcs8).unwrap();
    let identity = Identity { return_path_secret: installation.return_path_secret, dkim };
    Delivery::start(settings, identity, store.clone(), Arc::new(clock.clone())).await.unwrap()
}

async fn a_scheduled_message_waits_for_its_time(database: Option<postroad_testkit::Database>) {
    let service = Service::start(database).await;
    let true_time = service.clock.now();
    let gate = NewGate {
        scope: GateScope::Everything,
        action: GateAction::Suspend,
        reason: "so that it waits".into(),
        automatic: false,
        ends_at: None,
    };
    service.store.set_gate(gate).await.unwrap();
    // The gate must apply before anything is sent.
    service.delivery.queue_admin().refresh().await.unwrap();
    let send_at = true_time.plus(Duration::from_hours(12));
    let scheduled = service.send("later@example.net", Some(send_at.to_rfc3339())).await;
    assert_eq!(service.status(&scheduled).await, "Scheduled");

    // The scheduled message becomes due, but the gate keeps it in the queue.
    service.clock.advance(Duration::from_hours(24));
    service.until_status(&scheduled, "Pending").await;
    let fresh = service.send("now@example.net", None).await;

    // With the true time, the message is not due yet.
    service.clock.set(true_time.plus(Duration::from_mins(1)));
    service.store.remove_gate(GateScope::Everything).await.unwrap();
    service.until_status(&fresh, "Sent").await;
    service.until_status(&scheduled, "Scheduled").await;
    assert_eq!(service.caught_count(), 1);

    service.clock.set(send_at.plus(Duration::from_secs(1)));
    service.until_status(&scheduled, "Sent").await;
    assert_eq!(service.caught_count(), 2);
    service.delivery.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduled_message_does_not_leave_early_when_the_clock_is_set_back_on_sqlite() {
    a_scheduled_message_waits_for_its_time(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduled_message_does_not_leave_early_when_the_clock_is_set_back_on_postgresql() {
    a_scheduled_message_waits_for_its_time(Some(postroad_testkit::Database::create())).await;
}
