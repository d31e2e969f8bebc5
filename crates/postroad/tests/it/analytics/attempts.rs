//! Analytics by source address, TLS version and bounce class of attempts.

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::{SUMMARY, TIMESERIES, TOP, call_analytics, until_counted};
use crate::delivery::outside::{Outside, to};
use crate::world::{Engine, both_engines};

/// One metric of each series, added up over its points.
fn sums(answer: &Value, dimensions: [&str; 2], metric: &str) -> Vec<(Value, Value, u64)> {
    let series = answer["series"].as_array().unwrap().iter();
    let mut sums: Vec<_> = series
        .map(|series| {
            let points = series["points"].as_array().unwrap().iter();
            let sum = points.map(|point| point[metric].as_u64().unwrap()).sum();
            (series[dimensions[0]].clone(), series[dimensions[1]].clone(), sum)
        })
        .filter(|(_, _, sum)| *sum > 0)
        .collect();
    sums.sort_by_key(|(first, second, _)| (first.to_string(), second.to_string()));
    sums
}

both_engines!(refusals_are_counted_by_bounce_class_and_source_address);

async fn refusals_are_counted_by_bounce_class_and_source_address(engine: Engine) {
    let outside = Outside::new();
    outside.dns.mx("corp.example", 10, "x.olc.protection.outlook.com");
    let script = Script::new().first(2, Stage::RcptTo, Answer::reply("550 5.1.1 no such user"));
    let _corp = outside.host("x.olc.protection.outlook.com", script);
    let refusal = Answer::reply("552 5.3.4 Message size exceeds fixed limit");
    let _other = outside.site("other.example", Script::new().on(Stage::MailFrom, refusal));
    let world = outside.start(engine, &[]);
    for address in ["a@corp.example", "b@corp.example", "c@other.example"] {
        let id = world.accepted_id(&to(address)).await;
        world.until_status(id, "HardFail").await;
    }
    let id = world.accepted_id(&to("d@corp.example")).await;
    let sent = world.until_status(id, "Sent").await;
    let source_ip = sent[0]["source_ip"].clone();
    until_counted(&world, "hard_fail", 3).await;
    until_counted(&world, "sent", 1).await;

    let question = json!({"dimensions": ["bounce_class", "source_ip"],
                              "filters": {"recipient_provider": "microsoft_consumer"}});
    let answer = call_analytics(&world, TIMESERIES, &question).await;
    let dimensions = ["bounce_class", "source_ip"];
    assert_eq!(
        sums(&answer, dimensions, "hard_fail"),
        [(json!("bad_mailbox"), source_ip.clone(), 2)],
        "{answer:#}"
    );
    assert_eq!(sums(&answer, dimensions, "sent"), [(Value::Null, source_ip.clone(), 1)], "{answer:#}");

    let top = call_analytics(&world, TOP, &json!({"dimension": "bounce_class", "metric": "hard_fail"})).await;
    let items: Vec<_> =
        top["items"].as_array().unwrap().iter().map(|item| (&item["value"], &item["hard_fail"])).collect();
    assert!(items.contains(&(&json!("bad_mailbox"), &json!(2))), "{top:#}");
    assert!(items.contains(&(&json!("too_large"), &json!(1))), "{top:#}");

    let plain = call_analytics(&world, SUMMARY, &json!({"filters": {"tls_version": ""}})).await;
    assert_eq!(plain["sent"], 1);
    let encrypted = call_analytics(&world, SUMMARY, &json!({"filters": {"tls_version": "TLSv1.3"}})).await;
    assert_eq!(encrypted["sent"], 0);
}
