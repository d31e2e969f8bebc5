//! The queue desk without a server, and which pools a send may name.

use postroad_testkit::smtp_peer::Script;
use serde_json::json;

use super::outside::Outside;
use crate::world::{Engine, SEND, both_engines, good_but};

/// Without a server the desk works on the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_the_desk_reads_the_store() {
    let outside = Outside::new();
    let mut world = outside.start(Engine::Sqlite, &[]);
    let tomorrow = json!({"to": ["a@one.example"], "send_at": "2026-12-01T00:00:00Z"});
    let id = world.accepted_id(&good_but(tomorrow)).await;
    world.daemon.kill9();
    let shown = world.queue(&["show", &id.to_string()]);
    assert!(shown["why"].as_str().unwrap().contains("no server is running"), "{shown}");
    let stats = world.queue(&["stats"]);
    assert_eq!((&stats["queued"], &stats["later"]), (&json!(1), &json!(1)));
    world.queue(&["cancel", &id.to_string()]);
    world.restart();
    assert_eq!(world.expanded(id).await["status"]["status"], "Cancelled");
}

both_engines! {
    async fn a_send_may_name_its_servers_pool_and_the_shared_one_only(engine: Engine) {
        let outside = Outside::new();
        let _peer = outside.site("one.example", Script::new());
        let world = outside.start(engine, &[]);
        world.admin(&["pool", "create", "main", "--shared"]);
        world.admin(&["pool", "add-address", "main", "127.0.1.1", "--helo", "shared.here.example"]);
        world.admin(&["pool", "create", "own"]);
        world.admin(&["pool", "add-address", "own", "127.0.1.2", "--helo", "own.here.example"]);
        world.admin(&["pool", "create", "others"]);
        world.admin(&["server", "set-pool", "dev", "own"]);
        for (pool, address) in [("main", "127.0.1.1"), ("own", "127.0.1.2")] {
            let named = good_but(json!({"to": [format!("{pool}@one.example")], "ip_pool": pool}));
            let id = world.accepted_id(&named).await;
            assert_eq!(world.until_status(id, "Sent").await[0]["source_ip"], address);
        }
        let foreign = good_but(json!({"to": ["c@one.example"], "ip_pool": "others"}));
        let refused = world.call(SEND, &foreign).await;
        assert_eq!(refused["data"]["errors"][0]["pointer"], "/ip_pool", "{refused}");
        let (success, _, error) = world.admin_output(&["pool", "delete", "own"]);
        assert!(!success && error.contains("is in use"), "{error}");
    }
}
