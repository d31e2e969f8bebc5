//! Analytics of recipients' actions, from their requests to the numbers: opens, clicks, bots, unsubscriptions,
//! a bounce.

use postroad_testkit::http::Method;
use serde_json::{Value, json};

use super::{MESSAGE, SUMMARY, TIMESERIES, call_analytics, until_counted};
use crate::returns::{mail_back, notification, send_and_catch};
use crate::tracking::{
    ReceivedMail, fetch, open_in_browser, paths_in, send_and_receive, until_activity,
    wait_past_scanner_window,
};
use crate::world::{World, both_engines, good_but};

const HTML: &str =
    "<body><a href='https://example.com/offer'>1</a><a href='https://example.com/terms'>2</a></body>";
const SCANNER: (&str, &str) = ("User-Agent", "python-requests/2.31.0");

/// Metrics that are compared, in the order of the numbers below.
const METRICS: [&str; 13] = [
    "accepted",
    "sent",
    "soft_fail",
    "hard_fail",
    "bounced",
    "held",
    "suppressed",
    "complained",
    "unsubscribed",
    "opened",
    "unique_opened",
    "clicked",
    "unique_clicked",
];
/// Expected numbers without the visits of bots.
const WITHOUT_BOTS: [u64; 13] = [3, 3, 0, 0, 1, 0, 0, 0, 1, 2, 1, 3, 1];
/// Expected numbers with the visits of bots.
const WITH_BOTS: [u64; 13] = [3, 3, 0, 0, 1, 0, 0, 0, 1, 4, 2, 5, 2];

fn newsletter(to: &str) -> Value {
    good_but(json!({
        "to": [to], "tag": "news", "html_body": HTML, "track": {"opens": true, "clicks": true},
        "list_unsubscribe": {"one_click": true},
    }))
}

/// Fetches the pixel and the first link as a scanner does.
async fn scan(world: &World, mail: &ReceivedMail) {
    for path in [&mail.paths("/o/")[0], &mail.paths("/c/")[0]] {
        fetch(world, Method::GET, path, &[SCANNER]).await;
    }
}

/// Opens twice, clicks three times on two links, and unsubscribes; a scanner visits first.
async fn read_and_unsubscribe(world: &World, mail: &ReceivedMail) {
    let (pixel, links) = (mail.paths("/o/").remove(0), mail.paths("/c/"));
    scan(world, mail).await;
    for path in [&pixel, &links[0], &links[0], &links[1], &pixel] {
        open_in_browser(world, path).await;
    }
    let path = paths_in(&String::from_utf8_lossy(&mail.raw), "/u/").remove(0);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    // The second request changes nothing.
    for _ in 0..2 {
        let body = "List-Unsubscribe=One-Click".into();
        let reply =
            world.client.request(Method::POST, &path, &form, body).await.expect("the service answers");
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    until_activity(world, mail.id, 3, 4).await;
}

fn numbers(counts: &Value) -> [u64; 13] {
    METRICS.map(|metric| counts[metric].as_u64().unwrap_or_else(|| panic!("{metric}: {counts:#}")))
}

/// The sums of each series, by its tag.
fn sums(timeseries: &Value) -> Vec<(&Value, [u64; 13])> {
    let sum_of = |series: &Value| {
        let points = series["points"].as_array().expect("points").iter().map(numbers);
        points.fold([0; 13], |sum, point| std::array::from_fn(|at| sum[at] + point[at]))
    };
    timeseries["series"]
        .as_array()
        .expect("series")
        .iter()
        .map(|series| (&series["tag"], sum_of(series)))
        .collect()
}

both_engines!(counts_agree_with_the_actions_of_recipients);

async fn counts_agree_with_the_actions_of_recipients(world: World) {
    let read = send_and_receive(&world, &newsletter("reader@example.net")).await;
    let scanned = send_and_receive(&world, &newsletter("scanned@example.net")).await;
    let bounced = send_and_catch(&world, "gone@example.net").await;
    let text = notification("gone@example.net", "failed", "5.1.1", "550 5.1.1 User unknown");
    assert_eq!(mail_back(&world, &bounced.return_path, &text).await, "250 2.0.0 OK");
    wait_past_scanner_window().await;
    scan(&world, &scanned).await;
    read_and_unsubscribe(&world, &read).await;
    until_activity(&world, scanned.id, 1, 1).await;

    // Visits of scanners and readers are counted in any order, so wait for all.
    until_counted(&world, "clicked", WITHOUT_BOTS[11]).await;
    until_counted(&world, "unique_clicked", WITHOUT_BOTS[12]).await;
    let summary = until_counted(&world, "unsubscribed", 1).await;
    assert_eq!(numbers(&summary), WITHOUT_BOTS);
    let a_third =
        ["bounce_rate", "open_rate", "click_rate", "unsubscribe_rate"].map(|rate| &summary["rates"][rate]);
    assert_eq!(a_third, [&json!(0.333_333); 4], "{summary:#}");
    assert_eq!(summary["rates"]["delivery_rate"], 0.666_667);
    let with_bots = call_analytics(&world, SUMMARY, &json!({"include_bots": true})).await;
    assert_eq!(numbers(&with_bots), WITH_BOTS);

    for granularity in ["minute", "hour", "day"] {
        let whole = call_analytics(&world, TIMESERIES, &json!({ "granularity": granularity })).await;
        assert_eq!(sums(&whole), [(&Value::Null, WITHOUT_BOTS)], "{granularity}");
    }
    let by_tag = json!({"granularity": "hour", "dimensions": ["tag"], "include_bots": true});
    let by_tag = call_analytics(&world, TIMESERIES, &by_tag).await;
    let untagged = [1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let news = std::array::from_fn(|at| WITH_BOTS[at] - untagged[at]);
    assert_eq!(sums(&by_tag), [(&json!("news"), news), (&Value::Null, untagged)]);

    let message = call_analytics(&world, MESSAGE, &json!({"id": read.id})).await;
    let links = json!([
        {"url": "https://example.com/offer", "clicked": 2, "bot_clicked": 1},
        {"url": "https://example.com/terms", "clicked": 1, "bot_clicked": 0},
    ]);
    let expected = json!({
        "status": "Sent", "attempts": 1, "soft_fail": 0, "held": 0, "complained": 0, "unsubscribed": 1,
        "opened": 2, "unique_opened": 1, "clicked": 3, "unique_clicked": 1, "bot_opened": 1, "bot_clicked": 1, "links": links,
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(message[name], *value, "{name}: {message:#}");
    }
    assert!(message["first_opened_at"].as_str() <= message["first_clicked_at"].as_str(), "{message:#}");
    let message = call_analytics(&world, MESSAGE, &json!({"id": scanned.id})).await;
    let by_programs = ["opened", "clicked", "bot_opened", "bot_clicked"].map(|name| message[name].as_u64());
    assert_eq!(by_programs, [Some(0), Some(0), Some(1), Some(1)]);
    assert_eq!((&message["unique_opened"], &message["unique_clicked"]), (&json!(0), &json!(0)));
    assert_eq!((&message["first_opened_at"], &message["first_clicked_at"]), (&Value::Null, &Value::Null));
    assert_eq!(call_analytics(&world, MESSAGE, &json!({"id": bounced.id})).await["status"], "Bounced");
}
