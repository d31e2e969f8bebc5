//! Filters by day: invalid days, and days in the reader's time zone.

use postroad_model::{Clock as _, SystemClock};
use serde_json::json;

use crate::service::{DevService, server_of};

#[tokio::test]
async fn an_invalid_day_is_reported_and_the_other_filters_apply() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    service
        .submit(
            &format!("{server}/webhooks"),
            &cookie,
            "url=http%3A%2F%2F127.0.0.1%3A9%2Fhook&format=standard",
        )
        .await;
    let list = service.get(&format!("{server}/webhooks"), &cookie).await.text();
    let webhook = list
        .split(&format!("href=\"{server}/webhooks/"))
        .find_map(|rest| rest.split('"').next()?.parse::<i64>().ok());
    let pages = [
        (format!("{server}/events"), "kind=message.delivered", "<option selected>message.delivered"),
        (format!("{server}/suppressions"), "reason=complaint", "<option value=\"complaint\" selected>"),
        (
            format!("{server}/webhooks/{}", webhook.unwrap()),
            "result=succeeded",
            "<option value=\"succeeded\" selected>",
        ),
        (format!("{server}/reports"), "days=90", "<option value=\"90\" selected>"),
        (
            "/account/audit".to_owned(),
            "actor=user&operation=servers%2Fcreate",
            "<option value=\"user\" selected>",
        ),
    ];
    for (page, filter, chosen) in pages {
        let reply = service.get(&format!("{page}?since=yesterday&until=2090-01-01&{filter}"), &cookie).await;
        let text = reply.text();
        assert_eq!(reply.status, 200, "{page}");
        assert!(text.contains("“yesterday” should be a day such as 2027-01-31."), "{page}: {text}");
        assert!(text.contains(chosen), "{page}: {chosen}: {text}");
        assert!(text.contains("name=\"until\" value=\"2090-01-01\""), "{page}: {text}");
        assert!(text.contains("name=\"since\" value=\"\""), "{page}: {text}");
    }
    let reversed = service.get(&format!("{server}/reports?since=2026-02-02&until=2026-02-01"), &cookie).await;
    assert!(reversed.status == 200 && reversed.text().contains("The period should end after it begins"));
}

fn utc_day() -> String {
    SystemClock.now().to_rfc3339()[..10].to_owned()
}

/// The browser of the tests is in New York.
#[tokio::test]
async fn days_are_those_of_the_readers_time_zone() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    // Send a message until all its events are on the same day in UTC.
    let today = loop {
        let day = utc_day();
        let id = service.send(json!({})).await;
        service.until_status(id, "Sent").await;
        if utc_day() == day {
            break day;
        }
    };
    let zone_hint = "Days of the time zone America/New_York.";
    browser.open(&service.url_of(&format!("/servers/{server}"))).await;
    browser.until_text(zone_hint).await;
    browser.open(&service.url_of(&format!("/servers/{server}/analytics"))).await;
    browser.until_text("time zone America/New_York").await;
    browser.open(&service.url_of(&format!("/servers/{server}/events?since=2026-01-01"))).await;
    browser.until_text("whole days, America/New_York").await;
    // At any time, Etc/GMT+12 or Etc/GMT-14 is on another day than UTC.
    let cookie = service.sign_in().await;
    let shows = async |zone: &str| {
        let cookie = format!("{cookie}; zone={zone}");
        let path = format!("/servers/{server}/events?since={today}&until={today}");
        let page = service.get(&path, &cookie).await.text();
        assert!(page.contains(&format!("whole days, {zone}")), "{page}");
        page.contains("message.accepted</span>")
    };
    assert!(shows("UTC").await);
    assert!(!shows("Etc/GMT+12").await || !shows("Etc/GMT-14").await);
    // Days are in UTC without the cookie that names the time zone, and with an invalid one.
    for cookie in
        [cookie.clone(), format!("{cookie}; zone=Atlantis"), format!("{cookie}; zone=../../etc/passwd")]
    {
        let page = service.get(&format!("/servers/{server}"), &cookie).await.text();
        assert!(page.contains("Days of the time zone UTC."), "{page}");
    }
}
