//! From a new domain to signed mail and its bounces.

use std::time::Duration;

use postroad_testkit::{ReceivedPost, WebhookCatcher};
use serde_json::{Value, json};

use super::{publish, start, status, verdicts};
use crate::returns::{mail_back, notification};
use crate::world::{Engine, both_engines, good_but};

both_engines!(
    a_domain_goes_from_missing_to_verified_and_signs_its_mail,
    a_bounce_is_accepted_after_its_domain_was_deleted,
    mail_is_signed_by_the_domains_key_while_its_record_is_gone_for_a_moment
);

async fn a_domain_goes_from_missing_to_verified_and_signs_its_mail(engine: Engine) {
    let (world, dns) = start(engine);
    let created = world.domains("create", &json!({"name": " Shop.Example. "})).await;
    assert_eq!((&created["name"], &created["owner"]), (&json!("shop.example"), &json!("server")));
    assert_eq!((&created["verified"], &created["verified_by"]), (&json!(false), &Value::Null));
    assert_eq!(
        created["records"][0]["value"], "v=spf1 ip4:127.0.0.1 ip6:::1 ~all",
        "spf.<host> does not exist"
    );
    assert_eq!(status(&created, "dkim"), "pending");
    assert_eq!((&created["dkim"][0]["state"], &created["checked_at"]), (&json!("pending"), &Value::Null));
    assert_eq!(world.refused_domains("create", &json!({"name": "shop.example"})).await, "DomainExists");

    let body = good_but(json!({"from": "hello@shop.example", "to": ["ann@example.net"]}));
    let refused = world.call(crate::world::SEND, &body).await;
    assert_eq!(refused["data"]["code"], "UnauthenticatedFromAddress");
    let missing = world.domains("verify", &json!({"name": "shop.example"})).await;
    for purpose in ["spf", "dkim", "dmarc", "return_path", "tracking"] {
        assert_eq!(status(&missing, purpose), "missing", "{missing:#}");
    }
    assert!(missing["checked_at"].is_string() && missing["records"][0]["since"].is_string());

    publish(&dns, &missing);
    let verified = world.until_domain("shop.example", |domain| domain["verified"] == true).await;
    assert_eq!((&verified["verified_by"], &verified["failing_since"]), (&json!("dns"), &Value::Null));
    assert_eq!(
        (&verified["dkim"][0]["state"], &verified["return_path"]),
        (&json!("active"), &json!("rp.shop.example"))
    );
    assert_eq!(world.domains("get", &json!({"name": "shop.example"})).await, verified);
    let events =
        world.call("/api/v1/events/list", &json!({"types": ["domain.verified"], "wait_s": 20})).await;
    assert_eq!(events["data"]["items"][0]["data"]["domain"]["name"], "shop.example", "{events}");

    let (message, mail_from) = world.send_from("hello@shop.example", "bob@example.net").await;
    assert_eq!(verdicts(&message, &verified), [true]);
    assert!(String::from_utf8_lossy(&message).contains("d=shop.example;"));
    assert!(mail_from.ends_with("@rp.shop.example"), "{mail_from}");
}

async fn a_bounce_is_accepted_after_its_domain_was_deleted(engine: Engine) {
    let (world, dns) = start(engine);
    let created = world.domains("create", &json!({"name": "shop.example"})).await;
    publish(&dns, &created);
    world.until_domain("shop.example", |domain| domain["return_path"] == "rp.shop.example").await;
    let body = good_but(json!({"from": "hello@shop.example", "to": ["jo@example.com"]}));
    let id = world.accepted_id(&body).await;
    world.until_status(id, "Sent").await;
    let caught = world.client.get("/dev/messages/wait?to=jo@example.com&timeout=20").await.unwrap().json();
    let return_path = caught["mail_from"].as_str().unwrap().to_owned();
    assert!(return_path.ends_with("@rp.shop.example"), "{return_path}");

    dns.remove("rp.shop.example");
    let failing =
        world.until_domain("shop.example", |domain| status(domain, "return_path") == "missing").await;
    assert_eq!(failing["return_path"], "rp.shop.example", "one bad answer changes nothing");
    world.domains("delete", &json!({"name": "shop.example"})).await;
    let text = notification("jo@example.com", "failed", "5.1.1", "550 5.1.1 User unknown");
    assert_eq!(mail_back(&world, &return_path, &text).await, "250 2.0.0 OK");
    assert_eq!(world.expanded(id).await["status"]["status"], "Bounced");
    // Mail to an address that is not a return path is refused.
    let refused = mail_back(&world, "somebody@rp.shop.example", &text).await;
    assert!(refused.starts_with("550 "), "{refused}");
}

async fn mail_is_signed_by_the_domains_key_while_its_record_is_gone_for_a_moment(engine: Engine) {
    let (world, dns) = start(engine);
    let catcher = WebhookCatcher::start();
    world.webhooks("create", &json!({"url": catcher.url("/in"), "format": "postal"})).await;
    let created = world.domains("create", &json!({"name": "shop.example"})).await;
    publish(&dns, &created);
    let verified = world.until_domain("shop.example", |domain| domain["verified"] == true).await;
    dns.remove(verified["records"][1]["name"].as_str().unwrap());
    let failing = world.until_domain("shop.example", |domain| domain["failing_since"].is_string()).await;
    assert_eq!((&failing["verified"], status(&failing, "dkim")), (&json!(true), "missing"));
    let (message, _) = world.send_from("hello@shop.example", "bob@example.net").await;
    assert_eq!(verdicts(&message, &verified), [true], "the record may be back when the mail is read");
    let events = world.call("/api/v1/events/list", &json!({"types": ["domain.failing"]})).await;
    let event = &events["data"]["items"][0]["data"];
    assert_eq!(
        (&event["domain"]["name"], &event["records"][1]["status"]),
        (&json!("shop.example"), &json!("missing"))
    );
    let is_reported =
        |posts: &[ReceivedPost]| posts.iter().any(|post| post.json()["event"] == "DomainDNSError");
    let posts = catcher.wait_until("/in", Duration::from_secs(30), is_reported);
    let post = posts.iter().map(ReceivedPost::json).find(|post| post["event"] == "DomainDNSError").unwrap();
    assert_eq!(post["payload"]["domain"], "shop.example", "{post:#}");
    assert_eq!(post["payload"]["dkim_status"], "Missing", "{post:#}");
}
