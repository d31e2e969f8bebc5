//! Simulator recipients: mail to each ends as the documentation says, through the real pipeline.

use std::time::{Duration, Instant};

use postroad_testkit::{Client, Daemon, daemon, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::outside::to;
use crate::world::{Engine, World, both_engines, good_but, program};

/// Statuses and classes of a message's deliveries, in their order.
fn statuses_and_classes(deliveries: &[Value]) -> String {
    let words = deliveries.iter().map(|delivery| {
        let status = delivery["status"].as_str().expect("a status");
        delivery["bounce_class"].as_str().map_or(status.to_owned(), |class| format!("{status}/{class}"))
    });
    words.collect::<Vec<_>>().join(" ")
}

both_engines!(mail_to_each_simulator_recipient_ends_as_documented);

async fn mail_to_each_simulator_recipient_ends_as_documented(world: World) {
    let final_cases = [
        ("delivered", "Sent", "Sent"),
        ("defer", "Sent", "SoftFail/policy SoftFail/policy Sent"),
        ("greylist", "Sent", "SoftFail/policy Sent"),
        ("missing", "HardFail", "HardFail/bad_mailbox"),
        ("missing+order-7", "HardFail", "HardFail/bad_mailbox"),
        ("blocked", "HardFail", "HardFail/spam_block"),
        ("bounce-later", "Bounced", "Sent Bounced/bad_mailbox"),
        ("complaint", "Sent", "Sent"),
        ("open", "Sent", "Sent"),
        ("click", "Sent", "Sent"),
        ("smtp-554-5.6.0", "HardFail", "HardFail/content"),
        ("smtp-250-2.1.5", "Sent", "Sent"),
        ("nobody-knows", "HardFail", "HardFail/bad_mailbox"),
    ];
    let retried_cases =
        [("full", "SoftFail/full"), ("timeout", "SoftFail/timeout"), ("smtp-421-4.3.2", "SoftFail/other")];
    let mut ids = Vec::new();
    for name in final_cases.map(|(name, ..)| name).into_iter().chain(retried_cases.map(|(name, _)| name)) {
        ids.push(world.accepted_id(&to(&format!("{name}@sim.postroad.test"))).await);
    }
    let mut ids = ids.into_iter();
    for ((name, status, expected), id) in final_cases.into_iter().zip(&mut ids) {
        assert_eq!(statuses_and_classes(&world.until_status(id, status).await), expected, "{name}");
    }
    for ((name, expected), id) in retried_cases.into_iter().zip(&mut ids) {
        let deliveries = world.until_deliveries(id, 1).await;
        assert_eq!(statuses_and_classes(&deliveries[..1]), expected, "{name}");
        let pause = deliveries[0]["next_attempt_at"].as_f64().expect("it is tried again")
            - deliveries[0]["timestamp"].as_f64().unwrap();
        assert!(pause < 10.0, "{name}: retries of the simulator take seconds, not {pause}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_by_the_simulator_suppresses_no_recipient() {
    let world = World::start(Engine::Sqlite);
    // A suppressed recipient would hold the second message.
    for _ in 0..2 {
        let id = world.accepted_id(&to("missing@sim.postroad.test")).await;
        let deliveries = world.until_status(id, "HardFail").await;
        assert_eq!(statuses_and_classes(&deliveries), "HardFail/bad_mailbox");
        assert_eq!(deliveries[0]["mx"], "simulator.localhost");
    }
}

/// Texts such as `httphttp…` were once searched for links in quadratic time, on the threads that serve everybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_texts_of_incomplete_urls_to_the_simulator_delay_no_other_mail() {
    let mut world = World::start(Engine::Sqlite);
    for text in ["http".repeat(200_000), "http://a/o/".repeat(70_000)] {
        for recipient in ["open@sim.postroad.test", "click@sim.postroad.test"] {
            let body = good_but(json!({"to": [recipient], "plain_body": text}));
            let id = world.accepted_id(&body).await;
            world.until_status(id, "Sent").await;
        }
    }
    for _ in 0..2 {
        let started = Instant::now();
        let id = world.accepted_id(&to("delivered@sim.postroad.test")).await;
        world.until_status(id, "Sent").await;
        assert!(started.elapsed() < Duration::from_secs(5), "it took {:?}", started.elapsed());
        world.crash_and_restart();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_production_the_simulator_is_off_until_it_is_turned_on() {
    for (setting, status) in [("", "HardFail"), ("[delivery]\nsimulator = \"on\"\n", "Sent")] {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("postroad.toml").display().to_string();
        let data_dir = folder.path().join("data").display().to_string();
        let config = format!("data_dir = {data_dir:?}\n[http]\nlisten = \"127.0.0.1:0\"\n{setting}");
        std::fs::write(&file, config).unwrap();
        let service = Daemon::start(program(), ["serve", "--json", "--config", &file], &[]);
        let admin = |args: &[&str]| -> Value {
            let mut command = daemon::command(program(), &[]);
            let output =
                command.arg("admin").args(args).args(["--json", "--config", &file]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).unwrap()
        };
        admin(&["account", "create", "a"]);
        admin(&["server", "create", "s", "--account", "a"]);
        admin(&["domain", "create", "example.test", "--server", "s"]);
        admin(&["domain", "set-verified", "example.test", "--server", "s"]);
        let key = admin(&["key", "create", "--server", "s"])["api_key"].as_str().unwrap().to_owned();
        let client = Client::new(&format!("http://{}", service.ready()["http"].as_str().unwrap()));
        let call = async |path: &str, body: Value| {
            client.post_json(path, Some(&key), &body).await.unwrap().json()["data"].clone()
        };
        let sent = call("/api/v1/send/message", to("delivered@sim.postroad.test")).await;
        let id = sent["messages"]["delivered@sim.postroad.test"]["id"].clone();
        let delivery = eventually(async || {
            let deliveries = call("/api/v1/messages/deliveries", json!({ "id": id })).await;
            deliveries.get(0).cloned().ok_or("no delivery")
        })
        .await;
        assert_eq!(delivery["status"], status, "{delivery}");
        if status == "HardFail" {
            assert_eq!(delivery["bounce_class"], "bad_domain");
            assert!(delivery["details"].as_str().unwrap().contains("simulator is off"), "{delivery}");
        }
    }
}
