//! Tracking settings: a message's override its domain's, the domain's override the server's; all are off by default.

use serde_json::{Value, json};

use super::{paths_in, receive, send_and_receive};
use crate::smtp::log_in;
use crate::world::{Engine, World, both_engines, good_but};

const HTML: &str =
    "<body><a href='https://example.com/'>1</a><a href='https://cdn.example.com/'>2</a></body>";

/// Sends a message; returns how many pixels and how many tracked links its copy has.
async fn send_and_count(world: &World, to: &str, track: Value) -> (usize, usize) {
    let mail =
        send_and_receive(world, &good_but(json!({"to": [to], "html_body": HTML, "track": track}))).await;
    (mail.paths("/o/").len(), mail.paths("/c/").len())
}

both_engines!(message_settings_override_domain_settings_which_override_server_settings);

async fn message_settings_override_domain_settings_which_override_server_settings(world: World) {
    assert_eq!(send_and_count(&world, "a@example.net", Value::Null).await, (0, 0));
    assert_eq!(send_and_count(&world, "b@example.net", json!({"clicks": true})).await, (0, 2));
    let server = world.admin(&[
        "server",
        "set-tracking",
        "dev",
        "--opens",
        "on",
        "--clicks",
        "on",
        "--exclude-host",
        "*.example.com",
        "--exclude-host",
        "static.example.org",
    ]);
    assert_eq!(
        server["tracking"],
        json!({"opens": true, "clicks": true,
                                           "excluded_hosts": ["*.example.com", "static.example.org"]})
    );
    assert_eq!(send_and_count(&world, "c@example.net", Value::Null).await, (1, 1));
    assert_eq!(send_and_count(&world, "d@example.net", json!({"opens": false})).await, (0, 1));
    let domain =
        world.admin(&["domain", "set-tracking", "example.test", "--server", "dev", "--clicks", "off"]);
    assert_eq!(domain["tracking"], json!({"opens": null, "clicks": false, "host": null}));
    assert_eq!(send_and_count(&world, "e@example.net", Value::Null).await, (1, 0));
    assert_eq!(send_and_count(&world, "f@example.net", json!({"clicks": true})).await, (1, 1));
    // Options that are not given stay; `default` means the server's setting.
    world.admin(&["domain", "set-tracking", "example.test", "--opens", "off", "--clicks", "default"]);
    assert_eq!(send_and_count(&world, "g@example.net", Value::Null).await, (0, 1));
    world.admin(&["server", "set-tracking", "dev", "--clicks", "off", "--exclude-host", ""]);
    assert_eq!(send_and_count(&world, "h@example.net", Value::Null).await, (0, 0));
    assert_eq!(send_and_count(&world, "i@example.net", json!({"clicks": true})).await, (0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_domain_may_have_a_tracking_host_of_its_own() {
    let world = World::start(Engine::Sqlite);
    world.admin(&["domain", "set-tracking", "example.test", "--opens", "on", "--host", "Track.Example.test"]);
    let mail = send_and_receive(&world, &good_but(json!({"to": ["a@example.net"], "html_body": HTML}))).await;
    assert!(mail.html.contains("src=\"https://track.example.test/o/"), "{}", mail.html);
    for (args, problem) in [
        (&["domain", "set-tracking", "example.test", "--host", "no host"][..], "no host"),
        (
            &["domain", "set-tracking", "example.test", "--host", "postroad.localhost"],
            "the name of this service",
        ),
        (&["domain", "set-tracking", "nobody.test", "--opens", "on"], "there is no domain"),
        (&["server", "set-tracking", "dev", "--exclude-host", "https://example.com"], "is not a host name"),
        (&["server", "set-tracking", "nobody", "--opens", "on"], "there is no server"),
    ] {
        let (success, _, err) = world.admin_output(args);
        assert!(!success && err.contains(problem), "{args:?}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_control_tracking_over_smtp_and_are_removed() {
    let world = World::start(Engine::Sqlite);
    let mut client = log_in(&world).await;
    let text = "X-Track-Clicks: yes\r\nX-Track-Opens: off\r\nFrom: Shop <shop@example.test>\r\nSubject: Hello\r\n\
                MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nSee https://example.com/a, please.\r\n";
    let reply = client.deliver("shop@example.test", &["ann@example.net"], text).await;
    assert!(reply.starts_with("250"), "{reply}");
    // The id of a message sent by SMTP is not known here, and not needed.
    let mail = receive(&world, 0, "ann@example.net").await;
    assert_eq!(paths_in(&mail.plain, "/c/").len(), 1, "{}", mail.plain);
    assert!(!String::from_utf8_lossy(&mail.raw).contains("X-Track"));
}
