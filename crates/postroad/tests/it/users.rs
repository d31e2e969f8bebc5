//! Managing the people who sign in to the portal, by the HTTP API and at the command line.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::world::{World, both_engines, envelope, program};

const ACCOUNT: &str = "X-Account-API-Key";
const OPERATOR: &str = "X-Operator-API-Key";

/// Calls with the key that `header` names: the account's or the operator's.
async fn call(world: &World, header: &str, name: &str, body: &Value) -> Value {
    let field = if header == ACCOUNT { "account_api_key" } else { "operator_api_key" };
    let key = world.daemon.ready()[field].as_str().expect("the ready line has it").to_owned();
    call_with(world, (header, &key), name, body).await
}

async fn call_with(world: &World, key: (&str, &str), name: &str, body: &Value) -> Value {
    let (path, method) = (format!("/api/v1/{name}"), "POST".parse().expect("a method"));
    let reply = world.client.request(method, &path, &[key], body.to_string().into()).await;
    envelope(&reply.expect("the service answers"))
}

/// Code of the refusal, or `success`.
fn outcome(answer: &Value) -> &str {
    answer["data"]["code"].as_str().unwrap_or("success")
}

both_engines!(
    people_are_invited_by_mail_changed_and_removed,
    inviting_again_with_the_same_idempotency_key_sends_no_second_mail,
    concurrent_invitations_with_one_idempotency_key_send_one_mail_with_a_link_that_works,
    invitations_report_how_many_more_are_allowed,
    an_invitation_does_not_reveal_people_of_another_account,
    people_are_listed_by_email_address_and_role,
    the_command_line_manages_people,
    the_command_line_invites_people
);

async fn count_mails_to(world: &World, to: &str) -> usize {
    let caught = world.client.get("/dev/messages?limit=500").await.unwrap().json();
    let is_to = |mail: &&Value| mail["rcpt_to"][0] == to;
    caught["messages"].as_array().unwrap().iter().filter(is_to).count()
}

async fn inviting_again_with_the_same_idempotency_key_sends_no_second_mail(world: World) {
    let request = json!({"email": "bob@customer.example", "idempotency_key": "k1"});
    let first = call(&world, ACCOUNT, "users/invite", &request).await;
    let again = call(&world, ACCOUNT, "users/invite", &request).await;
    assert_eq!((outcome(&first), outcome(&again)), ("success", "success"), "{first} {again}");
    assert_eq!(first["data"], again["data"]);
    assert_eq!(
        (&first["flags"]["idempotent_replay"], &again["flags"]["idempotent_replay"]),
        (&Value::Null, &json!(true))
    );
    let other = json!({"email": "carl@customer.example", "idempotency_key": "k1"});
    assert_eq!(outcome(&call(&world, ACCOUNT, "users/invite", &other).await), "IdempotencyConflict");
    // A later mail shows that no second one came before it.
    let other = json!({"email": "carl@customer.example", "idempotency_key": "k2"});
    call(&world, ACCOUNT, "users/invite", &other).await;
    world.client.get("/dev/messages/wait?to=carl@customer.example&timeout=30").await.unwrap();
    world.client.get("/dev/messages/wait?to=bob@customer.example&timeout=30").await.unwrap();
    assert_eq!(count_mails_to(&world, "bob@customer.example").await, 1);
    // The answer to the operator has the link, but only the first time.
    let account = call(&world, ACCOUNT, "account/get", &json!({})).await["data"]["id"].clone();
    let request =
        json!({"email": "dora@customer.example", "account": account, "mail": false, "idempotency_key": "k3"});
    let first = call(&world, OPERATOR, "users/invite", &request).await;
    let again = call(&world, OPERATOR, "users/invite", &request).await;
    assert!(first["data"]["link"].is_string() && again["data"]["link"].is_null(), "{first} {again}");
    let log = call(&world, ACCOUNT, "account/audit", &json!({"operation": "users/invite"})).await;
    assert_eq!(log["data"]["items"].as_array().unwrap().len(), 3, "a repetition makes no entry: {log}");
    // After the invitation was revoked, a repetition cannot return it.
    let id = json!({ "id": first["data"]["id"], "account": account });
    assert_eq!(outcome(&call(&world, OPERATOR, "users/uninvite", &id).await), "success");
    assert_eq!(outcome(&call(&world, OPERATOR, "users/invite", &request).await), "InvitationNotFound");
}

async fn concurrent_invitations_with_one_idempotency_key_send_one_mail_with_a_link_that_works(world: World) {
    let request = json!({"email": "eve@customer.example", "idempotency_key": "at once"});
    let answers =
        futures_util::future::join_all((0..8).map(|_| call(&world, ACCOUNT, "users/invite", &request))).await;
    for answer in &answers {
        assert_eq!((outcome(answer), &answer["data"]), ("success", &answers[0]["data"]), "{answer}");
    }
    let firsts = answers.iter().filter(|answer| answer["flags"]["idempotent_replay"].is_null()).count();
    assert_eq!(firsts, 1, "{answers:?}");
    let log = call(&world, ACCOUNT, "account/audit", &json!({"operation": "users/invite"})).await;
    assert_eq!(log["data"]["items"].as_array().unwrap().len(), 1, "{log}");
    // A later mail shows that no second one came before it.
    call(&world, ACCOUNT, "users/invite", &json!({"email": "carl@customer.example"})).await;
    world.client.get("/dev/messages/wait?to=carl@customer.example&timeout=30").await.unwrap();
    let caught = world.client.get("/dev/messages/wait?to=eve@customer.example&timeout=30").await.unwrap();
    assert_eq!(count_mails_to(&world, "eve@customer.example").await, 1);
    let raw = world.client.get(&format!("/dev/messages/{}/raw", caught.json()["id"])).await.unwrap();
    let raw = raw.text().replace("=\r\n", "").replace("=3D", "=");
    let (_, link) = raw.split_once("/invitation?token=").expect("a link");
    let page = format!("/invitation?token={}", link.lines().next().unwrap());
    let opened = world.client.get(&page).await.unwrap();
    assert!(
        opened.status == 200 && opened.text().contains("eve@customer.example"),
        "{page}: {}",
        opened.text()
    );
}

async fn invitations_report_how_many_more_are_allowed(world: World) {
    let key = world.daemon.ready()["account_api_key"].as_str().unwrap().to_owned();
    let invite = async |header: &str, key: &str, body: &Value| {
        let body = body.to_string();
        let method = "POST".parse().unwrap();
        world.client.request(method, "/api/v1/users/invite", &[(header, key)], body.into()).await.unwrap()
    };
    for number in 0..6 {
        let reply = invite(ACCOUNT, &key, &json!({"email": "bob@customer.example"})).await;
        let is_refused = number == 5;
        assert_eq!(outcome(&envelope(&reply)) == "ValidationError", is_refused, "{}", reply.text());
        let header = |name: &str| reply.header(&format!("ratelimit-{name}")).unwrap().parse::<u64>().unwrap();
        let left = 4_u64.saturating_sub(number);
        assert_eq!((header("limit"), header("remaining")), (5, left), "{number}");
        assert!((1..=900).contains(&header("reset")), "{}", header("reset"));
    }
    // Invitations by the operator are not limited.
    let account = call(&world, ACCOUNT, "account/get", &json!({})).await["data"]["id"].clone();
    let operator = world.daemon.ready()["operator_api_key"].as_str().unwrap().to_owned();
    let request = json!({"account": account, "email": "bob@customer.example"});
    let reply = invite(OPERATOR, &operator, &request).await;
    assert_eq!((outcome(&envelope(&reply)), reply.header("ratelimit-limit")), ("success", None));
}

async fn an_invitation_does_not_reveal_people_of_another_account(world: World) {
    let other =
        call(&world, OPERATOR, "accounts/create", &json!({"name": "other"})).await["data"]["id"].clone();
    let key = call(&world, OPERATOR, "account_keys/create", &json!({"account": other, "name": "k"})).await;
    let key = (ACCOUNT, key["data"]["api_key"].as_str().unwrap());
    // dev@example.test is a person of the account `dev`, nobody@example.test is unknown.
    let mut answers = Vec::new();
    for email in ["dev@example.test", "nobody@example.test"] {
        let answer = call_with(&world, key, "users/invite", &json!({ "email": email })).await;
        let mut data = answer["data"].as_object().unwrap().clone();
        for own in ["id", "email", "created_at", "expires_at"] {
            assert!(data.remove(own).is_some(), "{answer}");
        }
        answers.push((answer["status"].clone(), answer["flags"].clone(), data));
        // Both addresses get the mail.
        let path = format!("/dev/messages/wait?to={email}&timeout=30");
        assert_eq!(world.client.get(&path).await.unwrap().json()["subject"], "Invitation");
    }
    assert_eq!(answers[0], answers[1]);
    let by_hand = json!({"email": "dev@example.test", "mail": false});
    let refused = call_with(&world, key, "users/invite", &by_hand).await;
    assert_eq!(refused["data"]["errors"][0]["pointer"], "/mail", "{refused}");
}

async fn people_are_listed_by_email_address_and_role(world: World) {
    for (name, role) in [("anna", "admin"), ("bob", "member"), ("carl", "member")] {
        let email = format!("{name}@customer.example");
        world.admin(&["user", "create", &email, "--account", "dev", "--role", role]);
    }
    world.admin(&["account", "create", "other"]);
    world.admin(&["user", "create", "eve@customer.example", "--account", "other"]);
    let listed = async |header: &str, filter: Value| {
        let found = call(&world, header, "users/list", &filter).await;
        let items = found["data"]["items"].as_array().unwrap_or_else(|| panic!("{found}")).clone();
        items.iter().map(|item| item["email"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let members = ["bob@customer.example", "carl@customer.example"];
    assert_eq!(listed(ACCOUNT, json!({"role": "member"})).await, members);
    assert_eq!(listed(ACCOUNT, json!({"email": "ANNA@customer.example"})).await, ["anna@customer.example"]);
    assert!(listed(ACCOUNT, json!({"email": "anna@customer.example", "role": "member"})).await.is_empty());
    assert!(listed(ACCOUNT, json!({"email": "eve@customer.example"})).await.is_empty(), "another account's");
    assert_eq!(listed(OPERATOR, json!({"email": "eve@customer.example"})).await, ["eve@customer.example"]);
    assert_eq!(listed(OPERATOR, json!({"role": "member"})).await.len(), 3);
    let wrong = call(&world, ACCOUNT, "users/list", &json!({"email": "no address"})).await;
    assert_eq!(wrong["data"]["errors"][0]["pointer"], "/email", "{wrong}");
}

async fn the_command_line_invites_people(world: World) {
    let invite = ["user", "invite", "Bob@customer.example", "--account", "dev", "--role", "admin"];
    let invited = world.admin(&invite);
    assert_eq!((&invited["email"], &invited["role"]), (&json!("bob@customer.example"), &json!("admin")));
    let url = world.daemon.ready()["url"].as_str().unwrap();
    assert!(invited["link"].as_str().unwrap().starts_with(&format!("{url}/invitation?token=")), "{invited}");
    let caught = world.client.get("/dev/messages/wait?to=bob@customer.example&timeout=30").await.unwrap();
    assert_eq!(caught.json()["subject"], "Invitation");
    let by_hand = world.admin(&["user", "invite", "carl@customer.example", "--account", "dev", "--no-mail"]);
    assert!(by_hand["link"].is_string());
    let open = world.admin(&["user", "invitations", "--account", "dev"]);
    let emails: Vec<&Value> = open.as_array().unwrap().iter().map(|one| &one["email"]).collect();
    assert_eq!(emails, ["bob@customer.example", "carl@customer.example"]);
    assert!(!open.to_string().contains("token"), "{open}");
    world.admin(&["user", "uninvite", "BOB@customer.example", "--account", "dev"]);
    assert_eq!(world.admin(&["user", "invitations", "--account", "dev"]).as_array().unwrap().len(), 1);
    let (success, _, err) =
        world.admin_output(&["user", "uninvite", "bob@customer.example", "--account", "dev"]);
    assert!(!success && err.contains("is not invited"), "{err}");
    // The person of `dev` has no session until its sign-in link is opened.
    assert_eq!(world.admin(&["user", "sessions", "dev@example.test"]), json!([]));
    let link = world.daemon.ready()["sign_in_url"].as_str().unwrap().to_owned();
    let path = link.strip_prefix(url).expect("a page of the portal");
    world.client.get(path).await.expect("the portal answers");
    let sessions = world.admin(&["user", "sessions", "dev@example.test"]);
    assert_eq!((sessions.as_array().unwrap().len(), &sessions[0]["address"]), (1, &json!("127.0.0.1")));
    let id = sessions[0]["id"].to_string();
    let ended = world.admin(&["user", "sign-out", "dev@example.test", "--session", id.trim_matches('"')]);
    assert_eq!(ended["sessions_ended"], 1);
    assert_eq!(world.admin(&["user", "sessions", "dev@example.test"]), json!([]));
    let (success, _, err) = world.admin_output(&["user", "sign-out", "dev@example.test", "--session", "1"]);
    assert!(!success && err.contains("session"), "{err}");
}

async fn people_are_invited_by_mail_changed_and_removed(world: World) {
    let request = json!({"email": "Bob@Customer.example", "role": "admin"});
    let invited = call(&world, ACCOUNT, "users/invite", &request).await;
    assert_eq!(outcome(&invited), "success", "{invited}");
    assert_eq!(
        (&invited["data"]["email"], &invited["data"]["role"]),
        (&json!("bob@customer.example"), &json!("admin"))
    );
    assert!(invited["data"]["link"].is_null(), "the link is for the address alone: {invited}");
    // The mail is delivered like any other, here into the inbox.
    let caught = world.client.get("/dev/messages/wait?to=bob@customer.example&timeout=30").await.unwrap();
    assert_eq!(caught.json()["subject"], "Invitation");
    let raw = world.client.get(&format!("/dev/messages/{}/raw", caught.json()["id"])).await.unwrap();
    let raw = raw.text().replace("=\r\n", "").replace("=3D", "=");
    let link = format!("{}/invitation?token=", world.daemon.ready()["url"].as_str().unwrap());
    assert!(raw.contains(&link) && raw.contains("DKIM-Signature:"), "{raw}");
    assert!(raw.contains("Auto-Submitted: auto-generated"), "{raw}");
    let open = call(&world, ACCOUNT, "users/invitations", &json!({})).await;
    assert_eq!(open["data"]["items"].as_array().unwrap().len(), 1);
    for (filter, count) in [
        (json!({"email": "BOB@customer.example", "role": "admin"}), 1),
        (json!({"email": "bobby@customer.example"}), 0),
        (json!({"role": "owner"}), 0),
    ] {
        let found = call(&world, ACCOUNT, "users/invitations", &filter).await;
        assert_eq!(found["data"]["items"].as_array().map(Vec::len), Some(count), "{filter}: {found}");
    }
    assert!(!open.to_string().contains("token"), "{open}");

    // The people of the account: the one that `dev` made, and one made at the command line.
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
    assert_eq!(outcome(&call(&world, ACCOUNT, "users/update", &late).await), "VersionConflict");
    let promote = json!({"id": carl, "operator": true});
    assert_eq!(outcome(&call(&world, ACCOUNT, "users/update", &promote).await), "ValidationError");
    assert_eq!(
        outcome(&call(&world, ACCOUNT, "users/remove", &json!({ "id": dev })).await),
        "ValidationError"
    );
    assert_eq!(
        outcome(&call(&world, OPERATOR, "users/update", &json!({"id": dev, "role": "member"})).await),
        "LastOwner"
    );
    assert_eq!(outcome(&call(&world, ACCOUNT, "users/sessions", &json!({ "id": carl })).await), "success");
    let gone = json!({"id": carl, "session": 99});
    assert_eq!(outcome(&call(&world, ACCOUNT, "users/revoke_session", &gone).await), "SessionNotFound");

    // Another account sees none of these people.
    let other =
        call(&world, OPERATOR, "accounts/create", &json!({"name": "other"})).await["data"]["id"].clone();
    let key = call(&world, OPERATOR, "account_keys/create", &json!({"account": other, "name": "k"})).await;
    let other = (ACCOUNT, key["data"]["api_key"].as_str().unwrap());
    assert_eq!(call_with(&world, other, "users/list", &json!({})).await["data"]["items"], json!([]));
    for name in ["users/update", "users/remove", "users/sessions", "users/revoke_session"] {
        let foreign = call_with(&world, other, name, &json!({ "id": carl })).await;
        let unknown = call_with(&world, other, name, &json!({ "id": 999_999 })).await;
        assert_eq!((outcome(&foreign), &foreign["data"]), ("UserNotFound", &unknown["data"]), "{name}");
    }
    let invitation = json!({"id": invited["data"]["id"]});
    assert_eq!(outcome(&call_with(&world, other, "users/uninvite", &invitation).await), "InvitationNotFound");

    assert_eq!(outcome(&call(&world, ACCOUNT, "users/uninvite", &invitation).await), "success");
    assert_eq!(outcome(&call(&world, ACCOUNT, "users/remove", &json!({ "id": carl })).await), "success");
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
    // Only the service's user may read the key that seals secrets.
    let key = world.data_dir().join("secrets.key");
    assert_eq!(key.metadata().expect("made at the first start").permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_symbolic_link_to_a_missing_key_file_is_not_replaced_by_a_new_key() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let key = data.join("secrets.key");
    std::os::unix::fs::symlink(folder.path().join("not mounted"), &key).expect("a link");
    let ports = ["--http-port", "--smtp-port", "--smtps-port", "--bounce-port"].map(|port| [port, "0"]);
    let mut command = std::process::Command::new(program());
    let output = command.args(["dev", "--json", "--data-dir"]).arg(&data).args(ports.as_flattened()).output();
    let output = output.expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("secrets.key"), "{output:?}");
    assert!(key.is_symlink(), "the link is kept");
}
