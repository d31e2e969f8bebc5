//! Calls of suppressions/*: one address or many, pages, errors, and scopes.

use serde_json::{Value, json};

use super::{ADD, EXPORT, GET, IMPORT, LIST, REMOVE, add, call_ok, list_addresses};
use crate::errors::assert_invalid;
use crate::world::{World, both_engines};

fn column<'a>(results: &'a Value, name: &str) -> Vec<&'a Value> {
    results.as_array().unwrap().iter().map(|result| &result[name]).collect()
}

both_engines!(
    an_address_is_added_found_and_removed_in_any_spelling,
    a_call_with_many_addresses_has_a_result_for_each,
    a_call_takes_at_most_a_thousand_addresses,
    lists_are_newest_first_and_filtered,
    invalid_requests_are_reported_by_field_and_change_nothing,
    a_key_sees_only_suppressions_of_its_server_and_read_keys_change_nothing
);

async fn an_address_is_added_found_and_removed_in_any_spelling(world: World) {
    let added = call_ok(
        &world,
        ADD,
        &json!({
            "address": " Ann@Bücher.Example ", "reason": "complaint", "details": "by\r\n phone",
            "origin_message_id": 17, "expires_at": "2099-01-31T12:00:00+01:00",
        }),
    )
    .await;
    assert_eq!(added["status"], "added");
    let found = call_ok(&world, GET, &json!({"address": "ANN@xn--bcher-kva.example"})).await;
    let created_at = found["created_at"].clone();
    assert!(created_at.as_str().unwrap().ends_with('Z'), "{found}");
    assert_eq!(
        found,
        json!({
            "address": "ann@xn--bcher-kva.example", "reason": "complaint", "details": "by phone",
            "origin_message_id": 17, "created_at": created_at, "updated_at": created_at,
            "expires_at": "2099-01-31T11:00:00Z",
        })
    );
    // A suppression that would end earlier changes nothing; one that lasts longer replaces it.
    let again =
        call_ok(&world, ADD, &json!({"address": "ann@bücher.example", "expires_at": "2098-01-01T00:00:00Z"}))
            .await;
    assert_eq!((&again["status"], &again["reason"]), (&json!("exists"), &json!("complaint")));
    let longer = add(&world, "ann@bücher.example").await;
    assert_eq!(
        (&longer["status"], &longer["reason"], &longer["expires_at"]),
        (&json!("added"), &json!("manual"), &Value::Null)
    );
    let removed = call_ok(&world, REMOVE, &json!({"address": "aNN@BÜCHER.example"})).await;
    assert_eq!(removed, json!({"status": "removed", "address": "aNN@BÜCHER.example"}));
    for path in [GET, REMOVE] {
        let answer = world.call(path, &json!({"address": "ann@bücher.example"})).await;
        assert_eq!(answer["status"], "error");
        assert_eq!(
            answer["data"],
            json!({"code": "SuppressionNotFound", "message": "The address is not suppressed"})
        );
    }
}

async fn a_call_with_many_addresses_has_a_result_for_each(world: World) {
    add(&world, "old@example.com").await;
    let data = call_ok(
        &world,
        ADD,
        &json!({"items": [
            {"address": "a@example.com"},
            {"address": "old@EXAMPLE.com", "reason": "complaint"},
            {"address": "nobody", "reason": "because"},
            {"reason": "manual"},
            "b@example.com",
            {"address": "A@example.com"},
            {"address": "b@example.com", "origin_message_id": "x"},
            {"address": "c@example.com", "reason": "soft_bounce", "odd": 1},
        ]}),
    )
    .await;
    assert_eq!((&data["added"], &data["exists"], &data["failed"]), (&json!(2), &json!(2), &json!(4)));
    let results = &data["results"];
    assert_eq!(column(results, "index"), (0..8).collect::<Vec<_>>());
    let expected = ["added", "exists", "error", "error", "error", "exists", "error", "added"];
    assert_eq!(column(results, "status"), expected);
    assert_eq!(results[1]["reason"], "manual", "the older suppression stays");
    assert_eq!(results[7]["address"], "c@example.com");
    let wrong = &results[2]["error"];
    assert_eq!(wrong["code"], "ValidationError");
    assert_eq!(column(&wrong["errors"], "pointer"), ["/items/2/address", "/items/2/reason"]);
    assert_eq!(wrong["message"], wrong["errors"][0]["message"]);
    assert_eq!(results[3]["error"]["message"], "`items/3/address` parameter is required but is missing");
    assert_eq!(results[4]["error"]["message"], "`items/4` should be a `Object` but is a `String`");
    assert_eq!(results[6]["error"]["errors"][0]["pointer"], "/items/6/origin_message_id");
    let mut all = list_addresses(&world).await;
    all.sort_unstable();
    assert_eq!(all, ["a@example.com", "c@example.com", "old@example.com"]);
    let data = call_ok(&world, REMOVE, &json!({"items": [
            {"address": "A@example.com"}, {"address": "x@example.com"}, {"address": "x"}, {"address": "c@example.com"},
        ]})).await;
    assert_eq!((&data["removed"], &data["not_found"], &data["failed"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!(column(&data["results"], "status"), ["removed", "not_found", "error", "removed"]);
    assert_eq!(data["results"][2]["error"]["errors"][0]["pointer"], "/items/2/address");
    assert_eq!(list_addresses(&world).await, ["old@example.com"]);
}

async fn a_call_takes_at_most_a_thousand_addresses(world: World) {
    let items: Vec<Value> = (0..1_001).map(|n| json!({"address": format!("u{n}@example.com")})).collect();
    assert_invalid(
        &world.call(ADD, &json!({"items": items})).await,
        &[("/items", "`items` should have from 1 to 1000 objects")],
    );
    assert_eq!(list_addresses(&world).await, [""; 0]);
    let data = call_ok(&world, ADD, &json!({"items": items[..1_000]})).await;
    assert_eq!((&data["added"], data["results"].as_array().unwrap().len()), (&json!(1_000), 1_000));
    // The pages list each address once.
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = Value::Null;
    for page in 0..3 {
        let answer = world.call(LIST, &json!({"limit": 400, "cursor": cursor})).await;
        let pagination = &answer["flags"]["pagination"];
        assert_eq!((&pagination["limit"], &pagination["has_more"]), (&json!(400), &json!(page < 2)));
        for item in answer["data"]["items"].as_array().unwrap() {
            assert!(seen.insert(item["address"].as_str().unwrap().to_owned()), "{item}");
        }
        cursor = pagination["next_cursor"].clone();
        assert_eq!(cursor.is_null(), page == 2);
    }
    assert_eq!(seen.len(), 1_000);
}

async fn lists_are_newest_first_and_filtered(world: World) {
    for (address, reason) in
        [("a@example.com", "manual"), ("b@example.com", "complaint"), ("c@example.com", "manual")]
    {
        call_ok(&world, ADD, &json!({"address": address, "reason": reason})).await;
    }
    assert_eq!(list_addresses(&world).await, ["c@example.com", "b@example.com", "a@example.com"]);
    let addresses = async |body: Value| {
        let data = call_ok(&world, LIST, &body).await;
        column(&data["items"], "address").into_iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(addresses(json!({"reason": "manual"})).await, ["c@example.com", "a@example.com"]);
    let second = call_ok(&world, GET, &json!({"address": "b@example.com"})).await["created_at"].clone();
    assert_eq!(addresses(json!({"since": second})).await, ["c@example.com", "b@example.com"]);
    assert_eq!(addresses(json!({"until": second})).await, ["a@example.com"]);
    assert_eq!(addresses(json!({"until": second, "reason": "complaint"})).await, [""; 0]);
    assert_invalid(
        &world
            .call(LIST, &json!({"reason": "x", "since": "today", "until": 1, "limit": 501, "cursor": "%"}))
            .await,
        &[
            ("/reason", "`reason` should be one of hard_bounce, complaint, manual, unsubscribe, soft_bounce"),
            ("/since", "`since` should be a time such as 2026-11-15T12:00:00Z (RFC 3339)"),
            ("/until", "`until` should be a `String` but is a `Integer`"),
            ("/limit", "`limit` should be from 1 to 500"),
            ("/cursor", "`cursor` is not the `next_cursor` of an earlier page of this list"),
        ],
    );
}

async fn invalid_requests_are_reported_by_field_and_change_nothing(world: World) {
    let missing = [("/address", "`address` parameter is required but is missing")];
    for path in [ADD, GET, REMOVE] {
        assert_invalid(&world.call(path, &json!({})).await, &missing);
        let answer = world.call(path, &json!({"address": "a@b@c"})).await;
        assert_eq!(
            (&answer["status"], &answer["data"]["errors"][0]["pointer"]),
            (&json!("parameter-error"), &json!("/address"))
        );
    }
    assert_invalid(
            &world.call(ADD, &json!({"address": "a@example.com", "expires_at": "2001-01-01T00:00:00Z", "origin_message_id": -1})).await,
            &[
                ("/origin_message_id", "`origin_message_id` is not the id of a message"),
                ("/expires_at", "`expires_at` is in the past"),
            ],
        );
    assert_invalid(
        &world.call(ADD, &json!({"items": "a@example.com"})).await,
        &[("/items", "`items` should be a `Array` but is a `String`")],
    );
    let both =
        world.call(ADD, &json!({"address": "a@example.com", "items": [{"address": "b@example.com"}]})).await;
    assert_eq!(both["flags"]["warnings"], json!(["Unknown field `address` was ignored"]));
    assert_eq!(list_addresses(&world).await, ["b@example.com"]);
}

async fn a_key_sees_only_suppressions_of_its_server_and_read_keys_change_nothing(world: World) {
    add(&world, "mine@example.com").await;
    world.admin(&["server", "create", "other", "--account", "dev"]);
    let other = world.admin(&["key", "create", "--server", "other"])["api_key"].as_str().unwrap().to_owned();
    let answer = world.call_as(&other, LIST, &json!({})).await;
    assert_eq!(answer["data"], json!({"items": []}));
    assert_eq!(answer["flags"]["pagination"], json!({"next_cursor": null, "has_more": false, "limit": 50}));
    let mine = json!({"address": "mine@example.com"});
    for path in [GET, REMOVE] {
        assert_eq!(world.call_as(&other, path, &mine).await["data"]["code"], "SuppressionNotFound");
    }
    let (_, read_key) = world.new_key(&["--scope", "read"]);
    let (_, send_key) = world.new_key(&["--scope", "send"]);
    for (path, may_read) in
        [(GET, true), (LIST, true), (EXPORT, true), (ADD, false), (REMOVE, false), (IMPORT, false)]
    {
        let answer = world.call_as(&read_key, path, &mine).await;
        assert_eq!(answer["data"]["code"] != "AccessDenied", may_read, "{path}: {answer}");
        assert_eq!(world.call_as(&send_key, path, &mine).await["data"]["code"], "AccessDenied", "{path}");
    }
    assert_eq!(list_addresses(&world).await, ["mine@example.com"]);
}
