//! Import and export of suppressions as CSV.

use serde_json::{Value, json};

use super::{ADD, EXPORT, GET, IMPORT, call_ok, list_addresses};
use crate::errors::assert_invalid;
use crate::world::{World, both_engines};

const COLUMNS: &str = "address,reason,details,origin_message_id,created_at,expires_at";

both_engines!(
    a_list_with_a_header_is_imported_line_by_line,
    ten_thousand_bare_addresses_are_imported_and_exported_in_pages,
    exported_lists_are_imported_unchanged,
    invalid_lists_are_refused
);

async fn a_list_with_a_header_is_imported_line_by_line(world: World) {
    let csv = "\u{feff}Email,Reason,Expires at,Details,Name\r\n\
                   Ann@Example.com,complaint,2099-01-01T00:00:00Z,\"said \"\"no\"\",\r\ntwice\",Ann\r\n\
                   \r\n\
                   nobody,because,,,\r\n\
                   bob@bücher.example\r\n\
                   ANN@example.com,manual,2030-01-01T00:00:00Z\r\n\
                   cid@example.com,,yesterday,,,,more\r\n";
    let answer = world.call(IMPORT, &json!({ "csv": csv })).await;
    assert_eq!(answer["flags"]["warnings"], json!(["Unknown column `Name` was ignored"]));
    let data = &answer["data"];
    assert_eq!(
        (&data["lines"], &data["added"], &data["exists"], &data["failed"]),
        (&json!(5), &json!(2), &json!(1), &json!(2))
    );
    assert_eq!(
        data["errors"],
        json!([
            {"line": 5, "message": "`address` is not valid: an address needs an @ between a local part and a domain; \
                `reason` should be one of hard_bounce, complaint, manual, unsubscribe, soft_bounce"},
            {"line": 8, "message": "it has 7 fields where 5 are expected"},
        ])
    );
    let ann = call_ok(&world, GET, &json!({"address": "ann@example.com"})).await;
    assert_eq!(ann["details"], "said \"no\", twice");
    assert_eq!((&ann["reason"], &ann["expires_at"]), (&json!("complaint"), &json!("2099-01-01T00:00:00Z")));
    let mut all = list_addresses(&world).await;
    all.sort_unstable();
    assert_eq!(all, ["ann@example.com", "bob@xn--bcher-kva.example"]);
}

async fn ten_thousand_bare_addresses_are_imported_and_exported_in_pages(world: World) {
    let lines: Vec<String> = (0..10_000).map(|n| format!("user{n:05}@example.com")).collect();
    let data = call_ok(&world, IMPORT, &json!({"csv": lines.join("\n")})).await;
    assert_eq!(data, json!({"lines": 10_000, "added": 10_000, "exists": 0, "failed": 0, "errors": []}));
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let answer = world.call(EXPORT, &json!({ "cursor": cursor })).await;
        assert_eq!(
            (&answer["data"]["count"], &answer["flags"]["pagination"]["limit"]),
            (&json!(1_000), &json!(1_000))
        );
        let mut lines = answer["data"]["csv"].as_str().unwrap().lines();
        assert_eq!(lines.next(), Some(COLUMNS));
        seen.extend(lines.map(|line| line.split(',').next().unwrap().to_owned()));
        cursor = answer["flags"]["pagination"]["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, lines);
    assert_invalid(
        &world.call(IMPORT, &json!({"csv": format!("{}\nx@example.com", lines.join("\n"))})).await,
        &[("/csv", "`csv` has more than 10000 lines; send it in parts")],
    );
}

async fn exported_lists_are_imported_unchanged(world: World) {
    call_ok(&world, ADD, &json!({"items": [
            {"address": "=1+2@example.com", "reason": "hard_bounce", "details": "=HYPERLINK(\"x\"), 550", "origin_message_id": 12},
            {"address": "\"a,b\"@example.com", "reason": "unsubscribe", "expires_at": "2099-01-01T00:00:00Z"},
        ]})).await;
    let csv = call_ok(&world, EXPORT, &json!({})).await["csv"].clone();
    let text = csv.as_str().unwrap();
    assert!(text.contains("\n'=1+2@example.com,hard_bounce,\"'=HYPERLINK(\"\"x\"\"), 550\",12,20"), "{text}");
    assert!(text.contains("\n\"\"\"a,b\"\"@example.com\",unsubscribe,,,20"), "{text}");
    world.admin(&["server", "create", "other", "--account", "dev"]);
    let other = world.admin(&["key", "create", "--server", "other"])["api_key"].as_str().unwrap().to_owned();
    let imported = world.call_as(&other, IMPORT, &json!({ "csv": csv })).await;
    assert_eq!((&imported["data"]["added"], &imported["flags"]), (&json!(2), &json!({})), "{imported}");
    let without_times = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(",20").next().unwrap().to_owned()).collect()
    };
    let copied = world.call_as(&other, EXPORT, &json!({})).await;
    assert_eq!(without_times(copied["data"]["csv"].as_str().unwrap()), without_times(text));
}

async fn invalid_lists_are_refused(world: World) {
    assert_invalid(
        &world.call(IMPORT, &json!({})).await,
        &[("/csv", "`csv` parameter is required but is missing")],
    );
    assert_invalid(
        &world.call(IMPORT, &json!({"csv": ["a@example.com"]})).await,
        &[("/csv", "`csv` should be a `String` but is a `Array`")],
    );
    assert_invalid(
        &world.call(IMPORT, &json!({"csv": "x".repeat((8 << 20) + 1)})).await,
        &[("/csv", "`csv` is longer than 8388608 bytes; send it in parts")],
    );
    let empty = call_ok(&world, IMPORT, &json!({"csv": "\r\n"})).await;
    assert_eq!(empty, json!({"lines": 0, "added": 0, "exists": 0, "failed": 0, "errors": []}));
    assert_eq!(call_ok(&world, EXPORT, &json!({})).await, json!({"csv": format!("{COLUMNS}\n"), "count": 0}));
}
