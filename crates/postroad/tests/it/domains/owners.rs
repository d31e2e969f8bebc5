//! Owners of domains, and who can see them.

use serde_json::json;

use super::{publish, start};
use crate::world::{Engine, both_engines, good_but};

both_engines!(
    an_accounts_domain_is_used_by_its_servers_and_seen_by_nobody_else,
    domains_are_listed_in_pages_and_scopes_are_enforced
);

async fn an_accounts_domain_is_used_by_its_servers_and_seen_by_nobody_else(engine: Engine) {
    let (world, dns) = start(engine);
    world.admin(&["server", "create", "second", "--account", "dev"]);
    world.admin(&["account", "create", "stranger"]);
    world.admin(&["server", "create", "foreign", "--account", "stranger"]);
    let created = world.admin(&["domain", "create", "acme.example", "--account", "dev"]);
    assert_eq!((&created["owner"], &created["account"]), (&json!("account"), &json!("dev")));
    publish(&dns, &created);
    let verified = world.admin(&["domain", "verify", "acme.example"]);
    assert_eq!(
        (&verified["verified"], &verified["verified_by"]),
        (&json!(true), &json!("dns")),
        "{verified:#}"
    );

    let key_of = |server: &str| {
        let made = world.admin(&["key", "create", "--server", server]);
        made["api_key"].as_str().unwrap().to_owned()
    };
    let (second, foreign) = (key_of("second"), key_of("foreign"));
    let name = json!({"name": "acme.example"});
    let body = good_but(json!({"from": "hello@acme.example", "to": ["ann@example.net"]}));
    for key in [&world.key, &second] {
        let got = world.call_as(key, "/api/v1/domains/get", &name).await;
        assert_eq!((&got["data"]["owner"], &got["data"]["verified"]), (&json!("account"), &json!(true)));
        assert_eq!(world.call_as(key, crate::world::SEND, &body).await["status"], "success");
        for action in ["delete", "rotate_dkim"] {
            let denied = world.call_as(key, &format!("/api/v1/domains/{action}"), &name).await;
            assert_eq!(denied["data"]["code"], "AccessDenied", "{denied}");
        }
    }
    for action in ["get", "verify", "delete", "rotate_dkim"] {
        let unknown = world.call_as(&foreign, &format!("/api/v1/domains/{action}"), &name).await;
        assert_eq!(unknown["data"]["code"], "DomainNotFound", "{action}: {unknown}");
    }
    let refused = world.call_as(&foreign, crate::world::SEND, &body).await;
    assert_eq!(refused["data"]["code"], "UnauthenticatedFromAddress");
    let listed = world.call_as(&foreign, "/api/v1/domains/list", &json!({})).await;
    assert_eq!(listed["data"]["items"], json!([]));
}

async fn domains_are_listed_in_pages_and_scopes_are_enforced(engine: Engine) {
    let (world, _dns) = start(engine);
    for number in 0..3 {
        world.domains("create", &json!({"name": format!("d{number}.example")})).await;
    }
    let first = world.call("/api/v1/domains/list", &json!({"limit": 3})).await;
    let names = |page: &serde_json::Value| -> Vec<String> {
        let items = page["data"]["items"].as_array().unwrap();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&first), ["example.test", "d0.example", "d1.example"]);
    let cursor = &first["flags"]["pagination"]["next_cursor"];
    let rest = world.call("/api/v1/domains/list", &json!({"limit": 3, "cursor": cursor})).await;
    assert_eq!(names(&rest), ["d2.example"]);
    assert_eq!(rest["flags"]["pagination"]["has_more"], false);

    let (_, read) = world.new_key(&["--scope", "read"]);
    let name = json!({"name": "d0.example"});
    assert_eq!(world.call_as(&read, "/api/v1/domains/get", &name).await["status"], "success");
    for action in ["create", "verify", "delete", "rotate_dkim"] {
        let denied = world.call_as(&read, &format!("/api/v1/domains/{action}"), &name).await;
        assert_eq!(denied["data"]["code"], "AccessDenied", "{action}");
    }
    assert_eq!(world.domains("delete", &name).await, json!({"name": "d0.example", "deleted": true}));
    assert_eq!(world.refused_domains("get", &name).await, "DomainNotFound");
    for bad in [json!({}), json!({"name": 7}), json!({"name": "no domain"})] {
        assert_eq!(world.refused_domains("create", &bad).await, "ValidationError", "{bad}");
    }
}
