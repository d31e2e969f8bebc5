//! Analytics by filters, days and time zone.

use postroad_testkit::Browser;
use serde_json::json;

use crate::service::{DevService, pictures, server_of};

#[tokio::test]
async fn figures_are_filtered_by_what_a_person_clicks() {
    let service = DevService::start();
    for tag in ["receipt", "receipt", "reset"] {
        let id = service.send(json!({ "tag": tag })).await;
        service.until_status(id, "Sent").await;
    }
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let page = format!("/servers/{server}/analytics");
    browser.open(&service.url_of(&format!("{page}?by=tag"))).await;
    browser.until_text("receipt").await;
    assert_eq!(browser.text(".figure .value").await, "3");
    browser.click("table.rows tbody tr:first-child a").await;
    browser.until(".chip").await;
    assert_eq!(browser.text(".figure .value").await, "2");
    assert!(browser.text(".chip").await.contains("Tag: receipt"));
    assert_eq!(browser.attribute("input[name=tag]", "value").await.as_deref(), Some("receipt"));
    browser.screenshot(&pictures().join("analytics-filtered.png")).await;
    browser.click(".chip a").await;
    browser.until_text("reset").await;
    assert_eq!(browser.text(".figure .value").await, "3");
    // The form sets the same filters, and keeps what was typed.
    browser.click(".more summary").await;
    browser.fill("input[name=tag]", "reset, other").await;
    browser.fill("input[name=zone]", "Europe/Berlin").await;
    browser.click("form.search > button").await;
    browser.until_text("Europe/Berlin").await;
    assert_eq!(browser.text(".figure .value").await, "1");
    assert_eq!(browser.console().await, [""; 0]);

    let cookie = service.sign_in().await;
    let get = async |query: &str| service.get(&format!("{page}?{query}"), &cookie).await;
    let none = get("tag=%28none%29").await.text();
    assert!(none.contains("Nothing was counted in this range with these filters"), "{none}");
    let days = get("since=2026-01-01&until=2026-01-31&was=week&range=week").await.text();
    assert!(days.contains("Nothing was counted") && days.contains("the days below"), "{days}");
    let another = get("since=2026-01-01&until=2026-01-31&was=week&range=month").await.text();
    assert!(!another.contains("the days below") && another.contains("example.test"), "{another}");
    for (wrong, text) in [
        ("zone=Atlantis", "is not a time zone"),
        ("since=2026-02-30", "should be a day"),
        ("range=quarter&granularity=hour", "more than 400 bars"),
        ("by=recipient_domain&tag=x", "Recipient domains are not counted by other dimensions"),
    ] {
        let reply = get(wrong).await;
        assert!(reply.status == 200 && reply.text().contains(text), "{wrong}: {}", reply.text());
    }
    assert!(get("by=recipient_domain").await.text().contains("example.net"));
    let key = get("by=credential").await.text();
    assert!(key.contains("credential="), "the rows lead to the figures of one key: {key}");
    let csv = get_csv(&service, &page, &cookie, "by=tag&also=recipient_provider&tag=reset").await;
    assert!(csv.starts_with("at,tag,recipient_provider,accepted"), "{csv}");
    assert!(csv.contains("\"reset\"") && !csv.contains("receipt"), "{csv}");
}

#[tokio::test]
async fn figures_are_listed_by_time_and_compared_with_the_period_before() {
    let service = DevService::start();
    for _ in 0..3 {
        let id = service.send(json!({})).await;
        service.until_status(id, "Sent").await;
    }
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/analytics?range=week"))).await;
    browser.click("#times summary").await;
    let row = browser.text("#times tbody tr").await;
    assert!(row.contains(&day_from_now(&browser, 0).await) && row.contains('3'), "{row}");
    assert_eq!(browser.count("#times tbody tr").await, 1, "days without mail are left out");
    browser.screenshot(&pictures().join("analytics-times.png")).await;
    // Every bar can be pointed at, also one without mail.
    let titles = "return [...document.querySelectorAll('svg.chart:not(.rate) g')].map(bar =>
        [bar.querySelector('title').textContent, bar.querySelector('.slot').getBoundingClientRect().height])";
    let titles = browser.run(titles).await;
    let titles = titles.as_array().unwrap();
    assert!(titles.len() >= 7, "{titles:?}");
    assert!(titles.iter().all(|bar| bar[1].as_f64().unwrap() > 50.0), "{titles:?}");
    assert!(titles[0][0].as_str().unwrap().contains(": 0 delivered"), "{titles:?}");
    // Tomorrow has no messages, and is compared with today.
    let day = day_from_now(&browser, 1).await;
    browser.open(&service.url_of(&format!("/servers/{server}/analytics?since={day}&until={day}"))).await;
    browser.until_text("before: 3 (−100 %)").await;
    assert_eq!(browser.console().await, [""; 0]);
}

/// The day in the browser's time zone, `days` from now.
async fn day_from_now(browser: &Browser, days: u64) -> String {
    let script = format!("return new Date(Date.now() + {days} * 86400000).toLocaleDateString('en-CA')");
    browser.run(&script).await.as_str().expect("a day").to_owned()
}

#[tokio::test]
async fn a_tag_with_a_comma_can_be_clicked_and_recipient_domains_are_exported() {
    let service = DevService::start();
    for (tag, to) in [("news, weekly", "ann@example.net"), ("news", "bob@example.org")] {
        let id = service.send(json!({ "tag": tag, "to": [to] })).await;
        service.until_status(id, "Sent").await;
    }
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let page = format!("/servers/{server}/analytics");
    browser.open(&service.url_of(&format!("{page}?by=tag"))).await;
    browser.until_text("news, weekly").await;
    browser.click("table.rows a[href*='weekly']").await;
    browser.until(".chip").await;
    assert_eq!(browser.text(".figure .value").await, "1", "only the messages with this tag");
    assert!(browser.page_text().await.contains("Time to deliver, 90 %"));
    let csv = get_csv(&service, &page, &service.sign_in().await, "by=recipient_domain").await;
    assert!(csv.starts_with("recipient_domain,accepted"), "{csv}");
    assert!(csv.contains("\"example.net\"") && csv.contains("\"example.org\""), "{csv}");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = |name: &str| lines[0].iter().position(|column| *column == name).unwrap();
    for line in &lines[1..] {
        assert_eq!(line.len(), lines[0].len(), "{csv}");
        assert_eq!(line[at("delivery_rate")], "1.000000", "{csv}");
    }
    let csv = get_csv(&service, &page, &service.sign_in().await, "by=tag").await;
    let times: Vec<&str> = csv.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(times[0], "seconds_p99", "{csv}");
    assert!(times[1..].iter().any(|time| time.parse().is_ok_and(|time: f64| time > 0.0)), "{csv}");
}

async fn get_csv(service: &DevService, page: &str, cookie: &str, query: &str) -> String {
    service.get(&format!("{page}/csv?{query}"), cookie).await.text()
}
