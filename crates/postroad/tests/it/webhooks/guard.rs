//! Where webhooks are not posted to: what is inside, however its name says it.

use postroad_testkit::{CatcherAnswer, DnsServer, WebhookCatcher};
use serde_json::json;

use super::QUICK;
use crate::world::{Engine, World, good};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_leads_inside_at_the_second_look_is_refused_then() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    dns.ttl_secs(0).a("rebind.example.com", [127, 0, 0, 1]);
    catcher.answer("/in", CatcherAnswer::Close);
    let nameserver = dns.address().to_string();
    let world = World::start_with(Engine::Sqlite, &[QUICK, ("POSTROAD_DNS_NAMESERVERS", &nameserver)]);
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
