//! Ceilings of an account: the operator sets them, and no key of the account or of its servers can exceed them.
//! Events warn at 90 and 100 % of a ceiling.

use postroad_testkit::eventually;
use postroad_testkit::smtp_peer::Script;
use serde_json::{Value, json};

use crate::accounts::{
    ACCOUNT, Customer, Key, OPERATOR, SERVER, call, call_ok, create_customer, error_code, ready_field,
};
use crate::delivery::outside::Outside;
use crate::world::{Engine, SEND, World, both_engines, good, good_but};

/// Sets ceilings of the account that the world's own server is in.
fn set_ceilings(world: &World, options: &[&str]) -> Value {
    let mut args = vec!["account", "set-ceilings", "dev"];
    args.extend_from_slice(options);
    world.admin(&args)["ceilings"].clone()
}

/// A message to `count` recipients.
fn mail_to_many(count: usize) -> Value {
    let addresses: Vec<String> = (0..count).map(|n| format!("r{n}@example.com")).collect();
    good_but(json!({ "to": addresses }))
}

/// Waits until the server of `key` has `count` events of these types; returns their data.
async fn wait_for_events(world: &World, key: Key<'_>, types: &[&str], count: usize) -> Vec<Value> {
    let events = eventually(async || {
        let listed = call_ok(world, key, "events/list", &json!({ "types": types })).await;
        let items = listed["items"].as_array().unwrap().clone();
        if items.len() >= count { Ok(items) } else { Err(format!("{items:?}")) }
    })
    .await;
    assert_eq!(events.len(), count, "{events:?}");
    events
}

/// Calls an endpoint, which succeeds; returns its warnings.
async fn warnings(world: &World, key: Key<'_>, name: &str, body: Value) -> Value {
    let answer = call(world, key, name, &body).await;
    assert_eq!(answer["status"], "success", "{name}: {answer}");
    answer["flags"]["warnings"].clone()
}

/// The account's key, and the key of its first server.
fn keys(customer: &Customer) -> (Key<'_>, Key<'_>) {
    ((ACCOUNT, customer.key.as_str()), (SERVER, customer.server_keys[0].as_str()))
}

both_engines!(
    messages_beyond_the_ceiling_of_an_account_are_held_and_reported,
    no_key_exceeds_a_ceiling_of_its_account,
    the_servers_of_an_account_share_its_send_rate,
    an_account_gets_no_more_objects_than_its_ceilings_allow,
    concurrent_calls_with_one_idempotency_key_create_the_last_allowed_object_once
);

async fn messages_beyond_the_ceiling_of_an_account_are_held_and_reported(world: World) {
    world.admin(&["server", "create", "second", "--account", "dev"]);
    world.admin(&["domain", "create", "second.example", "--server", "second"]);
    world.admin(&["domain", "set-verified", "second.example", "--server", "second"]);
    let other = world.admin(&["key", "create", "--server", "second"]);
    let second = (SERVER, other["api_key"].as_str().unwrap());
    let own = (SERVER, world.key.as_str());
    assert_eq!(set_ceilings(&world, &["--monthly-limit", "20"])["monthly_limit"], 20);
    let free = world.post(SEND, &mail_to_many(17)).await;
    assert_eq!(free.json()["flags"], json!({}));
    let rate_limit_of = |reply: &postroad_testkit::http::Reply| {
        ["limit", "remaining", "reset"].map(|name| {
            let value = reply.header(&format!("ratelimit-{name}")).unwrap_or_default().to_owned();
            value.parse::<u64>().unwrap_or_else(|_| panic!("RateLimit-{name} is {value:?}"))
        })
    };
    let [limit, remaining, reset] = rate_limit_of(&free);
    assert_eq!((limit, remaining), (20, 3));
    assert!(reset > 0 && reset <= 31 * 24 * 3_600, "{reset}");
    // The other server uses up the account's limit.
    let mail = good_but(json!({"from": "a@second.example"}));
    let near = call(&world, second, "send/message", &mail).await;
    assert_eq!(near["status"], "success", "{near}");
    assert_eq!(near["flags"]["warnings"], json!(["18 of the account's 20 messages a month are used"]));
    let full = world.post(SEND, &mail_to_many(4)).await;
    assert_eq!(rate_limit_of(&full)[..2], [20, 0]);
    let reached = "The account's limit of 20 messages a month is reached: further messages are held";
    assert_eq!(full.json()["flags"]["warnings"], json!([reached]));
    let messages = full.json()["data"]["messages"].clone();
    let id = |n: usize| messages[format!("r{n}@example.com")]["id"].as_i64().unwrap();
    for n in 0..4 {
        world.until_status(id(n), if n < 2 { "Sent" } else { "Held" }).await;
    }
    let details = &world.deliveries(id(3)).await[0]["details"];
    assert_eq!(*details, "The account's limit of 20 messages a month is reached");
    // Both servers get each event once.
    for key in [own, second] {
        let events =
            wait_for_events(&world, key, &["send_limit.approaching", "send_limit.exceeded"], 2).await;
        let found: Vec<_> = events.iter().map(|event| (&event["type"], &event["data"]["volume"])).collect();
        assert_eq!(
            found,
            [(&json!("send_limit.approaching"), &json!(18)), (&json!("send_limit.exceeded"), &json!(20))]
        );
        assert_eq!(
            (&events[0]["data"]["account"]["name"], &events[0]["data"]["period"]),
            (&json!("dev"), &json!("month"))
        );
    }
    // The server's key cannot release held messages before the limit is raised.
    let release = json!({"ids": [id(2)]});
    let refused = world.call("/api/v1/messages/release", &release).await;
    assert_eq!(refused["data"]["results"][0]["error"]["code"], "AccountLimitReached", "{refused}");
    let account = (ACCOUNT, ready_field(&world, "account_api_key"));
    let usage = call_ok(&world, account, "account/usage", &json!({})).await;
    // Messages that the account's ceiling holds are not counted.
    assert_eq!(usage["messages"], json!({"hour": null, "day": null, "month": 20}));
    assert_eq!(usage["ceilings"]["monthly_limit"], 20);
    set_ceilings(&world, &["--monthly-limit", "30"]);
    world.call("/api/v1/messages/release", &release).await;
    world.until_status(id(2), "Sent").await;
    // A message in test mode counts nowhere.
    let test = world.request("POST", SEND, &[("X-Test-Mode", "true")], good().to_string()).await;
    assert_eq!(
        (test.header("ratelimit-limit"), test.json()["flags"]["test_mode"].clone()),
        (None, json!(true))
    );
    let used = call_ok(&world, account, "account/usage", &json!({})).await["messages"]["month"].clone();
    assert_eq!(used, 21);
}

async fn the_servers_of_an_account_share_its_send_rate(engine: Engine) {
    const MESSAGES_PER_SERVER: usize = 10;
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let world = outside.start(engine, &[]);
    world.admin(&["server", "create", "second", "--account", "dev"]);
    world.admin(&["domain", "create", "second.example", "--server", "second"]);
    world.admin(&["domain", "set-verified", "second.example", "--server", "second"]);
    let second =
        world.admin(&["key", "create", "--server", "second"])["api_key"].as_str().unwrap().to_owned();
    assert_eq!(set_ceilings(&world, &["--send-rate", "5/s"])["send_rate"], "5/s");
    world.apply_changes();
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for number in 0..MESSAGES_PER_SERVER {
        own.push(world.accepted_id(&good_but(json!({"to": [format!("a{number}@shop.example")]}))).await);
        let to = format!("b{number}@shop.example");
        let mail = good_but(json!({"to": [to], "from": "x@second.example"}));
        let sent = world.call_as(&second, SEND, &mail).await;
        others.push(sent["data"]["messages"][&to]["id"].as_i64().unwrap_or_else(|| panic!("{sent}")));
    }
    let mut times: Vec<(f64, bool)> = Vec::new();
    for id in &own {
        times.push((world.until_status(*id, "Sent").await[0]["timestamp"].as_f64().unwrap(), true));
    }
    for id in &others {
        let listed = eventually(async || {
            let listed = world.call_as(&second, "/api/v1/messages/deliveries", &json!({ "id": id })).await;
            if listed["data"][0]["status"] == "Sent" { Ok(listed) } else { Err(listed) }
        })
        .await;
        times.push((listed["data"][0]["timestamp"].as_f64().unwrap(), false));
    }
    times.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    assert_eq!(peer.messages().len(), 2 * MESSAGES_PER_SERVER);
    // With separate rates each server would take 2 s; together they take 4 s. The test
    // demands only 3.5 s, because outcomes are stored a little late.
    let took = times[times.len() - 1].0 - times[0].0;
    assert!(took > 3.5, "{took} s");
    let first_half = times[..MESSAGES_PER_SERVER].iter().filter(|(_, is_own)| *is_own).count();
    assert!((3..=7).contains(&first_half), "the servers take turns: {times:?}");
    let waited = world.call("/api/v1/messages/timeline", &json!({"id": own[MESSAGES_PER_SERVER - 1]})).await;
    assert!(waited.to_string().contains("the account's send rate of 5/s is used up"), "{waited}");
}

async fn no_key_exceeds_a_ceiling_of_its_account(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let one = create_customer(&world, "one").await;
    let (account, server) = keys(&one);
    let ceilings = json!({"hourly_limit": 1_000, "send_rate": "100/m", "retention": {"messages_days": 30}});
    let wanted = json!({"id": one.id, "ceilings": ceilings});
    // Only the operator sets the ceilings of an account.
    assert_eq!(error_code(&world, account, "accounts/update", &wanted).await, "AccessDenied");
    assert_eq!(error_code(&world, server, "accounts/update", &wanted).await, "AccessDenied");
    let set = call_ok(&world, operator, "accounts/update", &wanted).await;
    assert_eq!(
        (&set["ceilings"]["hourly_limit"], &set["ceilings"]["send_rate"]),
        (&json!(1_000), &json!("100/m"))
    );
    let shown = call_ok(&world, account, "account/get", &json!({})).await;
    assert_eq!((&shown["ceilings"], &shown["name"]), (&set["ceilings"], &json!("one")));
    let own = call_ok(&world, server, "server/get", &json!({})).await;
    assert_eq!(
        (&own["send_rate"], &own["hourly_limit"]),
        (&json!("100/m"), &Value::Null),
        "the account's rate applies"
    );
    assert_eq!(own["retention"]["messages_days"], 30);
    let id = &one.servers[0];
    for (key, name, change) in [
        (server, "server/update", json!({"hourly_limit": 1_001})),
        (account, "servers/update", json!({"id": id, "hourly_limit": 1_001})),
        (operator, "servers/update", json!({"id": id, "hourly_limit": 1_001})),
    ] {
        let answer = call(&world, key, name, &change).await;
        let message = "`hourly_limit` may be at most 1000: the operator of the service set this ceiling";
        assert_eq!(
            answer["data"]["errors"],
            json!([{"pointer": "/hourly_limit", "message": message}]),
            "{answer}"
        );
        assert_eq!(answer["data"]["code"], "CeilingExceeded");
    }
    for change in [json!({"send_rate": "2/s"}), json!({"retention": {"messages_days": 31}})] {
        assert_eq!(error_code(&world, server, "server/update", &change).await, "CeilingExceeded", "{change}");
    }
    let lower = json!({"hourly_limit": 900, "send_rate": "1/s", "retention": {"messages_days": 7}});
    call_ok(&world, server, "server/update", &lower).await;
    let none = json!({"hourly_limit": "none", "send_rate": "none"});
    let back = call_ok(&world, server, "server/update", &none).await;
    assert_eq!(back["send_rate"], "100/m", "without a rate of its own, the server has the account's");
    // The ceiling that the account sets is the highest value that the server's key may set.
    let change = json!({"id": id, "ceilings": {"hourly_limit": 500, "mode": "development"}});
    let changed = call_ok(&world, account, "servers/update", &change).await;
    assert_eq!((&changed["hourly_limit"], &changed["ceilings"]["hourly_limit"]), (&json!(500), &json!(500)));
    let answer = call(&world, server, "server/update", &json!({"hourly_limit": 501, "mode": "live"})).await;
    let messages: Vec<&Value> =
        answer["data"]["errors"].as_array().unwrap().iter().map(|error| &error["message"]).collect();
    assert_eq!(
        messages,
        [
            "`mode` may only be `development`: the account set this ceiling",
            "`hourly_limit` may be at most 500: the account set this ceiling",
        ]
    );
    assert_eq!(
        error_code(&world, server, "server/update", &json!({"hourly_limit": "none"})).await,
        "CeilingExceeded"
    );
    let lifted =
        json!({"id": id, "ceilings": {"hourly_limit": "none", "mode": "live"}, "hourly_limit": 1_000});
    let lifted = call_ok(&world, account, "servers/update", &lifted).await;
    assert_eq!((&lifted["mode"], &lifted["ceilings"]["hourly_limit"]), (&json!("live"), &json!(1_000)));
    // The account cannot lift what the operator set for the server.
    call_ok(
        &world,
        operator,
        "servers/update",
        &json!({"id": id, "ceilings": {"hourly_limit": 10, "mode": "development"}}),
    )
    .await;
    let raise = json!({"id": id, "ceilings": {"hourly_limit": 800}});
    let still = call_ok(&world, account, "servers/update", &raise).await;
    assert_eq!((&still["hourly_limit"], &still["ceilings"]["hourly_limit"]), (&json!(10), &json!(10)));
    let live = json!({"id": id, "ceilings": {"mode": "live"}});
    assert_eq!(error_code(&world, account, "servers/update", &live).await, "CeilingExceeded");
    // Invalid values are named by their JSON pointers.
    let wrong = json!({"id": one.id, "ceilings": {"servers": -1, "send_rate": "fast", "odd": 1}});
    let answer = call(&world, operator, "accounts/update", &wrong).await;
    let pointers: Vec<&Value> =
        answer["data"]["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, ["/ceilings/servers", "/ceilings/send_rate"]);
    assert_eq!(answer["flags"]["warnings"], json!(["Unknown field `ceilings/odd` was ignored"]));
    let all = json!({"id": one.id, "ceilings": {"hourly_limit": "none", "send_rate": "none", "retention": {"messages_days": "none"}}});
    let free = call_ok(&world, operator, "accounts/update", &all).await;
    assert!(free["ceilings"]["hourly_limit"].is_null() && free["ceilings"]["send_rate"].is_null());
}

async fn concurrent_calls_with_one_idempotency_key_create_the_last_allowed_object_once(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let one = create_customer(&world, "one").await;
    let (account, _) = keys(&one);
    for number in 0..5 {
        let wanted = json!({"id": one.id, "ceilings": {"servers": 3 + number, "domains": 1 + number, "users": 1 + number}});
        call_ok(&world, operator, "accounts/update", &wanted).await;
        for (name, body) in [
            ("servers/create", json!({"name": format!("s{number}")})),
            ("domains/create", json!({"name": format!("d{number}.example")})),
            ("users/invite", json!({"email": format!("p{number}@one.example")})),
        ] {
            let mut body = body;
            body["idempotency_key"] = json!(format!("{name} {number}"));
            let calls = (0..3).map(|_| call(&world, account, name, &body));
            let answers = futures_util::future::join_all(calls).await;
            for answer in &answers {
                assert_eq!(answer["status"], "success", "{name}: {answer}");
                assert_eq!(answer["data"]["id"], answers[0]["data"]["id"], "{name}");
            }
        }
    }
}

async fn an_account_gets_no_more_objects_than_its_ceilings_allow(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let one = create_customer(&world, "one").await;
    let (account, server) = keys(&one);
    let wanted = json!({"id": one.id, "ceilings": {"servers": 3, "domains": 2, "webhooks": 10, "users": 1}});
    call_ok(&world, operator, "accounts/update", &wanted).await;
    let full = |what: &str, most: u32| json!([format!("The account has {most} {what}, the maximum")]);
    // The last object that the ceiling allows is created with a warning, and the next one is refused.
    assert_eq!(
        warnings(&world, account, "servers/create", json!({"name": "third"})).await,
        full("servers", 3)
    );
    let answer = call(&world, account, "servers/create", &json!({"name": "fourth"})).await;
    let message = "The account may have at most 3 servers: the operator of the service set this ceiling";
    assert_eq!(
        (&answer["data"]["code"], &answer["data"]["message"]),
        (&json!("CeilingExceeded"), &json!(message))
    );
    assert!(warnings(&world, server, "domains/create", json!({"name": "one.example"})).await.is_null());
    assert_eq!(
        warnings(&world, account, "domains/create", json!({"name": "two.example"})).await,
        full("domains", 2)
    );
    for key in [server, account] {
        assert_eq!(
            error_code(&world, key, "domains/create", &json!({"name": "three.example"})).await,
            "CeilingExceeded"
        );
    }
    let invite = |name: &str| json!({"email": format!("{name}@example.com")});
    assert_eq!(warnings(&world, account, "users/invite", invite("anna")).await, full("users", 1));
    assert_eq!(
        warnings(&world, account, "users/invite", invite("anna")).await,
        full("users", 1),
        "the same person again"
    );
    assert_eq!(error_code(&world, account, "users/invite", &invite("bob")).await, "CeilingExceeded");
    assert!(!world.admin_output(&["user", "create", "bob@example.com", "--account", "one"]).0);
    for n in 0..10 {
        let key = (SERVER, one.server_keys[n % 2].as_str());
        let hook = json!({"url": format!("https://hooks.example/{n}")});
        let expected = match n {
            8 => json!(["The account has 9 of 10 webhooks"]),
            9 => full("webhooks", 10),
            _ => Value::Null,
        };
        assert_eq!(warnings(&world, key, "webhooks/create", hook).await, expected, "webhook {n}");
    }
    assert_eq!(
        error_code(&world, server, "webhooks/create", &json!({"url": "https://hooks.example/x"})).await,
        "CeilingExceeded"
    );
    let usage = call_ok(&world, account, "account/usage", &json!({})).await;
    let counts = ["servers", "domains", "webhooks", "users"].map(|name| usage[name].as_u64().unwrap());
    assert_eq!(counts, [3, 2, 10, 1]);
    // Events come in order. 90 % of a small ceiling rounds up to all of it, so those send only `ceiling.reached`.
    let events = wait_for_events(&world, server, &["ceiling.approaching", "ceiling.reached"], 5).await;
    let found: Vec<String> = events
        .iter()
        .map(|event| {
            format!(
                "{} {} {}",
                event["type"].as_str().unwrap(),
                event["data"]["ceiling"].as_str().unwrap(),
                event["data"]["count"]
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            "ceiling.reached servers 3",
            "ceiling.reached domains 2",
            "ceiling.reached users 1",
            "ceiling.approaching webhooks 9",
            "ceiling.reached webhooks 10",
        ]
    );
    // Changes of ceilings are in the audit log.
    let log = call_ok(&world, account, "account/audit", &json!({"operation": "accounts/update"})).await;
    assert_eq!(
        (&log["items"][0]["before"]["servers_max"], &log["items"][0]["after"]["servers_max"]),
        (&Value::Null, &json!(3))
    );
}
