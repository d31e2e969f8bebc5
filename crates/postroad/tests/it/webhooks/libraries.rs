//! Webhook posts verified by other projects' libraries.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use postroad_testkit::{PYTHON_VARIABLE, ReceivedPost, WebhookCatcher};
use serde_json::{Value, json};

use crate::world::{Engine, World, good_but};

/// Runs a script under `tests/clients` with this input; returns the lines that it prints.
fn run_script(name: &str, input: &Value) -> Vec<String> {
    let interpreter = std::env::var_os(PYTHON_VARIABLE).unwrap_or_else(|| {
        panic!("{PYTHON_VARIABLE} is not set: `cargo xtask test` installs the libraries and sets it")
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name);
    let mut child = Command::new(interpreter)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the interpreter starts");
    child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{name} failed; its error output is above");
    String::from_utf8(output.stdout).unwrap().lines().map(ToOwned::to_owned).collect()
}

fn as_json(posts: &[ReceivedPost]) -> Vec<Value> {
    let post = |post: &ReceivedPost| {
        let headers: serde_json::Map<String, Value> =
            post.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({ "headers": headers, "body": String::from_utf8(post.body.clone()).unwrap() })
    };
    posts.iter().map(post).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_standard_webhooks_library_verifies_our_signature_before_and_after_a_rotation() {
    let world = World::start(Engine::Sqlite);
    let catcher = WebhookCatcher::start();
    let webhook = world.new_webhook(&catcher.url("/in"), json!("all")).await;
    let id = json!({ "id": webhook["id"] });
    world.webhooks("test", &id).await;
    let rotated = world.webhooks("rotate_secret", &id).await;
    world.webhooks("test", &json!({ "id": webhook["id"], "type": "message.clicked" })).await;
    let posts = catcher.wait_for("/in", 2);

    let verified_types = |secret: &Value, posts: &[ReceivedPost]| {
        let input = json!({ "secret": secret, "posts": as_json(posts) });
        run_script("standard_webhooks_verify.py", &input)
    };
    assert_eq!(verified_types(&webhook["secret"], &posts), ["message.delivered", "message.clicked"]);
    assert_eq!(verified_types(&rotated["secret"], &posts[1..]), ["message.clicked"]);
    assert!(verified_types(&rotated["secret"], &posts[..1])[0].starts_with("bad"));
    let mut changed = posts[1].clone();
    changed.body = String::from_utf8(changed.body).unwrap().replace("example", "elsewhere").into_bytes();
    assert!(verified_types(&webhook["secret"], &[changed])[0].starts_with("bad"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn django_anymail_takes_the_postal_format_with_the_published_key() {
    let world = World::start(Engine::Sqlite);
    let catcher = WebhookCatcher::start();
    let request = json!({ "url": catcher.url("/in"), "format": "postal" });
    let webhook = world.webhooks("create", &request).await;
    // Real events: delivered, refused, deferred and then delivered, bounced later; and a sample click.
    let to = ["delivered", "missing", "defer", "bounce-later"].map(|who| format!("{who}@sim.postroad.test"));
    world.accepted(&good_but(json!({ "to": to }))).await;
    world.webhooks("test", &json!({ "id": webhook["id"], "type": "message.clicked" })).await;
    let is_complete = |posts: &[ReceivedPost]| {
        let names: Vec<Value> = posts.iter().map(|post| post.json()["event"].clone()).collect();
        ["MessageSent", "MessageDeliveryFailed", "MessageDelayed", "MessageBounced", "MessageLinkClicked"]
            .iter()
            .all(|name| names.contains(&json!(name)))
    };
    let posts = catcher.wait_until("/in", std::time::Duration::from_secs(30), is_complete);

    let published = world.client.get("/.well-known/jwks.json").await.unwrap().json();
    let key_id = published["keys"][0]["kid"].as_str().unwrap();
    assert!(posts.iter().all(|post| post.header("x-postal-signature-kid") == Some(key_id)));
    let input = json!({ "key": webhook["public_key"], "posts": as_json(&posts) });
    let lines = run_script("anymail_postal_view.py", &input);
    let read: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (post, read) in posts.iter().zip(&read) {
        assert_eq!(read["status"], 200, "{read}");
        let expected = match post.json()["event"].as_str().unwrap() {
            "MessageSent" => "delivered",
            "MessageDelayed" => "deferred",
            "MessageDeliveryFailed" => "failed",
            "MessageBounced" => "bounced",
            "MessageLinkClicked" => "clicked",
            other => panic!("{other} was not expected"),
        };
        assert_eq!(read["events"][0]["type"], expected, "{read}");
        assert_eq!(read["events"][0]["id"], post.json()["uuid"]);
        assert!(read["events"][0]["recipient"].is_string(), "{read}");
    }

    let mut forged = posts[0].clone();
    forged.body.push(b' ');
    let input = json!({ "key": webhook["public_key"], "posts": as_json(&[forged]) });
    assert!(run_script("anymail_postal_view.py", &input)[0].contains("400"));
}
