//! Calls every endpoint of the OpenAPI document with a key of one account and ids of another: nothing is shown, nothing
//! is changed. An object of another account gets exactly the answer of a missing object.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, stream};
use postroad_testkit::eventually;
use serde_json::{Map, Value, json};

use crate::accounts::{
    ACCOUNT, Customer, Key, OPERATOR, SERVER, account_view, call, call_ok, create_customer, ready_field,
};
use crate::world::{World, both_engines, good_but};

/// Maximum number of calls at the same time.
const CONCURRENT_CALLS_MAX: usize = 8;
/// Events that `fill_account` leaves in the server's feed: the verified domain, and two messages accepted and held.
const EVENTS_IN_FEED: usize = 5;
/// Nothing has this id.
pub(crate) const ABSENT: i64 = 999_999;

/// Ids of the other account's object and of a missing object, by group of endpoints and field.
pub(crate) type ObjectIds = BTreeMap<(&'static str, &'static str), (Value, Value)>;

/// Two calls of an endpoint, with a foreign and with a missing object; or one call that names no object.
struct Question {
    path: String,
    key: (&'static str, String),
    /// Each body with the value in it that names the object.
    bodies: Vec<(Value, Value)>,
}

/// Verifies a domain for the account's first server; returns mail that this server may send.
pub(crate) fn prepare_mail(world: &World, to: &str) -> Value {
    for action in ["create", "set-verified"] {
        world.admin(&["domain", action, "from.zebra.example", "--server", "zebra/shop"]);
    }
    good_but(json!({"to": [to], "from": "zebra@from.zebra.example", "subject": "zebra"}))
}

/// Creates one object of each kind in the account, with the word `zebra` in each name; returns the ids.
pub(crate) async fn fill_account(world: &World, zebra: &Customer) -> ObjectIds {
    let operator = (OPERATOR, ready_field(world, "operator_api_key"));
    let (account, server) = ((ACCOUNT, zebra.key.as_str()), (SERVER, zebra.server_keys[0].as_str()));
    // Everything that the server sends is held, so that nothing changes by itself.
    call_ok(world, server, "server/update", &json!({"mode": "development"})).await;
    let mail = prepare_mail(world, "zebra@zebra.example");
    let sent = call_ok(world, server, "send/message", &mail).await;
    let message = sent["messages"]["zebra@zebra.example"]["id"].clone();
    let batch =
        call_ok(world, server, "send/batch", &json!({ "messages": [mail] })).await["batch_id"].clone();
    call_ok(world, server, "domains/create", &json!({"name": "zebra.example"})).await;
    call_ok(world, account, "domains/create", &json!({"name": "herd.zebra.example"})).await;
    let webhook = json!({"url": "https://zebra.example/in", "events": ["domain.verified"]});
    let webhook = call_ok(world, server, "webhooks/create", &webhook).await["id"].clone();
    let template = json!({"alias": "zebra", "name": "zebra", "subject": "zebra", "plain_body": "zebra"});
    let template = call_ok(world, server, "templates/create", &template).await["id"].clone();
    call_ok(world, server, "suppressions/add", &json!({"address": "zebra@example.com"})).await;
    let job =
        call_ok(world, server, "messages/erase", &json!({"address": "nobody@zebra.example"})).await["job_id"]
            .clone();
    let user = world.admin(&["user", "create", "zebra@example.com", "--account", "zebra"])["id"].clone();
    let invite = json!({"email": "foal@zebra.example"});
    let invitation = call_ok(world, account, "users/invite", &invite).await["id"].clone();
    let pool = call_ok(world, operator, "ip_pools/create", &json!({"name": "zebra", "account": zebra.id}))
        .await["id"]
        .clone();
    let source = json!({"pool": pool, "address": "192.0.2.77", "helo": "mta.zebra.example"});
    call_ok(world, operator, "ip_pools/add_address", &source).await;
    // On PostgreSQL, the feed shows an event once all older transactions of the cluster have ended, also those of other
    // tests.
    eventually(async || {
        let feed = call_ok(world, server, "events/list", &json!({})).await;
        let count = feed["items"].as_array().unwrap().len();
        if count < EVENTS_IN_FEED { Err(format!("the feed shows {count} events")) } else { Ok(()) }
    })
    .await;
    let ids = [
        ("account_keys", &zebra.account_key_id),
        ("accounts", &zebra.id),
        ("analytics", &message),
        ("credentials", &zebra.credentials[0]),
        ("ip_pools", &pool),
        ("jobs", &job),
        ("messages", &message),
        ("send", &message),
        ("servers", &zebra.servers[0]),
        ("templates", &template),
        ("users", &user),
        ("webhooks", &webhook),
    ];
    let mut object_ids: ObjectIds =
        ids.into_iter().map(|(group, id)| ((group, "id"), (id.clone(), json!(ABSENT)))).collect();
    // Fields with the same meaning in every group of endpoints.
    let everywhere = [
        ("account", zebra.id.clone(), json!(ABSENT)),
        ("server", zebra.servers[0].clone(), json!(ABSENT)),
        ("pool", pool.clone(), json!(ABSENT)),
        ("ids", json!([message]), json!([ABSENT])),
        ("message_id", message.clone(), json!(ABSENT)),
        ("batch_id", batch, json!(ABSENT)),
        ("alias", json!("zebra"), json!("horse")),
    ];
    object_ids.extend(everywhere.map(|(field, foreign, absent)| (("", field), (foreign, absent))));
    object_ids.insert(("users/uninvite", "id"), (invitation, json!(ABSENT)));
    object_ids.insert(("domains", "name"), (json!("zebra.example"), json!("horse.example")));
    object_ids.insert(("suppressions", "address"), (json!("zebra@example.com"), json!("horse@example.com")));
    object_ids.insert(("messages", "address"), (json!("zebra@zebra.example"), json!("horse@horse.example")));
    object_ids.insert(("ip_pools", "address"), (json!("192.0.2.77"), json!("192.0.2.78")));
    object_ids
}

/// Everything that the account's own keys show.
async fn full_account_view(world: &World, customer: &Customer) -> Value {
    let (account, server) = ((ACCOUNT, customer.key.as_str()), (SERVER, customer.server_keys[0].as_str()));
    let mut shown = vec![account_view(world, customer).await];
    for list in ["users/list", "users/invitations", "domains/list", "ip_pools/list", "account/usage"] {
        shown.push(call_ok(world, account, list, &json!({})).await);
    }
    shown.push(server_view(world, server).await);
    shown.into()
}

/// Everything that the key of a server shows.
async fn server_view(world: &World, server: Key<'_>) -> Value {
    let mut shown = Vec::new();
    for list in [
        "webhooks/list",
        "templates/list",
        "suppressions/list",
        "server/get",
        "events/list",
        "messages/search",
        "domains/list",
    ] {
        shown.push(call_ok(world, server, list, &json!({})).await);
    }
    shown.into()
}

/// The keys of `one` that the endpoint is called with: those that it accepts, and some that it refuses.
fn keys(operation: &Value, one: &Customer) -> Vec<(&'static str, String)> {
    let takes =
        |name: &str| operation["security"].as_array().unwrap().iter().any(|way| way.get(name).is_some());
    let (account, server) = ((ACCOUNT, one.key.clone()), (SERVER, one.server_keys[0].clone()));
    // An endpoint that takes only server keys answers an account key with "the key is missing", and answers to many
    // such calls are delayed.
    match (takes("server_api_key"), takes("account_api_key")) {
        (true, false) => vec![server],
        _ => vec![account, server],
    }
}

/// The document's example of the request, with ids that nothing has, and the names of all fields.
fn example(document: &Value, operation: &Value) -> (Map<String, Value>, Vec<String>) {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let Some(reference) = schema["$ref"].as_str() else { return (Map::new(), Vec::new()) };
    let schema = document.pointer(&reference[1..]).expect("references lead somewhere");
    let mut body = schema["example"].as_object().cloned().unwrap_or_default();
    for id in ["id", "server", "account", "pool", "session"] {
        if let Some(value) = body.get_mut(id) {
            *value = json!(ABSENT);
        }
    }
    if let Some(wait) = body.get_mut("wait_s") {
        *wait = json!(0);
    }
    let fields = schema["properties"].as_object().map(|fields| fields.keys().cloned().collect());
    (body, fields.unwrap_or_default())
}

fn questions(document: &Value, object_ids: &ObjectIds, one: &Customer) -> Vec<Question> {
    let mut questions = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let operation = &methods["post"];
        let name = path.strip_prefix("/api/v1/").expect("a path of the API").to_owned();
        let (group, action) = name.split_once('/').expect("a group and an action");
        let (body, fields) = example(document, operation);
        // A created object belongs to the caller, whatever its name.
        let creates = ["create", "add", "import", "invite"].contains(&action);
        for field in &fields {
            let find_in =
                |place: &str| object_ids.iter().find(|((group, name), _)| *group == place && name == field);
            let found = find_in(&name).or_else(|| find_in(group)).or_else(|| find_in(""));
            let Some((_, (foreign, absent))) = found else { continue };
            if creates && !["account", "server", "pool"].contains(&field.as_str()) {
                continue;
            }
            let with = |value: &Value| {
                let mut body = body.clone();
                // Naming an object in several ways at once would be refused.
                if ["id", "ids", "alias", "address", "batch_id"].contains(&field.as_str()) {
                    for other in ["id", "ids", "alias", "address", "batch_id", "query", "dry_run"] {
                        body.remove(other);
                    }
                }
                body.insert(field.clone(), value.clone());
                Value::Object(body)
            };
            for key in keys(operation, one) {
                let bodies = [foreign, absent].map(|value| (with(value), value.clone()));
                questions.push(Question { path: name.clone(), key, bodies: bodies.into() });
            }
        }
        if questions.last().is_none_or(|last| last.path != name) {
            for key in keys(operation, one) {
                let bodies = vec![(Value::Object(body.clone()), Value::Null)];
                questions.push(Question { path: name.clone(), key, bodies });
            }
        }
    }
    questions
}

/// The answer with `…` in place of `value`, which the request contained: as a whole value and inside strings.
fn redact(answer: &Value, value: &Value) -> Value {
    match answer {
        _ if answer == value => json!("…"),
        Value::Array(items) => items.iter().map(|item| redact(item, value)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, item)| (name.clone(), redact(item, value))).collect()
        }
        Value::String(text) => match value {
            Value::String(value) => json!(text.replace(value.as_str(), "…")),
            _ => answer.clone(),
        },
        _ if value.get(0) == Some(answer) => json!("…"),
        _ => answer.clone(),
    }
}

/// Makes the calls. If both are refused, the refusals must be the same. No answer may contain the word `zebra`, unless
/// the caller belongs to that account (`knows_account`).
async fn ask(world: &World, question: Question, knows_account: bool) {
    let Question { path, key, bodies } = question;
    let key: Key<'_> = (key.0, &key.1);
    let mut answers = Vec::new();
    for (body, value) in &bodies {
        let answer = call(world, key, &path, body).await;
        let data = redact(&answer["data"], value);
        let is_revealed = data.to_string().contains("zebra") && !knows_account;
        assert!(!is_revealed, "{path} by {}: {body} {answer}", key.0);
        answers.push((answer["status"].clone(), data));
    }
    if let [foreign, absent] = answers.as_slice() {
        assert_eq!(foreign.0, absent.0, "{path} by {}: {bodies:?} {foreign:?} {absent:?}", key.0);
        if foreign.0 != "success" {
            assert_eq!(foreign.1, absent.1, "{path} by {}: {bodies:?}", key.0);
        }
    }
}

both_engines!(
    no_endpoint_shows_or_changes_an_object_of_another_account,
    no_endpoint_shows_or_changes_an_object_of_another_server_of_the_account
);

async fn no_endpoint_shows_or_changes_an_object_of_another_account(world: World) {
    let (one, zebra) = (create_customer(&world, "one").await, create_customer(&world, "zebra").await);
    let object_ids = fill_account(&world, &zebra).await;
    let before = full_account_view(&world, &zebra).await;
    let document = world.client.get("/api/v1/openapi.json").await.unwrap().json();
    let questions = questions(&document, &object_ids, &one);
    let called_paths: std::collections::BTreeSet<&str> =
        questions.iter().map(|question| question.path.as_str()).collect();
    assert_eq!(called_paths.len(), document["paths"].as_object().unwrap().len(), "every endpoint is called");
    assert!(questions.len() > 150, "{}", questions.len());
    stream::iter(questions)
        .for_each_concurrent(CONCURRENT_CALLS_MAX, |question| ask(&world, question, false))
        .await;
    assert_eq!(full_account_view(&world, &zebra).await, before);
}

async fn no_endpoint_shows_or_changes_an_object_of_another_server_of_the_account(world: World) {
    let zebra = create_customer(&world, "zebra").await;
    let object_ids = fill_account(&world, &zebra).await;
    let server = (SERVER, zebra.server_keys[0].as_str());
    let before = server_view(&world, server).await;
    let document = world.client.get("/api/v1/openapi.json").await.unwrap().json();
    // The key of the account's other server, which has none of the objects.
    let sister =
        Customer { server_keys: vec![zebra.server_keys[1].clone()], ..create_customer(&world, "one").await };
    let mut questions = questions(&document, &object_ids, &sister);
    questions.retain(|question| question.key.0 == SERVER && question.bodies.len() == 2);
    assert!(questions.len() > 60, "{}", questions.len());
    stream::iter(questions)
        .for_each_concurrent(CONCURRENT_CALLS_MAX, |question| ask(&world, question, true))
        .await;
    assert_eq!(server_view(&world, server).await, before);
}
