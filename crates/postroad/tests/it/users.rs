//! People who sign in to the portal, by HTTP and at the command line.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::world::{World, both_engines, envelope};

const ACCOUNT: &str = "X-Account-API-Key";
const OPERATOR: &str = "X-Operator-API-Key";

async fn call(world: &World, header: &str, name: &str, body: &Value) -> Value {
    let field = if header == ACCOUNT { "account_api_key" } else { "operator_api_key" };
    let key = world.daemon.ready()[field].as_str().expect("the ready line has it").to_owned();
    call_with(world, (header, &key), name, body).await
}

async fn call_with(world: &World, key: (&str, &str), name: &str, body: &Value) -> Value {
    let (path, method) = (format!("/api/v1/{name}"), "POST".parse().expect("a method"));
    let reply = world.client.request(method, &path, &[key], body.to_string().into()).await;
    envelope(&reply.expect("the server answers"))
}

fn code(answer: &Value) -> &str {
    answer["data"]["code"].as_str().unwrap_or("success")
}

both_engines!(people_are_invited_by_mail_changed_and_removed, the_command_line_manages_people);

async fn people_are_invited_by_mail_changed_and_removed(world: World) {
    let asked = json!({"email": "Bob@Customer.example", "role": "admin"});
    let invited = call(&world, ACCOUNT, "users/invite", &asked).await;
    assert_eq!(code(&invited), "success", "{invited}");
    assert_eq!(
        (&invited["data"]["email"], &invited["data"]["role"]),
        (&json!("bob@customer.example"), &json!("admin"))
    );
    let link = invited["data"]["link"].as_str().unwrap();
    assert!(
        link.starts_with(&format!("{}/invitation?token=", world.daemon.ready()["url"].as_str().unwrap())),
        "{link}"
    );
    // The mail went the way of every other one, and lands in the inbox.
    let caught = world.client.get("/dev/messages/wait?to=bob@customer.example&timeout=30").await.unwrap();
    assert_eq!(caught.json()["subject"], "Invitation");
    let raw = world.client.get(&format!("/dev/messages/{}/raw", caught.json()["id"])).await.unwrap();
    let raw = raw.text().replace("=\r\n", "").replace("=3D", "=");
    assert!(raw.contains(link) && raw.contains("DKIM-Signature:"), "{raw}");
    assert!(raw.contains("Auto-Submitted: auto-generated"), "{raw}");
    let open = call(&world, ACCOUNT, "users/invitations", &json!({})).await;
    assert_eq!(open["data"]["items"].as_array().unwrap().len(), 1);
    assert!(!open.to_string().contains("token"), "{open}");

    // The people of the account: that of `dev`, and one made at the command line.
    let made =
        world.admin(&["user", "create", "carl@customer.example", "--account", "dev", "--role", "read-only"]);
    assert!(made["link"].as_str().unwrap().contains("/reset_password?token="), "{made}");
    let people = call(&world, ACCOUNT, "users/list", &json!({})).await["data"]["items"].clone();
    let emails: Vec<&str> =
        people.as_array().unwrap().iter().map(|person| person["email"].as_str().unwrap()).collect();
    assert_eq!(emails, ["dev@example.test", "carl@customer.example"]);
    let (dev, carl) = (people[0]["id"].clone(), people[1]["id"].clone());
    assert_eq!(people[0]["operator"], true);
    let changed =
        call(&world, ACCOUNT, "users/update", &json!({"id": carl, "role": "member", "name": "Carl"})).await;
    assert_eq!((&changed["data"]["role"], &changed["data"]["version"]), (&json!("member"), &json!(2)));
    let late = json!({"id": carl, "role": "admin", "if_version": 1});
    assert_eq!(code(&call(&world, ACCOUNT, "users/update", &late).await), "VersionConflict");
    let lift = json!({"id": carl, "operator": true});
    assert_eq!(code(&call(&world, ACCOUNT, "users/update", &lift).await), "ValidationError");
    assert_eq!(code(&call(&world, ACCOUNT, "users/remove", &json!({ "id": dev })).await), "ValidationError");
    assert_eq!(
        code(&call(&world, OPERATOR, "users/update", &json!({"id": dev, "role": "member"})).await),
        "LastOwner"
    );
    assert_eq!(code(&call(&world, ACCOUNT, "users/sessions", &json!({ "id": carl })).await), "success");
    let gone = json!({"id": carl, "session": 99});
    assert_eq!(code(&call(&world, ACCOUNT, "users/revoke_session", &gone).await), "SessionNotFound");

    // Another account sees nobody of it.
    let other =
        call(&world, OPERATOR, "accounts/create", &json!({"name": "other"})).await["data"]["id"].clone();
    let key = call(&world, OPERATOR, "account_keys/create", &json!({"account": other, "name": "k"})).await;
    let other = (ACCOUNT, key["data"]["api_key"].as_str().unwrap());
    assert_eq!(call_with(&world, other, "users/list", &json!({})).await["data"]["items"], json!([]));
    for name in ["users/update", "users/remove", "users/sessions", "users/revoke_session"] {
        let foreign = call_with(&world, other, name, &json!({ "id": carl })).await;
        let unknown = call_with(&world, other, name, &json!({ "id": 999_999 })).await;
        assert_eq!((code(&foreign), &foreign["data"]), ("UserNotFound", &unknown["data"]), "{name}");
    }
    let invitation = json!({"id": invited["data"]["id"]});
    assert_eq!(code(&call_with(&world, other, "users/uninvite", &invitation).await), "InvitationNotFound");

    assert_eq!(code(&call(&world, ACCOUNT, "users/uninvite", &invitation).await), "success");
    assert_eq!(code(&call(&world, ACCOUNT, "users/remove", &json!({ "id": carl })).await), "success");
    let log = call(&world, ACCOUNT, "account/audit", &json!({"limit": 100})).await["data"]["items"].clone();
    let names: Vec<&str> =
        log.as_array().unwrap().iter().rev().map(|entry| entry["operation"].as_str().unwrap()).collect();
    let expected = [
        "users/invite",
        "users/create",
        "users/reset_password",
        "users/update",
        "users/uninvite",
        "users/remove",
    ];
    assert_eq!(names.iter().filter(|name| name.starts_with("users/")).copied().collect::<Vec<_>>(), expected);
    assert!(!log.to_string().contains("argon2"), "{log}");
}

async fn the_command_line_manages_people(world: World) {
    world.admin(&["user", "create", "anna@example.com", "--account", "dev", "--name", "Anna"]);
    let listed = world.admin(&["user", "list", "--account", "dev"]);
    assert_eq!(listed[1]["name"], "Anna");
    assert_eq!(world.admin(&["user", "update", "ANNA@example.com", "--role", "owner"])["role"], "owner");
    assert!(world.admin(&["user", "reset-password", "anna@example.com"])["link"].is_string());
    assert_eq!(world.admin(&["user", "sign-out", "anna@example.com"])["sessions_ended"], 0);
    for (arguments, part) in [
        (vec!["user", "disable-totp", "anna@example.com"], "No authenticator app is in use"),
        (vec!["user", "remove", "nobody@example.com"], "there is no person"),
        (vec!["user", "create", "anna@example.com", "--account", "dev"], "already"),
        (vec!["user", "create", "no address", "--account", "dev"], "e-mail address"),
        (vec!["user", "set-up-link"], "there are people already"),
    ] {
        let (success, _, err) = world.admin_output(&arguments);
        assert!(!success && err.contains(part), "{arguments:?}: {err}");
    }
    assert_eq!(world.admin(&["user", "remove", "anna@example.com"])["email"], "anna@example.com");
    // The key that seals secrets is for the service alone.
    let key = world.data_dir().join("secrets.key");
    assert_eq!(key.metadata().expect("made at the first start").permissions().mode() & 0o777, 0o600);
}
