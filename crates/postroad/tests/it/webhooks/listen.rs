//! `postroad webhook listen`: prints events as they come.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use postroad_testkit::{WebhookCatcher, daemon};
use serde_json::{Value, json};

use crate::world::{Engine, World, good, program};

/// Starts `webhook listen`; returns when it listens.
fn listen(arguments: &[&str]) -> Child {
    let mut child = daemon::command(program(), &[])
        .args(["webhook", "listen"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first_line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut first_line).unwrap();
    assert!(first_line.contains("listening"), "{first_line}");
    child
}

fn next_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_printed_as_they_come_by_url_and_by_folder() {
    let world = World::start(Engine::Sqlite);
    let catcher = WebhookCatcher::start();
    let url = world.daemon.ready()["url"].as_str().unwrap().to_owned();
    let (folder, forward) = (world.data_dir(), catcher.url("/forwarded"));
    let only = ["--types", "message.accepted"];
    let mut by_url = listen(
        &[&["--url", &url, "--key", &world.key, "--json", "--forward-to", &forward][..], &only].concat(),
    );
    let mut by_folder = listen(&[&["--data-dir", folder.to_str().unwrap()][..], &only].concat());
    let id = world.accepted_id(&good()).await;

    let event: Value = serde_json::from_str(&next_line(&mut by_url)).unwrap();
    assert_eq!((&event["type"], &event["data"]["message"]["id"]), (&json!("message.accepted"), &json!(id)));
    let line = next_line(&mut by_folder);
    assert!(line.contains("message.accepted") && line.contains(&id.to_string()), "{line}");
    assert_eq!(catcher.wait_for("/forwarded", 1)[0].json(), event);
    for mut child in [by_url, by_folder] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
