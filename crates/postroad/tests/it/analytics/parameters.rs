//! Ranges, time zones, steps and invalid parameters of analytics calls.

use serde_json::{Value, json};

use super::{MESSAGE, SUMMARY, TIMESERIES, TOP, call_analytics, until_counted};
use crate::world::{Engine, World, both_engines, good, good_but};

/// Pointer and text of each problem.
async fn problems(world: &World, path: &str, body: Value) -> Vec<(String, String)> {
    let answer = world.call(path, &body).await;
    assert_eq!(answer["status"], "parameter-error", "{body}: {answer:#}");
    assert_eq!(answer["data"]["code"], "ValidationError");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let errors = answer["data"]["errors"].as_array().unwrap();
    errors.iter().map(|error| (text(&error["pointer"]), text(&error["message"]))).collect()
}

async fn pointers(world: &World, path: &str, body: Value) -> Vec<String> {
    problems(world, path, body).await.into_iter().map(|(pointer, _)| pointer).collect()
}

both_engines!(points_of_a_timeseries_follow_the_time_zone, invalid_parameters_are_refused);

async fn points_of_a_timeseries_follow_the_time_zone(world: World) {
    world.accepted(&good()).await;
    until_counted(&world, "accepted", 1).await;
    // The clocks go back on the 25th.
    let body = json!({
        "from": "2026-10-24T10:00:00Z", "to": "2026-10-26T10:00:00Z", "granularity": "day", "timezone": "europe/berlin",
    });
    let answer = call_analytics(&world, TIMESERIES, &body).await;
    assert_eq!(
        (&answer["from"], &answer["to"]),
        (&json!("2026-10-23T22:00:00Z"), &json!("2026-10-26T23:00:00Z"))
    );
    let points = answer["series"][0]["points"].as_array().unwrap();
    let begins: Vec<&str> = points.iter().map(|point| point["at"].as_str().unwrap()).collect();
    assert_eq!(begins, ["2026-10-23T22:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"]);
    assert!(points.iter().all(|point| point["accepted"] == 0));
    assert_eq!(points[0]["latency"]["sent"], json!({"p50": null, "p90": null, "p99": null}));

    for (granularity, length) in [("minute", 61), ("hour", 25), ("day", 31), ("month", 13)] {
        let body = json!({"granularity": granularity, "timezone": "Asia/Kathmandu"});
        let answer = call_analytics(&world, TIMESERIES, &body).await;
        let series = answer["series"].as_array().unwrap();
        assert_eq!(series.len(), 1);
        let points = series[0]["points"].as_array().unwrap();
        // The last step contains the present moment.
        assert!((length - 1..=length + 1).contains(&points.len()), "{granularity}: {}", points.len());
        let accepted: u64 = points.iter().map(|point| point["accepted"].as_u64().unwrap()).sum();
        assert_eq!(accepted, 1, "{granularity}");
    }
    let body = json!({"dimensions": ["domain", "credential"], "filters": {"tag": ""}});
    let answer = call_analytics(&world, TIMESERIES, &body).await;
    let series = &answer["series"][0];
    assert_eq!(series["domain"], "example.test", "{answer:#}");
    assert!(series["credential"].is_i64());
    let filtered = json!({"filters": {"credential": [series["credential"]], "recipient_provider": "other"}});
    assert_eq!(call_analytics(&world, SUMMARY, &filtered).await["accepted"], 1);
    let nothing =
        call_analytics(&world, TIMESERIES, &json!({"dimensions": ["tag"], "filters": {"tag": ["x", "y"]}}))
            .await;
    assert_eq!(nothing["series"], json!([]));
}

async fn invalid_parameters_are_refused(world: World) {
    let later = json!({"from": "2026-11-02T00:00:00Z", "to": "2026-11-01T00:00:00Z"});
    for path in [SUMMARY, TIMESERIES] {
        assert_eq!(pointers(&world, path, later.clone()).await, ["/to"]);
        assert_eq!(pointers(&world, path, json!({"from": "yesterday", "to": 5})).await, ["/from", "/to"]);
        assert_eq!(
            pointers(&world, path, json!({"filters": {"colour": "red", "tag": 5}})).await,
            ["/filters/tag", "/filters/colour"]
        );
        assert_eq!(pointers(&world, path, json!({"include_bots": "yes"})).await, ["/include_bots"]);
    }
    let all_at_once =
        json!({"granularity": "week", "timezone": "Mars/Base", "dimensions": ["tag", "colour", 7]});
    assert_eq!(
        pointers(&world, TIMESERIES, all_at_once).await,
        ["/granularity", "/timezone", "/dimensions/1", "/dimensions/2"]
    );
    assert_eq!(
        pointers(&world, TIMESERIES, json!({"dimensions": ["tag", "domain", "template"]})).await,
        ["/dimensions"]
    );
    let long = json!({"from": "2026-11-01T00:00:00Z", "to": "2026-11-04T00:00:00Z", "granularity": "minute"});
    let [(pointer, text)] = &problems(&world, TIMESERIES, long).await[..] else { panic!("one problem") };
    assert_eq!(
        (pointer.as_str(), text.as_str()),
        ("/from", "By the minute the range may be at most 48 hours; use `hour`")
    );
    let old = json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "granularity": "minute"});
    let [(_, text)] = &problems(&world, TIMESERIES, old).await[..] else { panic!("one problem") };
    assert!(text.contains("not kept that long"), "{text}");
    let endless =
        json!({"from": "2025-01-01T00:00:00Z", "to": "2027-01-01T00:00:00Z", "granularity": "hour"});
    let [(_, text)] = &problems(&world, TIMESERIES, endless).await[..] else { panic!("one problem") };
    assert!(text.contains("more than 10000 points"), "{text}");
    assert_eq!(pointers(&world, SUMMARY, json!({"from": "1990-01-01T00:00:00Z"})).await, ["/from"]);

    assert_eq!(
        problems(&world, TOP, json!({})).await,
        [("/dimension".to_owned(), "`dimension` parameter is required but is missing".to_owned())]
    );
    assert_eq!(
        pointers(&world, TOP, json!({"dimension": "colour", "metric": "size", "limit": 501})).await,
        ["/dimension", "/metric", "/limit"]
    );
    assert_eq!(
        pointers(&world, TOP, json!({"dimension": "recipient_domain", "filters": {"tag": "x"}})).await,
        ["/filters"]
    );
    assert_eq!(pointers(&world, MESSAGE, json!({})).await, ["/id"]);

    let unknown = world.call(SUMMARY, &json!({"form": 1})).await;
    assert_eq!(unknown["flags"]["warnings"], json!(["Unknown field `form` was ignored"]));
}

/// Runs on one engine only, because a thousand sends take long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tags_beyond_a_thousand_are_counted_as_other_and_the_answer_warns() {
    let world = World::start(Engine::Sqlite);
    let numbers: Vec<usize> = (0..1_003).collect();
    for some in numbers.chunks(50) {
        let sends = some.iter().map(|number| good_but(json!({"tag": format!("order {number}")})));
        let sends: Vec<Value> = sends.collect();
        futures_util::future::join_all(sends.iter().map(|send| world.accepted(send))).await;
    }
    until_counted(&world, "accepted", 1_003).await;
    world.until_logged("uses more than 1000 different tags").await;
    let warning = "This server uses more than 1000 different tags, templates or source addresses; those beyond are counted as `(other)`";
    let body = json!({"filters": {"tag": "(other)"}});
    let answer = world.call(SUMMARY, &body).await;
    assert_eq!(
        (&answer["data"]["accepted"], &answer["flags"]["warnings"]),
        (&json!(3), &json!([warning])),
        "{answer:#}"
    );
    let top = world.call(TOP, &json!({"dimension": "tag", "limit": 1})).await;
    assert_eq!(top["data"]["items"][0]["value"], "(other)", "{top:#}");
    assert_eq!(top["flags"]["warnings"], json!([warning]));
    // A call that neither filters nor groups by tag gets no warning.
    let answer = world.call(SUMMARY, &json!({"filters": {"recipient_provider": "other"}})).await;
    assert_eq!(
        (&answer["data"]["accepted"], &answer["flags"]["warnings"]),
        (&json!(1_003), &Value::Null),
        "{answer:#}"
    );
}
