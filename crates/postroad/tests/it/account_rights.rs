//! Rights that account and server keys lack: over the operator's settings, holds, suspensions, roles, networks and
//! shared pools. Also deleted servers and audit entries.

use postroad_testkit::eventually;
use serde_json::{Value, json};

use crate::accounts::{
    ACCOUNT, Key, OPERATOR, SERVER, call, call_ok, create_customer, error_code, ready_field,
};
use crate::world::{DELIVERIES, MESSAGE, World, both_engines, good};

both_engines!(
    the_content_of_mail_that_the_service_itself_sends_is_shown_to_no_key,
    held_mail_is_not_released_beyond_the_limits_of_its_server,
    a_suspension_by_the_operator_is_not_lifted_by_the_account,
    nobody_gives_a_role_above_their_own,
    servers_of_an_account_can_use_the_same_idempotency_key,
    an_account_makes_its_own_development_server_live,
    a_key_creates_no_key_with_more_networks_or_a_later_expiry,
    volumes_of_a_shared_pool_are_shown_only_to_the_operator,
    a_deleted_server_sends_nothing_until_it_is_restored,
    erasures_password_links_and_suspensions_are_in_the_audit_log
);

fn operator(world: &World) -> Key<'_> {
    (OPERATOR, ready_field(world, "operator_api_key"))
}

async fn create_account_key(world: &World, key: Key<'_>, body: Value) -> Value {
    call_ok(world, key, "account_keys/create", &body).await
}

fn api_key_of(made: &Value) -> &str {
    made["api_key"].as_str().expect("a key")
}

async fn the_content_of_mail_that_the_service_itself_sends_is_shown_to_no_key(world: World) {
    let one = create_customer(&world, "one").await;
    let account = (ACCOUNT, one.key.as_str());
    // The service stores its own mail under the account `postroad`, so nobody can take that name.
    for name in ["postroad", " Postroad "] {
        assert_eq!(
            error_code(&world, account, "account/update", &json!({ "name": name })).await,
            "ValidationError"
        );
    }
    assert!(!world.admin_output(&["account", "create", "postroad"]).0);
    call_ok(&world, account, "servers/update", &json!({"id": one.servers[0], "name": "operator"})).await;
    let invite = json!({"account": one.id, "email": "ann@customer.example"});
    let invited = call_ok(&world, operator(&world), "users/invite", &invite).await;
    let token = invited["link"].as_str().unwrap().split_once("token=").unwrap().1.to_owned();
    let caught = world.client.get("/dev/messages/wait?to=ann@customer.example&timeout=30").await.unwrap();
    assert_eq!(caught.json()["subject"], "Invitation");
    let servers = call_ok(&world, operator(&world), "servers/list", &json!({"name": "operator"})).await;
    let servers = servers["items"].as_array().unwrap();
    let own = servers.iter().find(|server| server["id"] != one.servers[0]).unwrap();
    let new = json!({"server": own["id"], "name": "x"});
    let made = call_ok(&world, operator(&world), "credentials/create", &new).await;
    let key = (SERVER, api_key_of(&made));
    // On PostgreSQL, events are listed when all transactions that began before theirs have ended.
    let id = eventually(async || {
        let events = call_ok(&world, key, "events/list", &json!({"types": ["message.accepted"]})).await;
        let id = events["items"][0]["data"]["message"]["id"].clone();
        if id.is_i64() { Ok(id) } else { Err(events.to_string()) }
    })
    .await;
    let shown = world.call_as(key.1, MESSAGE, &json!({"id": id, "_expansions": true})).await;
    assert_eq!(shown["status"], "success", "{shown}");
    assert!(shown["data"]["plain_body"].is_null() && shown["data"]["raw_message"].is_null(), "{shown}");
    assert!(!shown.to_string().contains(&token), "{shown}");
    // The service's own server and account cannot be deleted: a restored server would no longer be the service's own.
    for (call, id) in [("servers/delete", &own["id"]), ("accounts/delete", &own["account"])] {
        assert_eq!(error_code(&world, operator(&world), call, &json!({ "id": id })).await, "ValidationError");
    }
    // Mail of other servers is shown.
    let id = world.accepted_id(&good()).await;
    assert_eq!(world.expanded(id).await["plain_body"], "Thank you.\r\n");
}

async fn held_mail_is_not_released_beyond_the_limits_of_its_server(world: World) {
    let release = async |id: i64| world.call("/api/v1/messages/release", &json!({ "id": id })).await;
    world.admin(&["server", "set-hourly-limit", "dev", "1"]);
    let first = world.accepted_id(&good()).await;
    world.until_status(first, "Sent").await;
    let held = world.accepted_id(&good()).await;
    world.until_status(held, "Held").await;
    let refused = release(held).await;
    assert_eq!(refused["data"]["code"], "HourlyLimitReached", "{refused}");
    let message = "The server's limit of 1 messages an hour is reached: release it in the next hour";
    assert_eq!(refused["data"]["message"], message);
    // Held messages count too, and a release counts once more: after three messages, a limit of 4 allows one release.
    let other = world.accepted_id(&good()).await;
    world.admin(&["server", "set-hourly-limit", "dev", "4"]);
    assert_eq!(release(held).await["status"], "success");
    world.until_status(held, "Sent").await;
    assert_eq!(release(other).await["data"]["code"], "HourlyLimitReached");
    world.admin(&["server", "set-hourly-limit", "dev", "none"]);
    assert_eq!(release(other).await["status"], "success");

    // The key of a server that the operator put into development releases nothing; the operator can release its mail.
    world.admin(&["server", "set-mode", "dev", "development"]);
    let held = world.accepted_id(&good()).await;
    world.until_status(held, "Held").await;
    assert_eq!(release(held).await["data"]["code"], "DevelopmentServer");
    let job = world.call("/api/v1/messages/release", &json!({"query": "status:held"})).await;
    assert_eq!(job["status"], "success", "{job}");
    eventually(async || {
        let job = world.call("/api/v1/jobs/get", &json!({"id": job["data"]["job_id"]})).await["data"].clone();
        if job["state"] == "done" { Ok(()) } else { Err(job.to_string()) }
    })
    .await;
    world.until_status(held, "Held").await;
    assert_eq!(world.queue(&["retry", &held.to_string()])[0]["result"], "released");
    world.until_status(held, "Sent").await;
    // The key of a server that went into development by itself can release its mail.
    world.admin(&["server", "set-mode", "dev", "live"]);
    world.call("/api/v1/server/update", &json!({"mode": "development"})).await;
    let held = world.accepted_id(&good()).await;
    assert_eq!(release(held).await["status"], "success");
}

async fn a_suspension_by_the_operator_is_not_lifted_by_the_account(world: World) {
    let one = create_customer(&world, "one").await;
    let account = (ACCOUNT, one.key.as_str());
    let (id, reason) = (json!({"id": one.servers[0]}), json!({"id": one.servers[0], "reason": "mine"}));
    // The account lifts its own suspension.
    call_ok(&world, account, "servers/suspend", &reason).await;
    assert_eq!(call_ok(&world, account, "servers/resume", &id).await["suspended"], false);
    call_ok(&world, account, "servers/suspend", &reason).await;
    call_ok(&world, operator(&world), "servers/suspend", &json!({"id": one.servers[0], "reason": "abuse"}))
        .await;
    for (name, body) in [("servers/resume", &id), ("servers/suspend", &reason)] {
        let refused = call(&world, account, name, body).await;
        assert_eq!(refused["data"]["code"], "SuspendedByOperator", "{name}: {refused}");
    }
    let shown = call_ok(&world, account, "servers/get", &id).await;
    assert_eq!(shown["suspended_reason"], "abuse");
    let server_key = (SERVER, one.server_keys[0].as_str());
    assert_eq!(error_code(&world, server_key, "server/get", &json!({})).await, "ServerSuspended");
    world.admin(&["server", "resume", "one/shop"]);
    call_ok(&world, server_key, "server/get", &json!({})).await;
}

async fn nobody_gives_a_role_above_their_own(world: World) {
    let one = create_customer(&world, "one").await;
    let account = (ACCOUNT, one.key.as_str());
    let limited = create_account_key(&world, account, json!({"name": "people", "scopes": ["users"]})).await;
    let limited = (ACCOUNT, api_key_of(&limited));
    let made = world.admin(&["operator-key", "create", "--scope", "users"]);
    let narrow = (OPERATOR, api_key_of(&made));
    let invite = |role: &str, operator: bool| {
        let email = format!("{role}-{operator}@customer.example");
        json!({"account": one.id, "email": email, "role": role, "operator": operator})
    };
    for (key, role, is_operator, is_allowed) in [
        (account, "owner", false, false),
        (account, "admin", false, true),
        (account, "member", true, false),
        (limited, "owner", false, false),
        (limited, "admin", false, false),
        (limited, "member", false, true),
        (narrow, "owner", false, false),
        (narrow, "read-only", true, false),
        (narrow, "member", false, true),
        (operator(&world), "owner", true, true),
    ] {
        let answer = call(&world, key, "users/invite", &invite(role, is_operator)).await;
        assert_eq!(answer["status"] == "success", is_allowed, "{key:?} {role} {is_operator}: {answer}");
        if !is_allowed {
            assert_eq!(answer["data"]["code"], "ValidationError");
        }
    }
    // Nobody replaces or revokes an invitation to a higher role.
    let owner = invite("owner", true)["email"].clone();
    let open = call_ok(&world, account, "users/invitations", &json!({ "email": owner })).await;
    let id = &open["items"][0]["id"];
    for key in [account, limited, narrow] {
        let again = json!({"account": one.id, "email": owner, "role": "member"});
        assert_eq!(error_code(&world, key, "users/invite", &again).await, "ValidationError");
        let revoke = json!({"account": one.id, "id": id});
        assert_eq!(error_code(&world, key, "users/uninvite", &revoke).await, "ValidationError");
    }
    let after = call_ok(&world, account, "users/invitations", &json!({ "email": owner })).await;
    assert_eq!((&after["items"][0]["id"], &after["items"][0]["role"]), (id, &json!("owner")));
    // Nobody changes or removes a person with a higher role.
    let email = |name: &str| format!("{name}@customer.example");
    for (name, role) in [("olga", "owner"), ("adam", "admin")] {
        world.admin(&["user", "create", &email(name), "--account", "one", "--role", role]);
    }
    let people = call_ok(&world, account, "users/list", &json!({})).await["items"].clone();
    let id = |name: &str| {
        let found = people.as_array().unwrap().iter().find(|person| person["email"] == email(name));
        found.unwrap()["id"].clone()
    };
    for (key, name, change, is_allowed) in [
        (account, "olga", json!({"role": "member"}), false),
        (account, "adam", json!({"role": "owner"}), false),
        (limited, "adam", json!({"name": "A."}), false),
        (narrow, "olga", json!({"name": "O."}), false),
        (narrow, "adam", json!({"operator": true}), false),
        (account, "adam", json!({"role": "member"}), true),
        (limited, "adam", json!({"name": "Adam"}), true),
        (operator(&world), "adam", json!({"role": "owner"}), true),
    ] {
        let mut body = change.clone();
        body["id"] = id(name);
        let answer = call(&world, key, "users/update", &body).await;
        assert_eq!(answer["status"] == "success", is_allowed, "{key:?} {name} {change}: {answer}");
    }
    assert_eq!(
        error_code(&world, limited, "users/remove", &json!({"id": id("olga")})).await,
        "ValidationError"
    );
}

async fn servers_of_an_account_can_use_the_same_idempotency_key(world: World) {
    let one = create_customer(&world, "one").await;
    let [shop, news] = [0, 1].map(|at| (SERVER, one.server_keys[at].as_str()));
    let body = json!({"name": "sister.example", "idempotency_key": "k"});
    let made = call_ok(&world, shop, "domains/create", &body).await;
    let again = call(&world, shop, "domains/create", &body).await;
    assert_eq!((&again["data"]["name"], &again["flags"]["idempotent_replay"]), (&made["name"], &json!(true)));
    for key in [news, (ACCOUNT, one.key.as_str())] {
        let answer = call(&world, key, "domains/create", &body).await;
        assert_eq!((&answer["status"], &answer["flags"]), (&json!("success"), &json!({})), "{answer}");
        let again = call(&world, key, "domains/create", &body).await;
        assert_eq!(again["flags"]["idempotent_replay"], true, "{again}");
        let other = json!({"name": "other.example", "idempotency_key": "k"});
        assert_eq!(error_code(&world, key, "domains/create", &other).await, "IdempotencyConflict");
    }
}

async fn an_account_makes_its_own_development_server_live(world: World) {
    let one = create_customer(&world, "one").await;
    let account = (ACCOUNT, one.key.as_str());
    let trial = json!({"name": "trial", "mode": "development"});
    let id = call_ok(&world, account, "servers/create", &trial).await["id"].clone();
    let made = call_ok(&world, account, "credentials/create", &json!({"server": id, "name": "x"})).await;
    let live = json!({"mode": "live"});
    assert_eq!(
        error_code(&world, (SERVER, api_key_of(&made)), "server/update", &live).await,
        "CeilingExceeded"
    );
    let live = json!({"id": id, "ceilings": {"mode": "live"}});
    assert_eq!(call_ok(&world, account, "servers/update", &live).await["mode"], "live");
    // A development server that the operator created stays a development server.
    let trial = json!({"account": one.id, "name": "second", "mode": "development"});
    let id = call_ok(&world, operator(&world), "servers/create", &trial).await["id"].clone();
    for (change, pointer) in
        [(json!({"ceilings": {"mode": "live"}}), "/ceilings/mode"), (json!({"mode": "live"}), "/mode")]
    {
        let mut body = change.clone();
        body["id"] = id.clone();
        let refused = call(&world, account, "servers/update", &body).await["data"].clone();
        assert_eq!(
            (&refused["code"], &refused["errors"][0]["pointer"]),
            (&json!("CeilingExceeded"), &json!(pointer))
        );
    }
    // A setting without a ceiling is not ignored silently.
    let tracking = json!({"id": id, "ceilings": {"tracking": {"opens": true}}});
    let answer = call(&world, account, "servers/update", &tracking).await;
    assert!(answer["flags"]["warnings"][0].as_str().unwrap().contains("ceilings/tracking"), "{answer}");
}

async fn a_key_creates_no_key_with_more_networks_or_a_later_expiry(world: World) {
    let one = create_customer(&world, "one").await;
    let account = (ACCOUNT, one.key.as_str());
    let end = "2099-01-01T00:00:00Z";
    let bound = json!({"name": "bound", "allow": ["127.0.0.0/8"], "expires_at": end});
    let bound = create_account_key(&world, account, bound).await;
    let bound_key = (ACCOUNT, api_key_of(&bound));
    let heir = create_account_key(&world, bound_key, json!({"name": "heir"})).await;
    assert_eq!((&heir["allow"], &heir["expires_at"]), (&bound["allow"], &bound["expires_at"]));
    let narrower = json!({"name": "x", "allow": ["127.0.0.1/32"], "expires_at": "2098-01-01T00:00:00Z"});
    let narrower = create_account_key(&world, bound_key, narrower).await;
    assert_eq!(narrower["allow"], json!(["127.0.0.1/32"]));
    assert!(narrower["expires_at"].as_str().unwrap().starts_with("2098"), "{narrower}");
    let longer =
        create_account_key(&world, bound_key, json!({"name": "x", "expires_at": "2199-01-01T00:00:00Z"}))
            .await;
    assert_eq!(longer["expires_at"], bound["expires_at"]);
    for allow in [json!(["0.0.0.0/0"]), json!(["127.0.0.1/32", "192.0.2.0/24"])] {
        let wider = json!({"name": "x", "allow": allow});
        assert_eq!(
            error_code(&world, bound_key, "account_keys/create", &wider).await,
            "ValidationError",
            "{wider}"
        );
    }
}

async fn volumes_of_a_shared_pool_are_shown_only_to_the_operator(world: World) {
    let one = create_customer(&world, "one").await;
    let account = (ACCOUNT, one.key.as_str());
    let mut pools = Vec::new();
    for (number, pool) in
        [json!({"name": "all", "shared": true}), json!({"name": "own", "account": one.id})].iter().enumerate()
    {
        let made = call_ok(&world, operator(&world), "ip_pools/create", pool).await;
        let address =
            json!({"pool": made["id"], "address": format!("192.0.2.{number}"), "helo": "mta.example.com"});
        call_ok(&world, operator(&world), "ip_pools/add_address", &address).await;
        pools.push(made["id"].clone());
    }
    for (key, at, shows_volumes) in
        [(account, 0, false), (account, 1, true), (operator(&world), 0, true), (operator(&world), 1, true)]
    {
        let pool = call_ok(&world, key, "ip_pools/get", &json!({"id": pools[at]})).await;
        let listed = call_ok(&world, key, "ip_pools/list", &json!({})).await["items"].clone();
        let listed = listed.as_array().unwrap().iter().find(|listed| listed["id"] == pool["id"]).unwrap();
        for name in ["sent_today", "bounced_today", "complained_today"] {
            let shown = [&pool, listed].map(|pool| pool["addresses"][0][name].is_u64());
            assert_eq!(shown, [shows_volumes, shows_volumes], "{key:?}: {pool}");
        }
    }
}

async fn a_deleted_server_sends_nothing_until_it_is_restored(world: World) {
    world.queue(&["suspend", "everything", "--reason", "to have some waiting"]);
    let id = world.accepted_id(&good()).await;
    world.admin(&["server", "delete", "dev"]);
    world.queue(&["resume", "everything"]);
    world.apply_changes();
    let why = world.queue(&["show", &id.to_string()])["why"].as_str().unwrap_or_default().to_owned();
    assert!(why.contains("deleted"), "{why}");
    assert_eq!(world.call(DELIVERIES, &json!({ "id": id })).await["data"]["code"], "ServerSuspended");
    world.admin(&["server", "restore", "dev"]);
    world.until_status(id, "Sent").await;
}

async fn erasures_password_links_and_suspensions_are_in_the_audit_log(world: World) {
    let id = world.accepted_id(&good()).await;
    world.until_status(id, "Sent").await;
    let erased = world.call("/api/v1/messages/erase", &json!({ "id": id })).await;
    assert_eq!(erased["status"], "success", "{erased}");
    let job = world.call("/api/v1/messages/erase", &json!({"address": "someone@example.com"})).await;
    assert_eq!(job["status"], "success", "{job}");
    world.admin(&["user", "create", "ann@example.com", "--account", "dev"]);
    world.admin(&["user", "reset-password", "ann@example.com"]);
    world.queue(&["suspend", "server:dev", "--reason", "moving"]);
    world.queue(&["resume", "server:dev"]);
    world.admin(&["domain", "set-host", "mail.other.example"]);
    // Refusals leave no entry.
    world.call("/api/v1/messages/erase", &json!({ "id": 1 })).await;
    let account = (ACCOUNT, ready_field(&world, "account_api_key"));
    let log = call_ok(&world, account, "account/audit", &json!({"limit": 100})).await["items"].clone();
    let entries: Vec<&Value> = log.as_array().unwrap().iter().rev().collect();
    let entries_of = |operation: &str| -> Vec<&Value> {
        entries.iter().filter(|entry| entry["operation"] == operation).copied().collect()
    };
    let erasures = entries_of("messages/erase");
    assert_eq!(erasures.len(), 2, "{log}");
    assert_eq!((&erasures[0]["after"]["message"], &erasures[0]["actor"]), (&json!(id), &json!("server_key")));
    assert_eq!(erasures[1]["after"]["job"], job["data"]["job_id"]);
    let links = entries_of("users/reset_password");
    assert_eq!(links.len(), 2, "creating a person makes a password link, too: {log}");
    assert!(links.iter().all(|entry| entry["after"]["link"] == "password_reset"), "{links:?}");
    assert_eq!(entries_of("installation/suspend")[0]["after"]["reason"], "moving");
    assert_eq!(entries_of("installation/resume").len(), 1);
    assert!(!log.to_string().contains("someone@example.com"), "{log}");
    let installation = json!({"account": 0, "operation": "installation/set_host"});
    let hosts = call_ok(&world, operator(&world), "account/audit", &installation).await;
    assert_eq!(hosts["items"][0]["after"]["value"], "mail.other.example", "{hosts}");
}

/// Runs on PostgreSQL, which another program can change while the service runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tampered_audit_log_is_noticed_at_the_command_line() {
    let world = World::start(crate::world::Engine::Postgres);
    let one = create_customer(&world, "one").await;
    let (success, out, err) = world.audit_output(&["verify"]);
    assert!(success, "{err}");
    let verdict: Value = serde_json::from_str(&out).unwrap();
    let heads: Vec<&str> =
        verdict["heads"].as_array().unwrap().iter().map(|head| head.as_str().unwrap()).collect();
    let expected = heads.join(" ");
    let head_of_one =
        heads.iter().find(|head| head.starts_with(&format!("{}:6:", one.id))).unwrap().to_string();
    let verify = |expected: &str| world.audit_output(&["verify", "--expect", expected]);
    assert!(verify(&expected).0);
    let (_, _, err) = verify("1:2");
    assert!(err.contains("should be ACCOUNT:SEQ:HASH"), "{err}");
    // The check also succeeds after later entries.
    call_ok(&world, (ACCOUNT, &one.key), "account/update", &json!({"name": "uno"})).await;
    assert!(verify(&expected).0);
    // The newest entries are removed; later the head is set back too.
    let id = &one.id.to_string();
    let database = world.database();
    database.remove_audit_entries_after(id, 5);
    let (success, _, err) = world.audit_output(&["verify"]);
    assert!(!success && err.contains("entry 6 is missing or altered"), "{err}");
    database.set_audit_head_back(id, 5);
    assert!(world.audit_output(&["verify"]).0, "the shortened log is consistent");
    let (success, _, err) = verify(&head_of_one);
    assert!(!success && err.contains("entry 6 is missing or altered"), "{err}");
    // First only the head is removed, then all entries.
    database.remove_audit_head(id);
    assert!(!world.audit_output(&["verify"]).0, "there are entries without a head");
    database.remove_audit_entries_after(id, 0);
    assert!(!verify(&expected).0);
}
