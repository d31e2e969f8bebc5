//! Pools of source addresses over the HTTP API: who creates and sees them, and the warm-up of their addresses.

use serde_json::{Value, json};

use crate::accounts::{
    ACCOUNT, Key, OPERATOR, SERVER, call, call_ok, create_customer, error_code, ready_field,
};
use crate::world::{World, both_engines};

async fn names(world: &World, key: Key<'_>) -> Vec<String> {
    let listed = call_ok(world, key, "ip_pools/list", &json!({})).await;
    listed["items"].as_array().unwrap().iter().map(|pool| pool["name"].as_str().unwrap().to_owned()).collect()
}

fn warm_up(pool: &Value) -> &str {
    pool["addresses"][0]["warm_up"].as_str().unwrap()
}

both_engines!(
    the_operator_makes_pools_and_their_addresses,
    a_warm_up_is_started_paused_resumed_and_ended,
    get_and_list_show_the_same_pools_and_hide_the_owner_from_other_accounts,
    an_account_sees_the_pools_it_sends_from_and_changes_warm_ups_only_in_its_own,
    an_address_is_added_once_and_changed_only_at_its_current_version,
    an_account_gives_its_servers_its_own_pools_and_the_shared_one
);

async fn an_address_is_added_once_and_changed_only_at_its_current_version(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let pool = call_ok(&world, operator, "ip_pools/create", &json!({"name": "one"})).await;
    call_ok(&world, operator, "ip_pools/create", &json!({"name": "two", "shared": true})).await;
    let address = json!({"pool": pool["id"], "address": "192.0.2.1", "helo": "mta.example.com",
        "idempotency_key": "once"});
    let first = call(&world, operator, "ip_pools/add_address", &address).await;
    let again = call(&world, operator, "ip_pools/add_address", &address).await;
    assert_eq!((&first["status"], &first["data"]), (&json!("success"), &again["data"]), "{again}");
    assert_eq!(
        (&first["flags"]["idempotent_replay"], &again["flags"]["idempotent_replay"]),
        (&Value::Null, &json!(true))
    );
    let other = json!({"pool": pool["id"], "address": "192.0.2.2", "helo": "mta.example.com",
        "idempotency_key": "once"});
    assert_eq!(error_code(&world, operator, "ip_pools/add_address", &other).await, "IdempotencyConflict");

    assert_eq!(first["data"]["addresses"][0]["version"], 1);
    let change = json!({"address": "192.0.2.1", "weight": 5, "if_version": 1});
    let changed = call_ok(&world, operator, "ip_pools/update_address", &change).await;
    assert_eq!(
        (&changed["addresses"][0]["weight"], &changed["addresses"][0]["version"]),
        (&json!(5), &json!(2))
    );
    let late = json!({"address": "192.0.2.1", "weight": 6, "if_version": 1});
    assert_eq!(error_code(&world, operator, "ip_pools/update_address", &late).await, "VersionConflict");
    let started = json!({"address": "192.0.2.1", "action": "start"});
    let started = call_ok(&world, operator, "ip_pools/warm_up", &started).await;
    assert_eq!(
        (&started["addresses"][0]["weight"], &started["addresses"][0]["version"]),
        (&json!(5), &json!(3))
    );

    let listed = async |filter: Value| {
        let found = call_ok(&world, operator, "ip_pools/list", &filter).await;
        let items = found["items"].as_array().unwrap().clone();
        items.iter().map(|pool| pool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(json!({"name": "one"})).await, ["one"]);
    assert_eq!(listed(json!({"shared": true})).await, ["two"]);
    assert_eq!(listed(json!({"shared": false})).await, ["one"]);
    assert!(listed(json!({"name": "one", "shared": true})).await.is_empty());

    let entries = json!({"account": 0, "subject": "address", "limit": 100});
    let entries = call_ok(&world, operator, "account/audit", &entries).await["items"].clone();
    let names: Vec<&Value> = entries.as_array().unwrap().iter().map(|entry| &entry["operation"]).collect();
    assert_eq!(names, ["ip_pools/warm_up", "ip_pools/update_address", "ip_pools/add_address"]);
    // A repeated call with the same idempotency key does not add a removed address again.
    call_ok(&world, operator, "ip_pools/remove_address", &json!({"address": "192.0.2.1"})).await;
    assert_eq!(error_code(&world, operator, "ip_pools/add_address", &address).await, "IpAddressNotFound");
}

async fn an_account_gives_its_servers_its_own_pools_and_the_shared_one(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let (acme, rival) = (create_customer(&world, "acme").await, create_customer(&world, "rival").await);
    let mut pools = Vec::new();
    for pool in [
        json!({"name": "shared", "shared": true}),
        json!({"name": "acme's", "account": acme.id}),
        json!({"name": "rival's", "account": rival.id}),
        json!({"name": "quarantine"}),
    ] {
        pools.push(call_ok(&world, operator, "ip_pools/create", &pool).await["id"].clone());
    }
    let [shared, own, foreign, quarantine] = pools.try_into().expect("four pools");
    let (account_key, server) = ((ACCOUNT, acme.key.as_str()), &acme.servers[0]);
    let set_pool = async |key: Key<'_>, pool: &Value| {
        call(&world, key, "servers/update", &json!({"id": server, "ip_pool": pool})).await
    };
    for pool in [&own, &shared] {
        assert_eq!(set_pool(account_key, pool).await["data"]["ip_pool"], *pool);
    }
    assert_eq!(set_pool(account_key, &json!("none")).await["data"]["ip_pool"], Value::Null);
    // Pools of other accounts, and unshared ones of the operator, are as if they did not exist.
    for pool in [&foreign, &quarantine, &json!(999_999)] {
        assert_eq!(set_pool(account_key, pool).await["data"]["code"], "IpPoolNotFound", "{pool}");
        let new = json!({"name": "third", "ip_pool": pool});
        assert_eq!(error_code(&world, account_key, "servers/create", &new).await, "IpPoolNotFound", "{pool}");
    }
    let new = json!({"name": "third", "ip_pool": own});
    let made = call_ok(&world, account_key, "servers/create", &new).await;
    assert_eq!(made["ip_pool"], own);
    assert_eq!(error_code(&world, operator, "ip_pools/delete", &json!({ "id": own })).await, "IpPoolInUse");
    // The account cannot move its server out of a pool that the operator set, but may name that pool again.
    assert_eq!(set_pool(operator, &quarantine).await["data"]["ip_pool"], quarantine);
    for pool in [&own, &shared, &json!("none")] {
        assert_eq!(set_pool(account_key, pool).await["data"]["errors"][0]["pointer"], "/ip_pool", "{pool}");
    }
    assert_eq!(set_pool(account_key, &quarantine).await["data"]["ip_pool"], quarantine);
    let version =
        call_ok(&world, account_key, "servers/get", &json!({ "id": server })).await["version"].clone();
    let late = json!({"id": server, "ip_pool": shared, "if_version": version.as_i64().unwrap() - 1});
    assert_eq!(error_code(&world, operator, "servers/update", &late).await, "VersionConflict");
    assert_eq!(set_pool(operator, &shared).await["data"]["ip_pool"], shared);
    assert_eq!(set_pool(account_key, &own).await["data"]["ip_pool"], own);
    assert_eq!(
        world
            .admin(&["server", "list"])
            .as_array()
            .unwrap()
            .iter()
            .find(|listed| listed["id"] == *server)
            .expect("it is listed")["ip_pool"],
        own
    );
    let entries = json!({"operation": "servers/update", "subject_id": server, "limit": 100});
    let entries = call_ok(&world, account_key, "account/audit", &entries).await["items"].clone();
    let pools: Vec<&Value> =
        entries.as_array().unwrap().iter().rev().map(|entry| &entry["after"]["pool"]).collect();
    assert_eq!(pools, [&own, &shared, &Value::Null, &quarantine, &shared, &own], "one entry for each change");
}

async fn the_operator_makes_pools_and_their_addresses(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let create = json!({"name": "shared-1", "shared": true, "idempotency_key": "once"});
    let pool = call_ok(&world, operator, "ip_pools/create", &create).await;
    let again = call(&world, operator, "ip_pools/create", &create).await;
    assert_eq!((&again["data"]["id"], &again["flags"]["idempotent_replay"]), (&pool["id"], &json!(true)));
    assert_eq!(
        error_code(&world, operator, "ip_pools/create", &json!({"name": "shared-1"})).await,
        "IpPoolExists"
    );
    let second = json!({"name": "shared-2", "shared": true});
    assert_eq!(
        error_code(&world, operator, "ip_pools/create", &second).await,
        "IpPoolExists",
        "there is one shared pool"
    );
    let address =
        json!({"pool": pool["id"], "address": "192.0.2.1", "helo": "MTA1.example.com", "weight": 3});
    let added = call_ok(&world, operator, "ip_pools/add_address", &address).await;
    let shown = &added["addresses"][0];
    let time = |object: &Value| object["updated_at"].as_str().unwrap().to_owned();
    assert_eq!(pool["updated_at"], pool["created_at"]);
    assert_eq!(shown["updated_at"], shown["created_at"]);
    assert!(time(&added) > time(&pool), "its list of addresses was changed: {added}");
    assert_eq!((&shown["address"], &shown["helo"]), (&json!("192.0.2.1"), &json!("mta1.example.com")));
    assert_eq!(
        (&shown["weight"], &shown["warm_up"], &shown["sent_today"]),
        (&json!(3), &json!("none"), &json!(0))
    );
    assert_eq!(error_code(&world, operator, "ip_pools/add_address", &address).await, "IpAddressExists");
    let change = json!({"address": "192.0.2.1", "helo": "out.example.com", "weight": 10});
    let changed = call_ok(&world, operator, "ip_pools/update_address", &change).await;
    assert_eq!(
        (&changed["addresses"][0]["helo"], &changed["addresses"][0]["weight"]),
        (&json!("out.example.com"), &json!(10))
    );
    assert!(time(&changed["addresses"][0]) > time(shown), "{changed}");
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
    assert_eq!(error_code(&world, operator, "ip_pools/delete", &id).await, "IpPoolInUse");
    call_ok(&world, operator, "ip_pools/remove_address", &json!({"address": "192.0.2.1"})).await;
    assert_eq!(
        error_code(&world, operator, "ip_pools/history", &json!({"address": "192.0.2.1"})).await,
        "IpAddressNotFound"
    );
    call_ok(&world, operator, "ip_pools/delete", &id).await;
    assert_eq!(error_code(&world, operator, "ip_pools/get", &id).await, "IpPoolNotFound");
}

async fn a_warm_up_is_started_paused_resumed_and_ended(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let acme = create_customer(&world, "acme").await;
    let pool =
        call_ok(&world, operator, "ip_pools/create", &json!({"name": "acme", "account": acme.id})).await;
    let address = json!({"pool": pool["id"], "address": "192.0.2.1", "helo": "mta.example.com"});
    call_ok(&world, operator, "ip_pools/add_address", &address).await;
    // The account that owns the pool changes the warm-up itself.
    let account_key = (ACCOUNT, acme.key.as_str());
    let change_warm_up = async |action: &str| {
        call_ok(&world, account_key, "ip_pools/warm_up", &json!({"address": "192.0.2.1", "action": action}))
            .await
    };
    let refused =
        call(&world, account_key, "ip_pools/warm_up", &json!({"address": "192.0.2.1", "action": "pause"}))
            .await;
    assert_eq!(
        refused["data"]["errors"][0]["pointer"], "/action",
        "an address without a warm-up has nothing to pause: {refused}"
    );
    let before = call_ok(&world, account_key, "ip_pools/get", &json!({ "id": pool["id"] })).await;
    let started = change_warm_up("start").await;
    let time = |pool: &Value| pool["addresses"][0]["updated_at"].as_str().unwrap().to_owned();
    assert!(time(&started) > time(&before), "{started}");
    assert_eq!((warm_up(&started), &started["addresses"][0]["warm_up_day"]), ("running", &json!(1)));
    let paused = change_warm_up("pause").await;
    assert_eq!(
        (warm_up(&paused), &paused["addresses"][0]["warm_up_paused_reason"]),
        ("paused", &json!("paused by hand"))
    );
    assert_eq!(call_ok(&world, account_key, "ip_pools/get", &json!({ "id": pool["id"] })).await, paused);
    assert_eq!(warm_up(&change_warm_up("resume").await), "running");
    assert_eq!(warm_up(&change_warm_up("end").await), "none");
    assert_eq!(
        call_ok(&world, account_key, "ip_pools/history", &json!({"address": "192.0.2.1"})).await["items"],
        json!([])
    );
    let audit = call_ok(&world, account_key, "account/audit", &json!({"limit": 500})).await;
    let steps = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["operation"] == "ip_pools/warm_up")
        .count();
    assert_eq!(steps, 4, "one entry for each change, none for the refusal");
}

async fn get_and_list_show_the_same_pools_and_hide_the_owner_from_other_accounts(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let (acme, rival) = (create_customer(&world, "acme").await, create_customer(&world, "rival").await);
    let (account_key, owner) = ((ACCOUNT, acme.key.as_str()), (ACCOUNT, rival.key.as_str()));
    let pool = json!({"name": "rival's", "account": rival.id});
    let pool = json!({"id": call_ok(&world, operator, "ip_pools/create", &pool).await["id"]});
    assert_eq!(error_code(&world, account_key, "ip_pools/get", &pool).await, "IpPoolNotFound");
    // The operator lets a server of one account send from the pool of another.
    world.admin(&["server", "set-pool", "acme/shop", "rival's"]);
    for (key, account) in [(account_key, &Value::Null), (owner, &rival.id), (operator, &rival.id)] {
        let got = call_ok(&world, key, "ip_pools/get", &pool).await;
        let listed = call_ok(&world, key, "ip_pools/list", &json!({})).await;
        assert_eq!((&listed["items"][0], &got["account"]), (&got, account), "{key:?}");
        assert!(got["created_at"].is_string(), "{got}");
    }
    for action in ["delete", "create"] {
        let body = json!({"id": pool["id"], "name": "x"});
        assert_eq!(
            error_code(&world, account_key, &format!("ip_pools/{action}"), &body).await,
            "AccessDenied"
        );
    }
}

async fn an_account_sees_the_pools_it_sends_from_and_changes_warm_ups_only_in_its_own(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let (acme, rival) = (create_customer(&world, "acme").await, create_customer(&world, "rival").await);
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
        let made = call_ok(&world, operator, "ip_pools/create", pool).await;
        let address =
            json!({"pool": made["id"], "address": format!("192.0.2.{number}"), "helo": "mta.example.com"});
        call_ok(&world, operator, "ip_pools/add_address", &address).await;
    }
    world.admin(&["server", "set-pool", "acme/shop", "lent"]);
    let account_key = (ACCOUNT, acme.key.as_str());
    assert_eq!(names(&world, account_key).await, ["shared", "acme's", "lent"]);
    assert_eq!(names(&world, (ACCOUNT, &rival.key)).await, ["shared", "rival's"]);
    assert_eq!(names(&world, operator).await.len(), 5);
    for (address, sees, may_change) in
        [(0, true, false), (1, true, true), (2, false, false), (3, true, false), (4, false, false)]
    {
        let address = format!("192.0.2.{address}");
        let seen = call(&world, account_key, "ip_pools/history", &json!({ "address": address })).await;
        assert_eq!(seen["status"] == "success", sees, "{address}: {seen}");
        let started =
            call(&world, account_key, "ip_pools/warm_up", &json!({"address": address, "action": "start"}))
                .await;
        assert_eq!(started["status"] == "success", may_change, "{address}: {started}");
        if !may_change {
            assert_eq!(started["data"]["code"], "IpAddressNotFound", "as if it did not exist");
        }
    }
    // Operations of the operator are refused to others, whatever they name.
    for (action, body) in [
        ("create", json!({"name": "mine"})),
        ("delete", json!({"id": 1})),
        ("add_address", json!({"pool": 1, "address": "192.0.2.9", "helo": "x.example"})),
        ("update_address", json!({"address": "192.0.2.1", "weight": 2})),
        ("remove_address", json!({"address": "192.0.2.1"})),
    ] {
        assert_eq!(
            error_code(&world, account_key, &format!("ip_pools/{action}"), &body).await,
            "AccessDenied",
            "{action}"
        );
    }
    let server_key = (SERVER, acme.server_keys[0].as_str());
    assert_eq!(error_code(&world, server_key, "ip_pools/list", &json!({})).await, "AccessDenied");
}
