//! Clicks and opens, and misuse of links.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use postroad_model::EventKind;
use postroad_testkit::dkim_verifier;
use postroad_testkit::http::Method;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::{
    FIREFOX, fetch, open_in_browser, paths_in, receive, send_and_receive, tracked_html, until_activity,
    wait_past_scanner_window,
};
use crate::delivery::inbox::dkim_records;
use crate::delivery::outside::Outside;
use crate::world::{Engine, World, both_engines, good_but};

const HTML: &str = "<html><body><p  CLASS=x>Hi</p><a href='https://example.com/a?b=1&amp;c=2'>A</a> \
                    <a href=\"mailto:a@example.com\">M</a></body></html>";

both_engines!(clicks_are_redirected_and_both_clicks_and_opens_are_reported);

async fn clicks_are_redirected_and_both_clicks_and_opens_are_reported(world: World) {
    let mut world = world;
    let mail = send_and_receive(&world, &tracked_html("ann@example.net", HTML)).await;
    assert!(
        mail.html.contains("<p  CLASS=x>Hi</p>") && mail.html.contains("\"mailto:a@example.com\""),
        "{}",
        mail.html
    );
    let (link, pixel) = (mail.paths("/c/").remove(0), mail.paths("/o/").remove(0));
    wait_past_scanner_window().await;
    let reply = open_in_browser(&world, &link).await;
    assert_eq!((reply.status, reply.header("location")), (302, Some("https://example.com/a?b=1&c=2")));
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert!(reply.header("x-robots-tag").is_some() && reply.body.is_empty());
    let reply = open_in_browser(&world, &pixel).await;
    assert_eq!((reply.status, reply.header("content-type"), reply.body.len()), (200, Some("image/gif"), 43));
    open_in_browser(&world, &link).await;
    let activity = until_activity(&world, mail.id, 1, 2).await;
    let click = &activity["clicks"][0];
    assert_eq!((&click["url"], &click["bot"]), (&json!("https://example.com/a?b=1&c=2"), &json!(false)));
    assert_eq!((&click["ip_address"], &click["user_agent"]), (&json!("127.0.0.1"), &json!(FIREFOX.1)));
    assert!(click["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(activity["loads"][0]["bot"], false);
    // The stored message is the sender's own, without tracked links.
    let stored = world.expanded(mail.id).await["raw_message"].as_str().unwrap().to_owned();
    let stored = BASE64_STANDARD.decode(stored).unwrap();
    assert!(!String::from_utf8_lossy(&stored).contains("/c/"));
    let events = world.events_at_the_end(mail.id).await;
    let activity: Vec<(EventKind, i64, Value)> = events[2..]
        .iter()
        .map(|event| (event.kind, event.seq, serde_json::from_str(&event.data).unwrap()))
        .collect();
    let (kinds, seqs): (Vec<EventKind>, Vec<i64>) =
        activity.iter().map(|(kind, seq, _)| (*kind, *seq)).unzip();
    assert_eq!(kinds, [EventKind::Opened, EventKind::Clicked, EventKind::Clicked]);
    assert_eq!(seqs, [3, 4, 5]);
    let firsts: Vec<&Value> = activity.iter().map(|(_, _, data)| &data["first"]).collect();
    assert_eq!(firsts, [true, true, false]);
    assert_eq!(activity[1].2["first_including_bots"], true);
    assert_eq!(activity[1].2["token"].as_str().unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_with_one_character_changed_is_refused() {
    let world = World::start(Engine::Sqlite);
    let mail = send_and_receive(&world, &tracked_html("ann@example.net", HTML)).await;
    for kind in ["/c/", "/o/"] {
        let path = mail.paths(kind).remove(0);
        for at in kind.len()..path.len() {
            let mut changed = path.clone();
            let other = if &path[at..=at] == "A" { "B" } else { "A" };
            changed.replace_range(at..=at, other);
            let reply = open_in_browser(&world, &changed).await;
            assert_eq!((reply.status, reply.header("location")), (404, None), "{changed}");
        }
    }
    // A token works only for its own kind of link.
    let pixel_as_click = mail.paths("/o/").remove(0).replace("/o/", "/c/");
    assert_eq!(open_in_browser(&world, &pixel_as_click).await.status, 404);
    let click_as_unsubscription = mail.paths("/c/").remove(0).replace("/c/", "/u/");
    assert_eq!(open_in_browser(&world, &click_as_unsubscription).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_can_make_a_link_lead_elsewhere() {
    let world = World::start(Engine::Sqlite);
    let mail = send_and_receive(&world, &tracked_html("ann@example.net", HTML)).await;
    let good = mail.paths("/c/").remove(0);
    let evil = base64::prelude::BASE64_URL_SAFE_NO_PAD.encode("https://evil.example/");
    for path in [
        "/c/",
        "/c/https://evil.example/",
        "/c/https%3A%2F%2Fevil.example%2F",
        "/c/?url=https://evil.example/",
        "/c//evil.example",
        &format!("/c/{evil}"),
        &format!("{good}{evil}"),
        &format!("/c/{}", "A".repeat(20_000)),
    ] {
        let reply = open_in_browser(&world, path).await;
        assert!(reply.status == 404 || reply.status == 414, "{path}: {}", reply.status);
        assert_eq!(reply.header("location"), None, "{path}");
    }
    let reply = open_in_browser(&world, &format!("{good}?url=https://evil.example/")).await;
    assert_eq!(reply.header("location"), Some("https://example.com/a?b=1&c=2"));
    assert_eq!(fetch(&world, Method::POST, &good, &[FIREFOX]).await.status, 405);
    assert!(!world.daemon.stderr_text().contains(&good), "the log shows a link");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_copy_of_each_recipient_has_its_own_links_and_a_valid_signature() {
    let world = World::start(Engine::Sqlite);
    let records = dkim_records(&world.admin(&["domain", "records", "example.test"]));
    let body = good_but(json!({
        "to": ["ann@example.net", "bob@example.net"], "html_body": HTML, "plain_body": "See https://example.com/plain.",
        "track": {"opens": true, "clicks": true}, "list_unsubscribe": {"one_click": true, "mailto": "leave@example.test"},
        "attachments": [{"name": "a.html", "content_type": "text/html", "data": BASE64_STANDARD.encode(HTML)}],
    }));
    let accepted = world.accepted(&body).await;
    let mut copies = Vec::new();
    for to in ["ann@example.net", "bob@example.net"] {
        let id = accepted["messages"][to]["id"].as_i64().unwrap();
        let mail = receive(&world, id, to).await;
        let text = String::from_utf8_lossy(&mail.raw).into_owned();
        let dns_records: Vec<(&str, &str)> = records.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(dkim_verifier::verify(&mail.raw, &dns_records), [true], "{text}");
        let signed = text.split("DKIM-Signature:").nth(1).unwrap().to_ascii_lowercase();
        assert!(signed.contains("list-unsubscribe-post"), "{signed}");
        let forged = text.replace("List-Unsubscribe=One-Click", "List-Unsubscribe=Two-Click");
        assert_eq!(dkim_verifier::verify(forged.as_bytes(), &dns_records), [false]);
        assert_eq!(paths_in(&mail.plain, "/c/").len(), 1, "{}", mail.plain);
        assert!(mail.plain.ends_with('.'));
        let attachment = postroad_mail::view(&mail.raw).attachments.remove(0);
        assert_eq!(attachment.content, HTML.as_bytes());
        copies.push((mail.paths("/c/"), mail.paths("/o/")));
    }
    assert_ne!(copies[0], copies[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_attempt_sends_the_same_bytes_although_tracking_settings_change_meanwhile() {
    let outside = Outside::new();
    let later = Answer::reply("451 4.3.0 Not now");
    let script = Script::new().offering(&["SIZE 1000000"]).first(2, Stage::Message, later);
    let peer = outside.site("later.example", script);
    let world = outside.start(Engine::Sqlite, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1s")]);
    let body = good_but(json!({
        "to": ["ann@later.example"], "html_body": HTML, "track": {"opens": true, "clicks": true},
        "list_unsubscribe": {"one_click": true},
    }));
    let id = world.accepted_id(&body).await;
    world.until_deliveries(id, 1).await;
    world.admin(&["server", "set-tracking", "dev", "--opens", "off", "--exclude-host", "example.com"]);
    world.admin(&["domain", "set-tracking", "example.test", "--host", "track.example.test"]);
    world.until_status(id, "Sent").await;
    let copies = peer.messages();
    assert_eq!(copies.len(), 3);
    for copy in &copies {
        assert!(copy.bytes == copies[0].bytes, "attempts differ");
        let size = format!("SIZE={}", copy.bytes.len());
        assert!(
            copy.mail_parameters.split(' ').any(|parameter| parameter == size),
            "{size}: {}",
            copy.mail_parameters
        );
    }
    let text = String::from_utf8_lossy(&copies[0].bytes).into_owned();
    assert!(text.contains("/u/") && text.contains("/c/") && text.contains("/o/"), "{text}");
}
