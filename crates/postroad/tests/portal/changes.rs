//! Changes: other times of messages, edited keys, deleted and restored servers, imported DKIM keys, replayed events,
//! erased people.

use std::time::Duration;

use postroad_model::{Clock as _, SystemClock, Timestamp};
use postroad_testkit::WebhookCatcher;
use serde_json::json;

use crate::site::{Site, pictures, server_of};

#[tokio::test]
async fn a_scheduled_message_gets_another_time() {
    let site = Site::start();
    let in_hours = |hours: u64| SystemClock.now().plus(Duration::from_hours(hours)).to_rfc3339();
    let id = site.send(json!({ "subject": "Later", "send_at": in_hours(24) })).await;
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let page = site.url_of(&format!("/servers/{server}/messages/{id}"));
    browser.open(&page).await;
    browser.until("#waits time").await;
    assert!(browser.text("#waits").await.contains("it is to be sent at"), "{}", browser.page_text().await);
    browser.click("#message > details summary").await;
    browser.until_text("In your time zone").await;
    browser.screenshot(&pictures().join("message-reschedule.png")).await;
    // First a time too far away, then one in an hour. The field is in the browser's time zone.
    let set = |hours: i64| {
        format!(
            "const at = new Date(Date.now() + {hours} * 3600000); at.setMinutes(at.getMinutes() - at.getTimezoneOffset()); \
             document.querySelector('[name=send_at_utc]').value = at.toISOString().slice(0, 16); return 1"
        )
    };
    browser.run(&set(24 * 40)).await;
    browser.click("form[action$='/reschedule'] button").await;
    browser.until_text("within the next 30 days").await;
    browser.open(&page).await;
    browser.click("#message > details summary").await;
    browser.run(&set(1)).await;
    browser.click("form[action$='/reschedule'] button").await;
    browser.until_text("Saved").await;
    let moment = browser.attribute("#waits time", "datetime").await.unwrap();
    assert_ne!(browser.run("return new Date().getTimezoneOffset()").await, 0, "the browser is not in UTC");
    let minute = |text: &str| text[..16].to_owned();
    let at = Timestamp::parse_rfc3339(&moment).unwrap();
    // A few minutes may have passed since the field was filled.
    let now = SystemClock.now();
    let (earliest, latest) = (now.plus(Duration::from_mins(55)), now.plus(Duration::from_hours(1)));
    assert!(at >= earliest && at <= latest, "{moment} is not in an hour from {}", now.to_rfc3339());
    // Without the script the field is in UTC.
    browser.set_scripts(false).await;
    browser.open(&page).await;
    browser.until_text("Another time").await;
    browser.click("#message > details summary").await;
    browser.until_text("In UTC").await;
    browser.click("form[action$='/reschedule'] button").await;
    browser.until_text("Saved").await;
    assert_eq!(minute(&browser.attribute("#waits time", "datetime").await.unwrap()), minute(&moment));
}

#[tokio::test]
async fn all_scheduled_messages_of_a_tag_get_another_time() {
    let site = Site::start();
    let send_at = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    let (mut sale, other) = (Vec::new(), json!({ "subject": "Other", "send_at": send_at, "tag": "news" }));
    for number in 0..3 {
        let mail = json!({ "subject": format!("Sale {number}"), "send_at": send_at, "tag": "sale" });
        sale.push(site.send(mail).await);
    }
    let other = site.send(other).await;
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let list = site.url_of(&format!("/servers/{server}/messages?tab=scheduled"));
    let submit = async |tag: &str| {
        browser.open(&list).await;
        browser.click("details[data-key=reschedule] summary").await;
        browser.until_text("In your time zone").await;
        browser.fill("form[action$='/reschedule'] input[name=tag]", tag).await;
        browser
            .run(
                "const at = new Date(Date.now() + 7200000); at.setMinutes(at.getMinutes() - at.getTimezoneOffset()); \
                 document.querySelector('[name=send_at_utc]').value = at.toISOString().slice(0, 16); return 1",
            )
            .await;
        browser.click("form[action$='/reschedule'] button").await;
    };
    submit("sal").await;
    browser.until_text("No message with the tag sal can be rescheduled").await;
    submit("sale").await;
    browser.until_text("Rescheduled.").await;
    assert!(browser.page_text().await.contains("To be sent"));
    let listed = browser.attribute("tbody tr:last-child time", "datetime").await.unwrap();
    let listed = Timestamp::parse_rfc3339(&listed).unwrap().since(SystemClock.now());
    assert!(listed > Duration::from_hours(1) && listed < Duration::from_hours(3), "{listed:?}");
    browser.screenshot(&pictures().join("messages-rescheduled.png")).await;
    let time_to_send = async |id: i64| {
        browser.open(&site.url_of(&format!("/servers/{server}/messages/{id}"))).await;
        let moment = browser.attribute("#waits time", "datetime").await.unwrap();
        Timestamp::parse_rfc3339(&moment).unwrap().since(SystemClock.now())
    };
    for id in sale {
        assert!(time_to_send(id).await < Duration::from_hours(3));
    }
    assert!(time_to_send(other).await > Duration::from_hours(23), "another tag");
}

#[tokio::test]
async fn a_key_is_changed_and_a_server_deleted_and_restored() {
    let site = Site::start();
    let browser = site.browser().await;
    browser.open(&site.url_of("/servers")).await;
    browser.fill("form.stack input[name=name]", "staging").await;
    browser.click("form.stack button").await;
    browser.until_text("New key").await;
    let server = server_of(&browser).await;
    let keys = site.url_of(&format!("/servers/{server}/keys"));
    browser.click("form.stack button").await;
    browser.until(".secret").await;
    browser.open(&keys).await;
    browser.click("td details summary").await;
    browser.fill("td input[name=name]", "deploy").await;
    browser.fill("td input[name=allow]", "192.0.2.0").await;
    browser.run("document.querySelector('td [name=expires_at]').value = '2001-01-31'; return 1").await;
    browser.click("td details button").await;
    browser.until(".problem").await;
    // The form is open, with what was typed.
    let typed = "return document.querySelector('td [name=name]').value";
    assert_eq!(browser.run(typed).await, json!("deploy"));
    browser.fill("td input[name=allow]", "192.0.2.0/24").await;
    browser.run("document.querySelector('td [name=expires_at]').value = '2090-01-31'; return 1").await;
    browser.screenshot(&pictures().join("key-edit.png")).await;
    browser.click("td details button").await;
    browser.until_text("Saved").await;
    let text = browser.text("table.rows").await;
    assert!(text.contains("deploy") && text.contains("from 192.0.2.0/24") && text.contains("ends"), "{text}");

    browser.open(&site.url_of(&format!("/servers/{server}/settings"))).await;
    browser.fill("form[action$='/delete'] input[name=name]", "staging").await;
    browser.click("form[action$='/delete'] button").await;
    browser.until("#deleted").await;
    assert!(browser.text("#deleted").await.contains("staging"));
    browser.screenshot(&pictures().join("servers-deleted.png")).await;
    browser.click("#deleted button").await;
    browser.until_text("Restored").await;
    browser.open(&keys).await;
    browser.until_text("deploy").await;
}

#[tokio::test]
async fn a_domain_signs_with_a_key_of_its_owner() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    browser.open(&site.url_of(&format!("/servers/{server}/domains"))).await;
    browser.fill("input[name=name]", "old.example").await;
    browser.click("form.stack details summary").await;
    browser.run("document.querySelector('[name=private_key]').value = 'no key'; return 1").await;
    browser.fill("input[name=selector]", "mine").await;
    browser.click("form.stack > button").await;
    browser.until(".problem").await;
    let key = serde_json::to_string(include_str!("../it/domains/own_key.pem")).unwrap();
    // The form is open, with what was typed.
    let typed =
        "return ['name', 'selector'].map(name => document.querySelector(`form.stack [name=${name}]`).value)";
    assert_eq!(browser.run(typed).await, json!(["old.example", "mine"]));
    browser.run(&format!("document.querySelector('[name=private_key]').value = {key}; return 1")).await;
    browser.click("form.stack > button").await;
    browser.until_text("mine._domainkey.old.example").await;
    assert!(!site.get("/account/audit", &site.cookie().await).await.text().contains("PRIVATE KEY"));
}

#[tokio::test]
async fn events_of_a_time_are_posted_again_and_a_person_is_erased() {
    let site = Site::start();
    let receiver = WebhookCatcher::start();
    let key = site.ready("api_key");
    let hook = json!({ "url": receiver.url("/hook"), "events": ["message.delivered"] });
    site.client.post_json("/api/v1/webhooks/create", Some(&key), &hook).await.unwrap();
    let id = site.send(json!({ "to": ["eve@example.net"], "subject": "Private" })).await;
    site.until(id, "Sent").await;
    receiver.wait_for("/hook", 1);
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    browser.open(&site.url_of(&format!("/servers/{server}/webhooks"))).await;
    browser.click("table.rows a").await;
    browser.until_text("Post events again").await;
    browser.click("main > details summary").await;
    browser.click("main > details button").await;
    browser.until_text("The events of that time are posted again").await;
    receiver.wait_for("/hook", 2);
    // A replay that stopped before its end says how far it came, and can be continued.
    let page = browser.url().await;
    let (page, _) = page.split_once('?').unwrap();
    let micros = |hours: u64| SystemClock.now().minus(Duration::from_hours(hours)).as_micros();
    let rest = format!("replay_since={}&replay_until={}&after=0&replayed=10000", micros(2), micros(0));
    browser.open(&format!("{page}?{rest}")).await;
    browser.until_text("10\u{202f}000 events of that time are posted again").await;
    browser.click("#replay button").await;
    browser.until_text("The events of that time are posted again").await;
    receiver.wait_for("/hook", 3);

    browser.open(&site.url_of(&format!("/servers/{server}/settings"))).await;
    browser.fill("form[action$='/erase'] input[name=address]", "eve@example.net").await;
    browser.click("form[action$='/erase'] button").await;
    browser.accept_question().await;
    browser.until_text("Erase personal data").await;
    browser.until_text("Done").await;
    browser.until_text("is kept, also where it contains the address").await;
    let list = site.get(&format!("/servers/{server}/messages"), &site.cookie().await).await.text();
    assert!(!list.contains("eve@example.net") && !list.contains("Private"), "{list}");
}
