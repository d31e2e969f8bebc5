//! Calls all endpoints of the OpenAPI document: with numbers out of range, and with keys of each scope.

use std::collections::BTreeSet;

use postroad_app::access::{Actor, Denial, Operation, Subject, permit};
use postroad_model::{AccountId, AccountKeyId, AccountScope, CredentialId, Scope, ServerId};
use serde_json::{Map, Value, json};

use crate::accounts::{ACCOUNT, Customer, OPERATOR, SERVER, call_ok, create_customer, ready_field};
use crate::world::{World, both_engines, checked_envelope};

/// A number beyond 64 bits.
const HUGE: &str = "99999999999999999999";

/// An endpoint: name, fields, an example of its request, and the names of the keys that it takes.
struct Endpoint {
    name: String,
    fields: Map<String, Value>,
    example: Map<String, Value>,
    takes: BTreeSet<String>,
}

async fn endpoints(world: &World) -> Vec<Endpoint> {
    let document = world.client.get("/api/v1/openapi.json").await.unwrap().json();
    let read = |(path, methods): (&String, &Value)| {
        let operation = &methods["post"];
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let schema = schema["$ref"].as_str().and_then(|reference| document.pointer(&reference[1..]));
        let object = |name: &str| schema.and_then(|schema| schema[name].as_object().cloned());
        let ways = operation["security"].as_array().unwrap();
        Endpoint {
            name: path.strip_prefix("/api/v1/").expect("a path of the API").to_owned(),
            fields: object("properties").unwrap_or_default(),
            example: object("example").unwrap_or_default(),
            takes: ways.iter().flat_map(|way| way.as_object().unwrap().keys().cloned()).collect(),
        }
    };
    document["paths"].as_object().unwrap().iter().map(read).collect()
}

async fn call_with_text(world: &World, key: (&str, &str), name: &str, body: String) -> Value {
    let (path, method) = (format!("/api/v1/{name}"), "POST".parse().unwrap());
    checked_envelope(&world.client.request(method, &path, &[key], body.into()).await.unwrap())
}

both_engines!(
    numbers_out_of_range_are_refused_with_the_name_of_their_field,
    each_scope_may_call_what_the_permission_table_says
);

async fn numbers_out_of_range_are_refused_with_the_name_of_their_field(world: World) {
    let one = create_customer(&world, "one").await;
    let mut calls = 0;
    for endpoint in endpoints(&world).await {
        let key = match &endpoint.takes {
            takes if takes.contains("operator_api_key") => {
                (OPERATOR, ready_field(&world, "operator_api_key"))
            }
            takes if takes.contains("account_api_key") => (ACCOUNT, one.key.as_str()),
            _ => (SERVER, one.server_keys[0].as_str()),
        };
        for (field, schema) in &endpoint.fields {
            let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
            if !kinds.contains(&json!("integer")) {
                continue;
            }
            let mut body = endpoint.example.clone();
            // Naming an object in several ways at once would be refused.
            for other in ["id", "ids", "alias", "address", "batch_id", "query", "dry_run"] {
                if ["id", "batch_id"].contains(&field.as_str()) {
                    body.remove(other);
                }
            }
            if field == "attempt_id" {
                body.remove("event_id");
                body.remove("since");
            }
            if let Some(wait) = body.get_mut("wait_s") {
                *wait = json!(0);
            }
            body.insert(field.clone(), json!("…"));
            let text = Value::Object(body).to_string().replace("\"…\"", HUGE);
            let answer = call_with_text(&world, key, &endpoint.name, text).await;
            let code = answer["data"]["code"].as_str().unwrap_or("success");
            let is_named = answer["data"]["errors"].as_array().into_iter().flatten().any(|error| {
                error["pointer"].as_str().is_some_and(|pointer| pointer.ends_with(&format!("/{field}")))
            });
            // A filter by an object that cannot exist matches nothing.
            let data = &answer["data"];
            let is_empty = code == "success" && (data["items"] == json!([]) || data["matched"] == json!(0));
            assert!(
                (code == "ValidationError" && is_named) || code.ends_with("NotFound") || is_empty,
                "{} {field}: {answer}",
                endpoint.name
            );
            calls += 1;
        }
    }
    assert!(calls > 60, "{calls}");
}

/// A key with its actor, and the name of its kind in the document.
struct ActorKey {
    header: &'static str,
    key: String,
    takes: &'static str,
    actor: Actor,
}

async fn actor_keys(world: &World, one: &Customer) -> Vec<ActorKey> {
    let operator = (OPERATOR, ready_field(world, "operator_api_key"));
    let account_id = AccountId(one.id.as_i64().unwrap());
    let mut actor_keys = Vec::new();
    let groups: BTreeSet<&str> = Operation::ALL.iter().map(|operation| operation.group()).collect();
    let mut scopes: Vec<String> = vec!["full".to_owned(), "read".to_owned()];
    for group in groups {
        scopes.extend(
            [group.to_owned(), format!("{group}:read")]
                .into_iter()
                .filter(|scope| scope.parse::<AccountScope>().is_ok()),
        );
    }
    for text in scopes {
        let scope: AccountScope = text.parse().unwrap();
        let body = json!({"account": one.id, "name": text, "scopes": [text]});
        let made = call_ok(world, operator, "account_keys/create", &body).await;
        let (id, scopes) = (AccountKeyId(made["id"].as_i64().unwrap()), vec![scope]);
        actor_keys.push(ActorKey {
            header: ACCOUNT,
            key: made["api_key"].as_str().unwrap().to_owned(),
            takes: "account_api_key",
            actor: Actor::AccountKey { id, account_id, scopes: scopes.clone() },
        });
        let made = world.admin(&["operator-key", "create", "--name", &text, "--scope", &text]);
        actor_keys.push(ActorKey {
            header: OPERATOR,
            key: made["api_key"].as_str().unwrap().to_owned(),
            takes: "operator_api_key",
            actor: Actor::OperatorKey { id, scopes },
        });
    }
    let server_id = ServerId(one.servers[0].as_i64().unwrap());
    for (scope, test) in
        [(Scope::Full, false), (Scope::Full, true), (Scope::Send, false), (Scope::Read, false)]
    {
        let body = json!({"server": server_id, "name": "x", "scope": scope.as_str(), "test": test});
        let made = call_ok(world, (ACCOUNT, &one.key), "credentials/create", &body).await;
        actor_keys.push(ActorKey {
            header: SERVER,
            key: made["api_key"].as_str().unwrap().to_owned(),
            takes: "server_api_key",
            actor: Actor::ServerKey { id: CredentialId(1), server_id, scope, test },
        });
    }
    actor_keys
}

async fn each_scope_may_call_what_the_permission_table_says(world: World) {
    let one = create_customer(&world, "one").await;
    let endpoints = endpoints(&world).await;
    let mut calls = 0;
    for ActorKey { header, key, takes, actor } in actor_keys(&world, &one).await {
        for endpoint in &endpoints {
            let operation = Operation::ALL.iter().find(|operation| operation.name() == endpoint.name);
            let operation = *operation.unwrap_or_else(|| panic!("{} is in the table", endpoint.name));
            // Endpoints that take only server keys answer that the key is missing, not that access is denied.
            if takes != "server_api_key"
                && endpoint.takes.len() == 1
                && endpoint.takes.contains("server_api_key")
            {
                continue;
            }
            // The kind and scopes of a key are checked first; these requests would change nothing anyway.
            let answer = call_with_text(&world, (header, &key), &endpoint.name, "[]".to_owned()).await;
            // A key that may make the call gets "not found" for an absent object.
            let denied = permit(&actor, operation, Subject::Absent) != Err(Denial::NotFound);
            let what = format!("{actor:?} {}: {answer}", endpoint.name);
            assert_eq!(answer["data"]["code"] == "AccessDenied", denied, "{what}");
            if !denied {
                assert_eq!(answer["status"], "parameter-error", "{what}");
            }
            calls += 1;
        }
    }
    assert!(calls > 1_000, "{calls}");
}
