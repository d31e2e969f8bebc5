//! Domains managed with keys of an account and of the operator.

use serde_json::{Value, json};

use super::{publish, start};
use crate::accounts::{
    ACCOUNT, Key, OPERATOR, SERVER, call, call_ok, create_customer, error_code, ready_field,
};
use crate::world::{Engine, World, both_engines};

async fn names(world: &World, key: Key<'_>, body: &Value) -> Vec<String> {
    let listed = call_ok(world, key, "domains/list", body).await;
    let items = listed["items"].as_array().unwrap();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

both_engines!(
    an_account_manages_its_domains_and_those_of_its_servers,
    the_operator_names_the_account_of_a_domain,
    keys_of_another_account_or_server_see_and_change_no_domain
);

async fn an_account_manages_its_domains_and_those_of_its_servers(engine: Engine) {
    let (world, dns) = start(engine);
    let acme = create_customer(&world, "acme").await;
    let account_key = (ACCOUNT, acme.key.as_str());
    let shop = &acme.servers[0];
    let of_account = call_ok(&world, account_key, "domains/create", &json!({"name": "acme.example"})).await;
    assert_eq!(
        (&of_account["owner"], &of_account["server"], &of_account["account"]),
        (&json!("account"), &json!(null), &acme.id)
    );
    let of_server =
        call_ok(&world, account_key, "domains/create", &json!({"name": "shop.example", "server": shop}))
            .await;
    assert_eq!((&of_server["owner"], &of_server["server"]), (&json!("server"), shop));
    assert_eq!(names(&world, account_key, &json!({})).await, ["acme.example", "shop.example"]);
    assert_eq!(names(&world, account_key, &json!({"server": acme.servers[1]})).await, ["acme.example"]);
    let of_shop = (SERVER, acme.server_keys[0].as_str());
    assert_eq!(names(&world, of_shop, &json!({})).await, ["acme.example", "shop.example"]);

    publish(&dns, &of_account);
    let verified = call_ok(&world, account_key, "domains/verify", &json!({"name": "acme.example"})).await;
    assert_eq!(verified["verified"], true, "{verified:#}");
    for (filter, found) in [
        (json!({"verified": true}), vec!["acme.example"]),
        (json!({"verified": false}), vec!["shop.example"]),
        (json!({"name": "Shop.example."}), vec!["shop.example"]),
        (json!({"name": "shop.example", "verified": true}), vec![]),
        (json!({"name": "acme.example", "server": shop}), vec!["acme.example"]),
    ] {
        assert_eq!(names(&world, account_key, &filter).await, found, "{filter}");
    }
    let (operator, filter) = (ready_field(&world, "operator_api_key"), json!({"name": "shop.example"}));
    assert_eq!(names(&world, (OPERATOR, operator), &filter).await, ["shop.example"]);
    assert_eq!(
        error_code(&world, account_key, "domains/list", &json!({"name": "no domain"})).await,
        "ValidationError"
    );
    let zone =
        call_ok(&world, account_key, "domains/zone", &json!({"name": "shop.example", "server": shop})).await;
    assert!(zone["zone"].as_str().unwrap().contains("_domainkey.shop.example"), "{zone}");
    let rotated = call_ok(&world, account_key, "domains/rotate_dkim", &json!({"name": "acme.example"})).await;
    assert_eq!(rotated["dkim"][1]["state"], "pending");
    let reports = call_ok(&world, account_key, "domains/reports", &json!({"name": "acme.example"})).await;
    assert_eq!(reports["dmarc"]["reports"], 0);
    // A call that names a server sees all domains that the server may use, and changes only the server's own.
    let via_server = json!({"name": "acme.example", "server": shop});
    assert_eq!(call_ok(&world, account_key, "domains/get", &via_server).await["owner"], "account");
    for action in ["delete", "rotate_dkim"] {
        assert_eq!(
            error_code(&world, account_key, &format!("domains/{action}"), &via_server).await,
            "AccessDenied"
        );
    }
    assert_eq!(
        error_code(&world, account_key, "domains/get", &json!({"name": "shop.example"})).await,
        "DomainNotFound"
    );
    call_ok(&world, account_key, "domains/delete", &json!({"name": "shop.example", "server": shop})).await;
    call_ok(&world, account_key, "domains/delete", &json!({"name": "acme.example"})).await;
    assert!(names(&world, account_key, &json!({})).await.is_empty());
    // One entry for each creation, rotation and deletion; verifying writes none.
    let audit = call_ok(&world, account_key, "account/audit", &json!({"limit": 500})).await;
    let of_domains: Vec<&str> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["operation"].as_str())
        .filter(|name| name.starts_with("domains/"))
        .collect();
    assert_eq!(of_domains.len(), 5, "{of_domains:?}");
}

async fn the_operator_names_the_account_of_a_domain(engine: Engine) {
    let (world, _dns) = start(engine);
    let acme = create_customer(&world, "acme").await;
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let missing = call(&world, operator, "domains/create", &json!({"name": "acme.example"})).await;
    assert_eq!(missing["data"]["errors"][0]["pointer"], "/account", "{missing}");
    let create = json!({"name": "acme.example", "account": acme.id, "idempotency_key": "one"});
    let made = call_ok(&world, operator, "domains/create", &create).await;
    let again = call(&world, operator, "domains/create", &create).await;
    assert_eq!((&again["data"], &again["flags"]["idempotent_replay"]), (&made, &json!(true)));
    let other = json!({"name": "other.example", "account": acme.id, "idempotency_key": "one"});
    assert_eq!(error_code(&world, operator, "domains/create", &other).await, "IdempotencyConflict");
    let all = names(&world, operator, &json!({})).await;
    assert!(all.contains(&"acme.example".to_owned()) && all.contains(&"example.test".to_owned()), "{all:?}");
    assert_eq!(names(&world, operator, &json!({"account": acme.id})).await, ["acme.example"]);
    call_ok(&world, operator, "domains/delete", &json!({"name": "acme.example", "account": acme.id})).await;
}

async fn keys_of_another_account_or_server_see_and_change_no_domain(engine: Engine) {
    let (world, _dns) = start(engine);
    let (acme, rival) = (create_customer(&world, "acme").await, create_customer(&world, "rival").await);
    let account_key = (ACCOUNT, acme.key.as_str());
    let server = &acme.servers[0];
    call_ok(&world, account_key, "domains/create", &json!({"name": "acme.example"})).await;
    call_ok(&world, account_key, "domains/create", &json!({"name": "shop.example", "server": server})).await;
    let before = call_ok(&world, account_key, "domains/list", &json!({})).await;
    let strangers = [
        (ACCOUNT, rival.key.as_str()),
        (SERVER, rival.server_keys[0].as_str()),
        (SERVER, acme.server_keys[1].as_str()),
    ];
    for key in strangers {
        for (body, expected) in [
            (json!({"name": "acme.example", "account": acme.id}), "AccountNotFound"),
            (json!({"name": "shop.example", "server": server}), "ServerNotFound"),
        ] {
            for action in ["create", "get", "verify", "rotate_dkim", "delete", "zone", "reports"] {
                let what = format!("domains/{action}");
                assert_eq!(error_code(&world, key, &what, &body).await, expected, "{key:?} {what} {body}");
                // The answer is as if the object did not exist.
                let mut unknown = body.clone();
                for field in ["account", "server"] {
                    if unknown.get(field).is_some() {
                        unknown[field] = json!(999_999);
                    }
                }
                assert_eq!(
                    error_code(&world, key, &what, &unknown).await,
                    expected,
                    "{key:?} {what} {unknown}"
                );
            }
            let mut listed = body.clone();
            listed.as_object_mut().unwrap().remove("name");
            assert_eq!(error_code(&world, key, "domains/list", &listed).await, expected);
        }
    }
    for name in ["acme.example", "shop.example"] {
        let body = json!({ "name": name });
        assert_eq!(error_code(&world, (ACCOUNT, &rival.key), "domains/get", &body).await, "DomainNotFound");
    }
    assert!(names(&world, (ACCOUNT, &rival.key), &json!({})).await.is_empty());
    assert_eq!(call_ok(&world, account_key, "domains/list", &json!({})).await, before);
    let read = json!({"account": acme.id, "name": "look", "scopes": ["read"]});
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let reader = call_ok(&world, operator, "account_keys/create", &read).await;
    let reader = (ACCOUNT, reader["api_key"].as_str().unwrap());
    assert_eq!(names(&world, reader, &json!({})).await.len(), 2);
    assert_eq!(
        error_code(&world, reader, "domains/verify", &json!({"name": "acme.example"})).await,
        "AccessDenied"
    );
}
