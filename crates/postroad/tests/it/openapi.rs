//! Real answers of every endpoint, successes and errors, validated against the OpenAPI document.

use std::collections::BTreeSet;

use postroad_testkit::WebhookCatcher;
use serde_json::{Value, json};

use crate::scheduling::in_millis;
use crate::world::{Engine, World, good_but};

/// Checks answers against their schemas in the OpenAPI document.
struct Schemas {
    document: Value,
}

impl Schemas {
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => self.document.pointer(&reference[1..]).expect("references lead somewhere"),
            None => schema,
        }
    }

    /// Names of all properties that an object of this schema may have; `None` if it may have any.
    fn properties(&self, schema: &Value) -> Option<BTreeSet<String>> {
        let schema = self.resolve(schema);
        let mut names = BTreeSet::new();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            names.extend(self.properties(part)?);
        }
        let own = schema["properties"].as_object();
        if own.is_none() && schema["allOf"].is_null() {
            return None;
        }
        names.extend(own.into_iter().flat_map(|own| own.keys().cloned()));
        Some(names)
    }

    /// Adds what is wrong with `value` to `faults`; `at` is the value's JSON pointer in the answer.
    fn check(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        self.check_known(schema, value, at, faults);
        let names = self.properties(schema);
        let allows_other_properties = !self.resolve(schema)["additionalProperties"].is_null();
        if let (Some(names), Some(object), false) = (names, value.as_object(), allows_other_properties) {
            for name in object.keys().filter(|name| !names.contains(*name)) {
                faults.push(format!("{at}/{name} is not in the document"));
            }
        }
    }

    /// Checks all but unknown properties: a part of `allOf` does not know the properties of the other parts.
    fn check_known(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let schema = self.resolve(schema);
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.check_known(part, value, at, faults);
        }
        for any in ["oneOf", "anyOf"] {
            let Some(choices) = schema[any].as_array() else { continue };
            let outcomes: Vec<Vec<String>> = choices
                .iter()
                .map(|choice| {
                    let mut choice_faults = Vec::new();
                    self.check(choice, value, at, &mut choice_faults);
                    choice_faults
                })
                .collect();
            if !outcomes.iter().any(Vec::is_empty) {
                faults.push(format!("{at} fits none of its schemas: {outcomes:?}"));
            }
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !types.is_empty() && !types.iter().any(|name| has_type(name, value)) {
            faults.push(format!("{at} should be {types:?}: {value}"));
            return;
        }
        if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
            faults.push(format!("{at} should be one of {allowed:?}: {value}"));
        }
        if let Some(object) = value.as_object() {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !object.contains_key(name) {
                    faults.push(format!("{at}/{name} is missing"));
                }
            }
            for (name, value) in object {
                if let Some(property) = schema["properties"].get(name) {
                    self.check(property, value, &format!("{at}/{name}"), faults);
                } else if schema["additionalProperties"].is_object() {
                    self.check(&schema["additionalProperties"], value, &format!("{at}/{name}"), faults);
                }
            }
        }
        for (n, value) in value.as_array().into_iter().flatten().enumerate() {
            if schema["items"].is_object() {
                self.check(&schema["items"], value, &format!("{at}/{n}"), faults);
            }
        }
    }
}

fn has_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no JSON type: {other}"),
    }
}

/// A running service, the kinds of answers seen so far, and their faults.
struct AnswerChecker {
    world: World,
    schemas: Schemas,
    /// Paths with the statuses of their envelopes.
    seen: BTreeSet<(String, String)>,
    faults: Vec<String>,
}

impl AnswerChecker {
    async fn call(&mut self, path: &str, body: Value) -> Value {
        let key = self.world.key.clone();
        self.call_as(("X-Server-API-Key", &key), path, body).await
    }

    async fn call_as_operator(&mut self, path: &str, body: Value) -> Value {
        let key = self.world.daemon.ready()["operator_api_key"].as_str().unwrap().to_owned();
        self.call_as(("X-Operator-API-Key", &key), path, body).await
    }

    /// Calls, checks the answer against its schema in the document, and returns its `data`.
    async fn call_as(&mut self, key: (&str, &str), path: &str, body: Value) -> Value {
        let path = format!("/api/v1/{path}");
        let post = "POST".parse().unwrap();
        let reply = self.world.client.request(post, &path, &[key], body.to_string().into()).await.unwrap();
        let answer = reply.json();
        let response = &self.schemas.document["paths"][&path]["post"]["responses"][reply.status.to_string()];
        let schema = &response["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{path} has no schema for {}", reply.status);
        let mut faults = Vec::new();
        self.schemas.check(schema, &answer, "", &mut faults);
        self.faults.extend(faults.into_iter().map(|fault| format!("{path} with {body}: {fault}")));
        self.seen.insert((path, answer["status"].as_str().unwrap().to_owned()));
        answer["data"].clone()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_answers_of_every_endpoint_fit_their_schemas_in_the_openapi_document() {
    let world = World::start(Engine::Sqlite);
    let document = world.client.get("/api/v1/openapi.json").await.unwrap().json();
    let catcher = WebhookCatcher::start();
    let mut checker =
        AnswerChecker { world, schemas: Schemas { document }, seen: BTreeSet::new(), faults: Vec::new() };

    // Messages in several states.
    let html = "<a href=\"https://example.com/\">x</a>";
    let ids = {
        let mut ids = Vec::new();
        for who in ["delivered", "missing", "defer", "bounce-later", "open", "click"] {
            let address = format!("{who}@sim.postroad.test");
            let sent = good_but(json!({
                "to": [address], "html_body": html, "tag": "t", "metadata": {"k": "v"},
                "track": {"opens": true, "clicks": true},
                "attachments": [{"name": "a.txt", "data": "YQ==", "content_type": "text/plain"}],
            }));
            let sent = checker.call("send/message", sent).await;
            ids.push(sent["messages"][&address]["id"].as_i64().unwrap());
        }
        ids
    };
    checker.call("suppressions/add", json!({"address": "held@example.com", "details": "x"})).await;
    let held = checker.call("send/message", good_but(json!({"to": ["held@example.com"], "odd": 1}))).await;
    checker.world.until_status(ids[0], "Sent").await;
    checker.world.until_status(ids[1], "HardFail").await;
    checker.world.until_status(ids[3], "Bounced").await;
    let raw = json!({
        "mail_from": "a@example.test", "rcpt_to": ["delivered@sim.postroad.test"],
        "data": "RnJvbTogYUBleGFtcGxlLnRlc3QNCg0KeA==",
    });
    checker.call("send/raw", raw).await;
    let held = held["messages"]["held@example.com"]["id"].as_i64().unwrap();
    for id in ids.iter().copied().chain([held]) {
        checker.call("messages/message", json!({"id": id, "_expansions": true})).await;
        checker.call("messages/deliveries", json!({ "id": id })).await;
        checker.call("analytics/message", json!({ "id": id })).await;
    }
    checker.call("messages/message", json!({"id": ids[0]})).await;

    // Wrong requests about messages.
    let mut wrong = vec![json!({}), json!({"id": "x"}), json!({"id": 7}), json!({"id": 1.5})];
    for path in ["messages/message", "messages/deliveries", "analytics/message"] {
        for body in &wrong {
            checker.call(path, body.clone()).await;
        }
    }
    wrong.extend([
        good_but(json!({"to": []})),
        good_but(json!({"to": vec!["a@example.com"; 51]})),
        good_but(json!({"from": "a@foreign.test"})),
        good_but(json!({"attachments": [{"data": "x"}]})),
        good_but(json!({"to": ["", 5], "headers": 5})),
    ]);
    for body in wrong.clone() {
        checker.call("send/message", body.clone()).await;
        checker.call("send/raw", body).await;
    }

    let range = json!({"from": "2020-01-01T00:00:00Z", "granularity": "month", "dimensions": ["tag"], "dimension": "tag"});
    for path in ["analytics/summary", "analytics/timeseries", "analytics/top"] {
        checker.call(path, range.clone()).await;
        checker.call(path, json!({"from": 5, "filters": {"odd": 1}})).await;
    }
    checker.call("analytics/summary", json!({})).await;
    checker.call("analytics/top", json!({"dimension": "recipient_domain"})).await;

    let webhook = checker.call("webhooks/create", json!({"url": catcher.url("/in")})).await["id"].clone();
    let postal = json!({"url": catcher.url("/in"), "format": "postal", "events": ["message.delivered"]});
    checker.call("webhooks/create", postal).await;
    checker.call("webhooks/create", json!({"url": "x", "events": ["y"]})).await;
    checker.call("webhooks/list", json!({"limit": 1})).await;
    checker.call("webhooks/list", json!({"limit": 0})).await;
    for body in [json!({ "id": webhook }), json!({"id": 7}), json!({"id": "x"})] {
        for action in ["get", "test", "attempts", "rotate_secret", "replay", "update"] {
            checker.call(&format!("webhooks/{action}"), body.clone()).await;
        }
    }
    checker.call("webhooks/replay", json!({"id": webhook, "since": "2020-01-01T00:00:00Z"})).await;
    checker.call("webhooks/delete", json!({ "id": webhook })).await;
    checker.call("webhooks/delete", json!({ "id": webhook })).await;

    checker.call("events/list", json!({"limit": 500})).await;
    checker.call("events/list", json!({"types": ["odd"], "wait_s": 99})).await;

    for action in ["add", "remove"] {
        let items =
            json!([{"address": "b@example.com"}, {"address": "held@example.com"}, {"address": "x"}, {}, 5]);
        checker.call(&format!("suppressions/{action}"), json!({ "items": items })).await;
        checker.call(&format!("suppressions/{action}"), json!({"address": "c@example.com"})).await;
        checker.call(&format!("suppressions/{action}"), json!({"address": "x"})).await;
        for list in ["list", "export"] {
            checker.call(&format!("suppressions/{list}"), json!({"limit": 1})).await;
        }
    }
    checker.call("suppressions/list", json!({"reason": "x"})).await;
    checker.call("suppressions/export", json!({"limit": 0})).await;
    checker.call("suppressions/import", json!({"csv": "address\na@example.com\nx\n"})).await;
    checker.call("suppressions/import", json!({})).await;
    checker.call("suppressions/get", json!({"address": "a@example.com"})).await;
    checker.call("suppressions/get", json!({"address": "none@example.com"})).await;
    checker.call("suppressions/get", json!({})).await;

    let template = json!({
        "alias": "t", "name": "T", "subject": "Hi {{ a }}", "html_body": "<style>p { color: red }</style><p>{{ a }}</p>",
        "locales": {"de": {"subject": "Hallo {{ a }}"}}, "sample_model": {"a": "x"}, "publish": true
    });
    checker.call("templates/create", template).await;
    checker.call("templates/create", json!({"name": "x", "subject": "{{", "html_body": "{% if %}"})).await;
    checker
        .call("templates/update", json!({"alias": "t", "subject": "Hello {{ a }}", "publish": true}))
        .await;
    checker.call("templates/validate", json!({"subject": "x", "html_body": "{{ a.b }}"})).await;
    checker.call("templates/validate", json!({"subject": "x", "html_body": "{{ a"})).await;
    checker.call("templates/list", json!({"limit": 1})).await;
    checker.call("templates/render", json!({"alias": "t", "model": {"a": 1}})).await;
    checker.call("templates/render", json!({"alias": "t", "model": {"ab": 1}})).await;
    for action in ["get", "versions", "diff", "publish", "rollback", "delete"] {
        checker.call(&format!("templates/{action}"), json!({"alias": "t"})).await;
        checker.call(&format!("templates/{action}"), json!({"alias": "none"})).await;
    }
    for action in ["update", "validate", "list"] {
        checker.call(&format!("templates/{action}"), json!({"alias": "none", "limit": 0, "id": "x"})).await;
    }

    let items = json!([good_but(json!({})), {}]);
    checker.call("send/batch", json!({ "messages": items })).await;
    checker.call("send/batch", json!({"messages": items, "mode": "atomic"})).await;
    checker.call("send/batch", json!({"messages": [], "mode": "x"})).await;
    let later = good_but(json!({"to": ["later@example.net"], "send_at": in_millis(3_600_000)}));
    let later = checker.call("send/message", later).await["messages"]["later@example.net"]["id"].clone();
    checker.call("send/reschedule", json!({"id": later, "send_at": in_millis(7_200_000)})).await;
    checker.call("send/reschedule", json!({"id": 7, "send_at": "x"})).await;
    checker.call("send/cancel", json!({ "id": later })).await;
    checker.call("send/cancel", json!({"id": 7})).await;

    checker.call("domains/create", json!({"name": "shop.example"})).await;
    checker.call("domains/create", json!({"name": "x", "private_key": "x", "selector": "a b"})).await;
    checker.call("domains/list", json!({"limit": 1})).await;
    checker.call("domains/list", json!({"limit": 0})).await;
    for action in ["get", "verify", "rotate_dkim", "zone", "delete"] {
        checker.call(&format!("domains/{action}"), json!({"name": "shop.example"})).await;
        checker.call(&format!("domains/{action}"), json!({"name": "none.example"})).await;
    }

    let own = checker.world.daemon.ready()["domain"].clone();
    checker.call("domains/reports", json!({ "name": own })).await;
    checker.call("domains/reports", json!({"name": "none.example"})).await;

    let found = checker.call("messages/search", json!({"limit": 1})).await["items"][0]["id"].clone();
    checker.call("messages/search", json!({"q": "colour:red"})).await;
    checker.call("messages/timeline", json!({ "id": found })).await;
    checker.call("messages/timeline", json!({})).await;
    for action in ["retry", "release", "cancel_hold", "erase"] {
        let action = format!("messages/{action}");
        checker.call(&action, json!({"ids": [found, 7]})).await;
        checker.call(&action, json!({ "id": found })).await;
        checker.call(&action, json!({"query": "nobody", "dry_run": true})).await;
        let job = checker.call(&action, json!({"query": "nobody"})).await["job_id"].clone();
        checker.call("jobs/get", json!({ "id": job })).await;
    }
    checker.call("messages/erase", json!({"address": "nobody@example.com"})).await;
    checker.call("messages/erase", json!({"address": "nobody"})).await;
    checker.call("jobs/get", json!({"id": 7})).await;

    checker.call("server/get", json!({"odd": 1})).await;
    checker
        .call("server/update", json!({"hourly_limit": 1000, "tracking": {"excluded_hosts": ["a.example"]}}))
        .await;
    checker.call("server/update", json!({"mode": "x", "retention": {"bodies_days": -1}})).await;

    let account = checker.call_as_operator("accounts/create", json!({"name": "acme"})).await["id"].clone();
    let server = json!({"account": account, "name": "shop", "idempotency_key": "k"});
    let server = checker.call_as_operator("servers/create", server).await["id"].clone();
    let credential = json!({"server": server, "name": "web", "allow": ["192.0.2.0/24"]});
    let credential = checker.call_as_operator("credentials/create", credential).await["id"].clone();
    let key = checker.call_as_operator("account_keys/create", json!({"account": account, "name": "k"})).await
        ["id"]
        .clone();
    let invitation = json!({"account": account, "email": "a@example.com", "role": "owner"});
    let invitation = checker.call_as_operator("users/invite", invitation).await["id"].clone();
    let person =
        checker.world.admin(&["user", "create", "anna@example.com", "--account", "acme"])["id"].clone();
    let pool =
        checker.call_as_operator("ip_pools/create", json!({"name": "dedicated-1"})).await["id"].clone();
    for (path, good) in [
        (
            "ip_pools/add_address",
            json!({"pool": pool, "address": "192.0.2.1", "helo": "mta1.example.com", "warm_up": true}),
        ),
        ("ip_pools/update_address", json!({"address": "192.0.2.1", "weight": 2})),
        ("ip_pools/warm_up", json!({"address": "192.0.2.1", "action": "pause"})),
        ("ip_pools/history", json!({"address": "192.0.2.1"})),
        ("ip_pools/list", json!({"limit": 1})),
        ("ip_pools/get", json!({ "id": pool })),
        ("ip_pools/remove_address", json!({"address": "192.0.2.1"})),
        ("ip_pools/delete", json!({ "id": pool })),
        ("accounts/create", json!({"name": "other"})),
        ("servers/create", json!({"account": account, "name": "news"})),
        ("credentials/create", json!({"server": server, "name": "x"})),
        ("account_keys/create", json!({"account": account, "name": "x", "scopes": ["servers:read"]})),
        ("accounts/list", json!({"limit": 1})),
        ("servers/list", json!({"limit": 1})),
        ("credentials/list", json!({"limit": 1})),
        ("account_keys/list", json!({"account": account, "limit": 1})),
        ("accounts/get", json!({ "id": account })),
        ("servers/get", json!({ "id": server })),
        ("credentials/get", json!({ "id": credential })),
        ("accounts/update", json!({"id": account, "name": "acme 2"})),
        ("domains/create", json!({"account": account, "name": "account.example"})),
        ("domains/list", json!({"account": account, "limit": 1})),
        ("ip_pools/create", json!({"name": "dedicated", "account": account})),
        ("account/get", json!({ "account": account })),
        ("account/update", json!({"account": account, "name": "acme 3"})),
        ("account/usage", json!({ "account": account })),
        (
            "servers/update",
            json!({"id": server, "ceilings": {"hourly_limit": 100}, "tracking": {"opens": true}}),
        ),
        ("credentials/update", json!({"id": credential, "name": "shop"})),
        ("credentials/rotate", json!({ "id": credential })),
        ("credentials/revoke", json!({ "id": credential })),
        ("account_keys/revoke", json!({"id": key, "account": account})),
        ("users/invite", json!({"account": account, "email": "b@example.com", "mail": false})),
        ("users/list", json!({ "account": account })),
        ("users/invitations", json!({ "account": account })),
        ("users/uninvite", json!({"account": account, "id": invitation})),
        ("users/update", json!({"id": person, "name": "Anna", "role": "admin"})),
        ("users/sessions", json!({ "id": person })),
        ("users/revoke_session", json!({ "id": person })),
        ("users/remove", json!({ "id": person })),
        ("servers/suspend", json!({"id": server, "reason": "x"})),
        ("servers/resume", json!({ "id": server })),
        ("servers/delete", json!({ "id": server })),
        ("servers/restore", json!({ "id": server })),
        ("accounts/suspend", json!({"id": account, "reason": "x"})),
        ("accounts/resume", json!({ "id": account })),
        ("account/audit", json!({"account": account, "limit": 100})),
        ("accounts/delete", json!({ "id": account })),
        ("accounts/restore", json!({ "id": account })),
    ] {
        checker.call_as_operator(path, good).await;
        let wrong = json!({"id": 999_999, "server": 999_999, "account": 999_999, "limit": 0, "name": "7", "reason": ""});
        checker.call_as_operator(path, wrong).await;
    }

    // Answers that are given before an endpoint is called.
    let (key, big) = (checker.world.key.clone(), json!({"plain_body": "x".repeat(41 << 20)}));
    let too_large = checker.world.client.post_json("/api/v1/send/message", Some(&key), &big).await;
    let no_key = checker.world.client.post_json("/api/v1/server/get", None, &json!({})).await;
    let unknown = checker.world.client.post_json("/api/v1/none", None, &json!({})).await;
    let method = checker.world.client.get("/api/v1/server/get").await;
    let failure = json!({"$ref": "#/components/schemas/FailureEnvelope"});
    for reply in [too_large, no_key, unknown, method].map(Result::unwrap) {
        let faults = &mut checker.faults;
        checker.schemas.check(&failure, &reply.json(), &reply.status.to_string(), faults);
    }

    assert!(checker.faults.is_empty(), "{:#?}", checker.faults);
    let paths: BTreeSet<&String> = checker.schemas.document["paths"].as_object().unwrap().keys().collect();
    let succeeded: BTreeSet<&String> =
        checker.seen.iter().filter(|(_, status)| status == "success").map(|(path, _)| path).collect();
    assert_eq!(paths, succeeded, "every endpoint succeeds at least once");
    let refused: BTreeSet<&String> =
        checker.seen.iter().filter(|(_, status)| status != "success").map(|(path, _)| path).collect();
    let never_refused: Vec<&str> = paths.difference(&refused).map(|path| path.as_str()).collect();
    assert_eq!(never_refused, ["/api/v1/server/get"], "every other endpoint refuses at least once");
}

/// The checks themselves find each kind of fault.
#[test]
fn answers_that_differ_from_their_schema_are_found() {
    let schema = json!({"allOf": [
        {"$ref": "#/components/schemas/Head"},
        {"type": "object", "required": ["items"], "properties": {
            "items": {"type": "array", "items": {"type": "integer"}},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "names": {"type": "object", "additionalProperties": {"type": "string"}},
            "one": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Head"}]},
        }},
    ]});
    let head = json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}});
    let schemas = Schemas { document: json!({"components": {"schemas": {"Head": head}}}) };
    let good = json!({"id": 1, "items": [1], "kind": "a", "names": {"x": "y"}, "one": {"id": 2}});
    let faults_of = |change: Value| {
        let mut answer = good.clone();
        answer.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        answer.as_object_mut().unwrap().retain(|_, value| *value != "left out");
        let mut faults = Vec::new();
        schemas.check(&schema, &answer, "", &mut faults);
        faults
    };
    assert_eq!(faults_of(json!({})), [""; 0]);
    assert_eq!(faults_of(json!({"one": null})), [""; 0]);
    for (change, fault) in [
        (json!({"id": "left out"}), "/id is missing"),
        (json!({"items": "left out"}), "/items is missing"),
        (json!({"id": "x"}), "/id should be [\"integer\"]"),
        (json!({"items": [1, 1.5]}), "/items/1 should be [\"integer\"]"),
        (json!({"kind": "c"}), "/kind should be one of"),
        (json!({"names": {"x": 1}}), "/names/x should be [\"string\"]"),
        (json!({"one": {}}), "/one fits none of its schemas"),
        (json!({"one": {"id": 2, "odd": 1}}), "/one fits none of its schemas"),
        (json!({"odd": 1}), "/odd is not in the document"),
    ] {
        let faults = faults_of(change.clone());
        assert!(faults.len() == 1 && faults[0].starts_with(fault), "{change}: {faults:?}");
    }
}
