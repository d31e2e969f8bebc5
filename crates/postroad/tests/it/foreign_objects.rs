//! Objects of another account that a request names besides its main object: templates of mail, events, sessions,
//! list cursors.

use serde_json::{Value, json};

use crate::account_isolation::{ABSENT, fill_account};
use crate::accounts::{ACCOUNT, Key, SERVER, call, call_ok, create_customer, ready_field};
use crate::signing_in::join;
use crate::world::{World, both_engines, good_but};

both_engines!(
    secondary_objects_of_other_accounts_are_as_if_they_did_not_exist,
    a_cursor_of_another_account_shows_nothing_of_it
);

/// Asserts that both calls get the same refusal, apart from the names of the two objects.
async fn assert_same_refusal(
    world: &World,
    key: Key<'_>,
    name: &str,
    bodies: [&Value; 2],
    object_names: [&str; 2],
) {
    let mut answers = Vec::new();
    for (body, object_name) in bodies.into_iter().zip(object_names) {
        let text = call(world, key, name, body).await["data"].to_string();
        answers.push(text.replace(&format!("`{object_name}`"), "`…`"));
    }
    assert_eq!(answers[0], answers[1], "{name}: {bodies:?}");
    let is_refused = answers[0].contains("NotFound") || answers[0].contains("ValidationError");
    assert!(is_refused, "{name}: {}", answers[0]);
}

async fn secondary_objects_of_other_accounts_are_as_if_they_did_not_exist(world: World) {
    let (one, zebra) = (create_customer(&world, "one").await, create_customer(&world, "zebra").await);
    let object_ids = fill_account(&world, &zebra).await;
    let (account, server) = ((ACCOUNT, one.key.as_str()), (SERVER, one.server_keys[0].as_str()));
    for action in ["create", "set-verified"] {
        world.admin(&["domain", action, "one.example", "--server", "one/shop"]);
    }
    let (template, _) = &object_ids[&("templates", "id")];
    let mail = |template: Value| {
        let mut mail = good_but(json!({"from": "shop@one.example", "template": template}));
        mail.as_object_mut().unwrap().remove("plain_body");
        mail
    };
    let absent_id = ABSENT.to_string();
    for (templates, named) in [
        ([json!({ "id": template }), json!({ "id": ABSENT })], [template.to_string(), absent_id.clone()]),
        ([json!({"alias": "zebra"}), json!({"alias": "horse"})], ["zebra".to_owned(), "horse".to_owned()]),
    ] {
        let (mails, named) = (templates.map(mail), [named[0].as_str(), named[1].as_str()]);
        assert_same_refusal(&world, server, "send/message", [&mails[0], &mails[1]], named).await;
        let batches = mails.map(|mail| json!({"messages": [mail], "mode": "atomic"}));
        assert_same_refusal(&world, server, "send/batch", [&batches[0], &batches[1]], named).await;
    }

    let webhook = json!({"url": "https://one.example/in", "events": "all"});
    let webhook = call_ok(&world, server, "webhooks/create", &webhook).await["id"].clone();
    let events = call_ok(&world, (SERVER, &zebra.server_keys[0]), "events/list", &json!({})).await;
    let event = events["items"][0]["id"].as_str().unwrap().to_owned();
    let replay = |event: &str| json!({"id": webhook, "event_id": event});
    let bodies = [&replay(&event), &replay("evt_999999")];
    assert_same_refusal(&world, server, "webhooks/replay", bodies, [&event, "evt_999999"]).await;

    // The session belongs to a person of another account; the request names it with a person of the caller's account.
    join(&world, "ann@example.com").await;
    let dev = (ACCOUNT, ready_field(&world, "account_api_key"));
    let people = call_ok(&world, dev, "users/list", &json!({"email": "ann@example.com"})).await;
    let sessions = call_ok(&world, dev, "users/sessions", &json!({"id": people["items"][0]["id"]})).await;
    let own = world.admin(&["user", "create", "olga@one.example", "--account", "one"])["id"].clone();
    let revoke = |session: &Value| json!({"id": own, "session": session});
    let foreign = &sessions["items"][0]["id"];
    let (foreign, named) = (revoke(foreign), foreign.to_string());
    let bodies = [&foreign, &revoke(&json!(ABSENT))];
    assert_same_refusal(&world, account, "users/revoke_session", bodies, [&named, &absent_id]).await;
    let after = call_ok(&world, dev, "users/sessions", &json!({"id": people["items"][0]["id"]})).await;
    assert_eq!(after["items"].as_array().unwrap().len(), sessions["items"].as_array().unwrap().len());
}

async fn a_cursor_of_another_account_shows_nothing_of_it(world: World) {
    let (one, zebra) = (create_customer(&world, "one").await, create_customer(&world, "zebra").await);
    fill_account(&world, &zebra).await;
    let zebra_account = (ACCOUNT, zebra.key.as_str());
    for number in 0..2 {
        call_ok(&world, zebra_account, "users/invite", &json!({"email": format!("z{number}@zebra.example")}))
            .await;
        call_ok(
            &world,
            zebra_account,
            "domains/create",
            &json!({"name": format!("z{number}.zebra.example")}),
        )
        .await;
        let server = (SERVER, zebra.server_keys[0].as_str());
        call_ok(
            &world,
            server,
            "suppressions/add",
            &json!({"address": format!("zebra{number}@example.com")}),
        )
        .await;
    }
    let (of_account, of_server) = (
        ["servers/list", "credentials/list", "users/invitations", "domains/list", "account/audit"],
        ["messages/search", "suppressions/list", "events/list"],
    );
    let calls = of_account
        .iter()
        .map(|name| (ACCOUNT, &zebra.key, &one.key, *name))
        .chain(of_server.iter().map(|name| (SERVER, &zebra.server_keys[0], &one.server_keys[0], *name)));
    for (header, theirs, own, name) in calls {
        let field = if name == "events/list" { "since_cursor" } else { "cursor" };
        let page = call(&world, (header, theirs), name, &json!({"limit": 1})).await;
        let cursor = &page["flags"]["pagination"]["next_cursor"];
        assert!(cursor.is_string(), "{name}: {page}");
        let body = json!({"limit": 100, field: cursor});
        let own = call(&world, (header, own), name, &body).await;
        assert!(!own["data"].to_string().contains("zebra"), "{name}: {own}");
    }
}
