//! Webhooks are never posted to private addresses, in whatever notation.

use postroad_testkit::http::Client;
use postroad_testkit::{CatcherAnswer, Daemon, DnsServer, WebhookCatcher, daemon};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::QUICK_RETRIES;
use crate::world::{Engine, World, good, program};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_name_is_refused_as_soon_as_it_resolves_to_a_private_address() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    // `postroad dev` allows loopback addresses.
    dns.ttl_secs(0).a("rebind.example.com", [127, 0, 0, 1]);
    catcher.answer("/in", CatcherAnswer::Close);
    let nameserver = dns.address().to_string();
    let world =
        World::start_with(Engine::Sqlite, &[QUICK_RETRIES, ("POSTROAD_DNS_NAMESERVERS", &nameserver)]);
    let url = format!("http://rebind.example.com:{}/in", catcher.address().port());
    let webhook = world.new_webhook(&url, json!(["message.accepted"])).await;
    world.accepted(&good()).await;
    catcher.wait_for("/in", 1);
    dns.remove("rebind.example.com").a("rebind.example.com", [10, 0, 0, 1]);
    world.accepted(&good()).await;
    let attempts =
        world.until_attempts(&webhook, |attempts| attempts.iter().any(|one| one["success"] == false)).await;
    assert_eq!(attempts[0]["error_class"], "refused_address", "{attempts:#?}");
    assert_eq!(catcher.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_that_are_not_public_are_refused_without_a_connection() {
    let world = World::start(Engine::Sqlite);
    for host in ["10.0.0.1", "169.254.169.254", "[fd00::1]", "192.168.1.1", "[::ffff:10.0.0.1]", "100.64.0.1"]
    {
        let webhook = world.new_webhook(&format!("http://{host}/"), json!("all")).await;
        let attempt = world.webhooks("test", &json!({ "id": webhook["id"] })).await;
        assert_eq!(attempt["error_class"], "refused_address", "{host}: {attempt}");
    }
}

/// `postroad dev` allows loopback addresses, `postroad serve` does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_posts_to_no_loopback_address() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("postroad.toml").display().to_string();
    let data_dir = folder.path().join("data").display().to_string();
    std::fs::write(&file, format!("data_dir = {data_dir:?}\n[http]\nlisten = \"127.0.0.1:0\"\n")).unwrap();
    let service = Daemon::start(program(), ["serve", "--json", "--config", &file], &[]);
    let admin = |args: &[&str]| -> Value {
        let mut command = daemon::command(program(), &[]);
        let output = command.arg("admin").args(args).args(["--json", "--config", &file]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    admin(&["account", "create", "a"]);
    admin(&["server", "create", "s", "--account", "a"]);
    let key = admin(&["key", "create", "--server", "s"])["api_key"].as_str().unwrap().to_owned();
    let client = Client::new(&format!("http://{}", service.ready()["http"].as_str().unwrap()));
    let catcher = WebhookCatcher::start();
    let port = catcher.address().port();
    for host in ["127.0.0.1", "[::1]", "localhost", "[::ffff:127.0.0.1]"] {
        let call = async |action: &str, body: Value| {
            let path = format!("/api/v1/webhooks/{action}");
            client.post_json(&path, Some(&key), &body).await.unwrap().json()["data"].clone()
        };
        let made = call("create", json!({ "url": format!("http://{host}:{port}/") })).await;
        let attempt = call("test", json!({ "id": made["id"] })).await;
        assert_eq!(attempt["error_class"], "refused_address", "{host}: {attempt}");
    }
    assert!(catcher.received().is_empty());
}
