//! Pools of addresses over HTTP: who makes them, who sees them, and the warm-up of their addresses.

use serde_json::{Value, json};

use crate::accounts::{ACCOUNT, Key, OPERATOR, SERVER, call, code, customer, done, ready};
use crate::world::{World, both_engines};

async fn names(world: &World, key: Key<'_>) -> Vec<String> {
    let listed = done(world, key, "ip_pools/list", &json!({})).await;
    listed["items"].as_array().unwrap().iter().map(|pool| pool["name"].as_str().unwrap().to_owned()).collect()
}

fn warm_up(pool: &Value) -> &str {
    pool["addresses"][0]["warm_up"].as_str().unwrap()
}

both_engines!(
    the_operator_makes_pools_and_their_addresses,
    a_warm_up_is_started_paused_resumed_and_ended,
    an_account_sees_what_it_sends_from_and_changes_only_its_own_warm_up
);

async fn the_operator_makes_pools_and_their_addresses(world: World) {
    let operator = (OPERATOR, ready(&world, "operator_api_key"));
    let create = json!({"name": "shared-1", "shared": true, "idempotency_key": "once"});
    let pool = done(&world, operator, "ip_pools/create", &create).await;
    let again = call(&world, operator, "ip_pools/create", &create).await;
    assert_eq!((&again["data"]["id"], &again["flags"]["idempotent_replay"]), (&pool["id"], &json!(true)));
    assert_eq!(code(&world, operator, "ip_pools/create", &json!({"name": "shared-1"})).await, "IpPoolExists");
    let second = json!({"name": "shared-2", "shared": true});
    assert_eq!(
        code(&world, operator, "ip_pools/create", &second).await,
        "IpPoolExists",
        "there is one shared pool"
    );
    let address =
        json!({"pool": pool["id"], "address": "192.0.2.1", "helo": "MTA1.example.com", "weight": 3});
    let added = done(&world, operator, "ip_pools/add_address", &address).await;
    let shown = &added["addresses"][0];
    assert_eq!((&shown["address"], &shown["helo"]), (&json!("192.0.2.1"), &json!("mta1.example.com")));
    assert_eq!(
        (&shown["weight"], &shown["warm_up"], &shown["sent_today"]),
        (&json!(3), &json!("none"), &json!(0))
    );
    assert_eq!(code(&world, operator, "ip_pools/add_address", &address).await, "IpAddressExists");
    let change = json!({"address": "192.0.2.1", "helo": "out.example.com", "weight": 10});
    let changed = done(&world, operator, "ip_pools/update_address", &change).await;
    assert_eq!(
        (&changed["addresses"][0]["helo"], &changed["addresses"][0]["weight"]),
        (&json!("out.example.com"), &json!(10))
    );
    // The command line sees the same.
    assert_eq!(world.admin(&["pool", "list"])[0]["addresses"][0]["helo"], "out.example.com");
    let wrong = json!({"pool": pool["id"], "address": "here", "helo": "not a name", "weight": 5000});
    let refused = call(&world, operator, "ip_pools/add_address", &wrong).await;
    assert_eq!(refused["data"]["errors"][0]["pointer"], "/address", "{refused}");
    let wrong = json!({"address": "192.0.2.1", "helo": "not a name", "weight": 5000});
    let refused = call(&world, operator, "ip_pools/update_address", &wrong).await;
    let pointers: Vec<&str> = refused["data"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/helo", "/weight"]);
    let id = json!({ "id": pool["id"] });
    assert_eq!(code(&world, operator, "ip_pools/delete", &id).await, "IpPoolInUse");
    done(&world, operator, "ip_pools/remove_address", &json!({"address": "192.0.2.1"})).await;
    assert_eq!(
        code(&world, operator, "ip_pools/history", &json!({"address": "192.0.2.1"})).await,
        "IpAddressNotFound"
    );
    done(&world, operator, "ip_pools/delete", &id).await;
    assert_eq!(code(&world, operator, "ip_pools/get", &id).await, "IpPoolNotFound");
}

async fn a_warm_up_is_started_paused_resumed_and_ended(world: World) {
    let operator = (OPERATOR, ready(&world, "operator_api_key"));
    let acme = customer(&world, "acme").await;
    let pool = done(&world, operator, "ip_pools/create", &json!({"name": "acme", "account": acme.id})).await;
    let address = json!({"pool": pool["id"], "address": "192.0.2.1", "helo": "mta.example.com"});
    done(&world, operator, "ip_pools/add_address", &address).await;
    // The account that the pool is for does it itself.
    let by = (ACCOUNT, acme.key.as_str());
    let steer = async |action: &str| {
        done(&world, by, "ip_pools/warm_up", &json!({"address": "192.0.2.1", "action": action})).await
    };
    let refused =
        call(&world, by, "ip_pools/warm_up", &json!({"address": "192.0.2.1", "action": "pause"})).await;
    assert_eq!(
        refused["data"]["errors"][0]["pointer"], "/action",
        "a warm address has nothing to pause: {refused}"
    );
    let started = steer("start").await;
    assert_eq!((warm_up(&started), &started["addresses"][0]["warm_up_day"]), ("running", &json!(1)));
    let paused = steer("pause").await;
    assert_eq!(
        (warm_up(&paused), &paused["addresses"][0]["warm_up_paused_reason"]),
        ("paused", &json!("paused by hand"))
    );
    assert_eq!(done(&world, by, "ip_pools/get", &json!({ "id": pool["id"] })).await, paused);
    assert_eq!(warm_up(&steer("resume").await), "running");
    assert_eq!(warm_up(&steer("end").await), "none");
    assert_eq!(
        done(&world, by, "ip_pools/history", &json!({"address": "192.0.2.1"})).await["items"],
        json!([])
    );
    let audit = done(&world, by, "account/audit", &json!({"limit": 500})).await;
    let steps = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["operation"] == "ip_pools/warm_up")
        .count();
    assert_eq!(steps, 4, "one entry for each change, none for the refusal");
}

async fn an_account_sees_what_it_sends_from_and_changes_only_its_own_warm_up(world: World) {
    let operator = (OPERATOR, ready(&world, "operator_api_key"));
    let (acme, rival) = (customer(&world, "acme").await, customer(&world, "rival").await);
    for (number, pool) in [
        json!({"name": "shared", "shared": true}),
        json!({"name": "acme's", "account": acme.id}),
        json!({"name": "rival's", "account": rival.id}),
        json!({"name": "lent"}),
        json!({"name": "spare"}),
    ]
    .iter()
    .enumerate()
    {
        let made = done(&world, operator, "ip_pools/create", pool).await;
        let address =
            json!({"pool": made["id"], "address": format!("192.0.2.{number}"), "helo": "mta.example.com"});
        done(&world, operator, "ip_pools/add_address", &address).await;
    }
    world.admin(&["server", "set-pool", "acme/shop", "lent"]);
    let by = (ACCOUNT, acme.key.as_str());
    assert_eq!(names(&world, by).await, ["shared", "acme's", "lent"]);
    assert_eq!(names(&world, (ACCOUNT, &rival.key)).await, ["shared", "rival's"]);
    assert_eq!(names(&world, operator).await.len(), 5);
    for (address, sees, steers) in
        [(0, true, false), (1, true, true), (2, false, false), (3, true, false), (4, false, false)]
    {
        let address = format!("192.0.2.{address}");
        let seen = call(&world, by, "ip_pools/history", &json!({ "address": address })).await;
        assert_eq!(seen["status"] == "success", sees, "{address}: {seen}");
        let started =
            call(&world, by, "ip_pools/warm_up", &json!({"address": address, "action": "start"})).await;
        assert_eq!(started["status"] == "success", steers, "{address}: {started}");
        if !steers {
            assert_eq!(started["data"]["code"], "IpAddressNotFound", "as if it did not exist");
        }
    }
    // What is the operator's is not done by others, whatever they name.
    for (action, body) in [
        ("create", json!({"name": "mine"})),
        ("delete", json!({"id": 1})),
        ("add_address", json!({"pool": 1, "address": "192.0.2.9", "helo": "x.example"})),
        ("update_address", json!({"address": "192.0.2.1", "weight": 2})),
        ("remove_address", json!({"address": "192.0.2.1"})),
    ] {
        assert_eq!(code(&world, by, &format!("ip_pools/{action}"), &body).await, "AccessDenied", "{action}");
    }
    let server_key = (SERVER, acme.server_keys[0].as_str());
    assert_eq!(code(&world, server_key, "ip_pools/list", &json!({})).await, "AccessDenied");
}
