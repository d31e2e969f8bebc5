//! Scheduled messages get another time: one message, or all messages of a tag.

use std::time::Duration;

use postroad_model::{Clock as _, SystemClock, Timestamp};
use serde_json::json;

use crate::service::{DevService, pictures, server_of};

#[tokio::test]
async fn a_scheduled_message_gets_another_time() {
    let service = DevService::start();
    let in_hours = |hours: u64| SystemClock.now().plus(Duration::from_hours(hours)).to_rfc3339();
    let id = service.send(json!({ "subject": "Later", "send_at": in_hours(24) })).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let page = service.url_of(&format!("/servers/{server}/messages/{id}"));
    browser.open(&page).await;
    browser.until("#waits time").await;
    assert!(browser.text("#waits").await.contains("it is to be sent at"), "{}", browser.page_text().await);
    browser.click("#message > details summary").await;
    browser.until_text("In your time zone").await;
    browser.screenshot(&pictures().join("message-reschedule.png")).await;
    // First a time too far away, then one in an hour. The script shows the field in the browser's time zone.
    let set_time = |hours: i64| {
        format!(
            "const at = new Date(Date.now() + {hours} * 3600000); at.setMinutes(at.getMinutes() - at.getTimezoneOffset()); \
             document.querySelector('[name=send_at_utc]').value = at.toISOString().slice(0, 16); return 1"
        )
    };
    browser.run(&set_time(24 * 40)).await;
    browser.click("form[action$='/reschedule'] button").await;
    browser.until_text("within the next 30 days").await;
    browser.open(&page).await;
    browser.click("#message > details summary").await;
    browser.run(&set_time(1)).await;
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
    let service = DevService::start();
    let send_at = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    let (mut sale, other) = (Vec::new(), json!({ "subject": "Other", "send_at": send_at, "tag": "news" }));
    for number in 0..3 {
        let mail = json!({ "subject": format!("Sale {number}"), "send_at": send_at, "tag": "sale" });
        sale.push(service.send(mail).await);
    }
    let other = service.send(other).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let list = service.url_of(&format!("/servers/{server}/messages?tab=scheduled"));
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
        browser.open(&service.url_of(&format!("/servers/{server}/messages/{id}"))).await;
        let moment = browser.attribute("#waits time", "datetime").await.unwrap();
        Timestamp::parse_rfc3339(&moment).unwrap().since(SystemClock.now())
    };
    for id in sale {
        assert!(time_to_send(id).await < Duration::from_hours(3));
    }
    assert!(time_to_send(other).await > Duration::from_hours(23), "another tag");
}
