//! Values in rendered templates: formats by language and time zone, `null`, and numbers that parsing would change.

use serde_json::{Value, json};

use crate::templates::{by_template, call_ok, call_refused};
use crate::world::{SEND, World, both_engines};

both_engines!(
    values_are_formatted_by_the_language_and_the_time_zone,
    null_in_a_model_is_a_missing_variable,
    numbers_that_parsing_would_change_are_refused_with_their_pointer
);

async fn values_are_formatted_by_the_language_and_the_time_zone(world: World) {
    let body = |mark: &str| {
        let filters = [
            "at|date('long')",
            "at|date('long', tz='Europe/Vienna')",
            "at|time('short')",
            "at|time('short', tz='America/New_York')",
            "at|datetime('short', tz='Asia/Tokyo')",
            "at|date('%d.%m.%Y %H:%M', tz='Europe/Vienna')",
            "n|number(2)",
            "n|currency('EUR')",
            "n|number(1, locale='de')",
            "0|plural('file', 'files')",
            "1|plural('file', 'files')",
            "query|urlencode",
        ];
        let lines = filters.map(|filter| format!("{{{{ {filter} }}}}"));
        format!("{mark}\n{}\n", lines.join("\n"))
    };
    let template = json!({
        "alias": "values", "name": "Values", "subject": "Default", "plain_body": body("default"),
        "locales": {"de": {"subject": "Deutsch", "plain_body": body("deutsch")}},
    });
    call_ok(&world, "create", template).await;
    let model = json!({"at": "2026-03-05T23:30:00Z", "n": 1_234_567.891, "query": "a b&c/ü"});
    for (locale, subject, expected) in EXPECTED {
        let mut call = json!({"alias": "values", "model": model});
        if let Some(locale) = locale {
            call["locale"] = json!(locale);
        }
        let rendered = call_ok(&world, "render", call).await;
        let lines: Vec<&str> = rendered["plain_body"].as_str().unwrap().lines().collect();
        assert_eq!((&rendered["subject"], lines), (&json!(subject), expected.to_vec()), "{locale:?}");
    }
}

type Expected = (Option<&'static str>, &'static str, [&'static str; 13]);

/// Requested language, subject, and the lines of the body.
const EXPECTED: [Expected; 4] = [
    (
        None,
        "Default",
        [
            "default",
            "March 5, 2026",
            "March 6, 2026",
            "11:30\u{202f}PM",
            "6:30\u{202f}PM",
            "3/6/26, 8:30\u{202f}AM",
            "06.03.2026 00:30",
            "1,234,567.89",
            "€1,234,567.89",
            "1.234.567,9",
            "files",
            "file",
            "a%20b%26c/%C3%BC",
        ],
    ),
    (
        Some("fr"),
        "Default",
        [
            "default",
            "5 mars 2026",
            "6 mars 2026",
            "23:30",
            "18:30",
            "06/03/2026 08:30",
            "06.03.2026 00:30",
            "1\u{202f}234\u{202f}567,89",
            "1\u{202f}234\u{202f}567,89\u{a0}€",
            "1.234.567,9",
            "file",
            "file",
            "a%20b%26c/%C3%BC",
        ],
    ),
    (
        Some("de"),
        "Deutsch",
        [
            "deutsch",
            "5. März 2026",
            "6. März 2026",
            "23:30",
            "18:30",
            "06.03.26, 08:30",
            "06.03.2026 00:30",
            "1.234.567,89",
            "1.234.567,89\u{a0}€",
            "1.234.567,9",
            "files",
            "file",
            "a%20b%26c/%C3%BC",
        ],
    ),
    (
        Some("de-AT"),
        "Deutsch",
        [
            "deutsch",
            "5. März 2026",
            "6. März 2026",
            "23:30",
            "18:30",
            "06.03.26, 08:30",
            "06.03.2026 00:30",
            "1\u{a0}234\u{a0}567,89",
            "€\u{a0}1\u{a0}234\u{a0}567,89",
            "1.234.567,9",
            "files",
            "file",
            "a%20b%26c/%C3%BC",
        ],
    ),
];

async fn null_in_a_model_is_a_missing_variable(world: World) {
    let template = json!({
        "alias": "welcome", "name": "Welcome", "publish": true, "subject": "Hi {{ nick|default('friend') }}",
        "plain_body": "Hello\n{{ name }}{% if coupon %}: {{ coupon }}{% endif %}\n",
    });
    call_ok(&world, "create", template).await;
    let model = json!({"name": null, "nmae": "Ann", "nick": null, "coupon": null});
    let missing = call_refused(&world, "render", json!({"alias": "welcome", "model": model})).await;
    let sent = world.call(SEND, &by_template(json!({"alias": "welcome", "model": model}))).await;
    for answer in [&missing, &sent["data"]] {
        assert_eq!(answer["code"], "TemplateVariableMissing", "{answer}");
        assert_eq!(
            (&answer["variable"], &answer["part"], &answer["line"], &answer["did_you_mean"]),
            (&json!("name"), &json!("plain_body"), &json!(2), &json!("nmae")),
            "{answer}"
        );
    }
    let model = json!({"name": "Ann", "nick": null, "coupon": null});
    let rendered = call_ok(&world, "render", json!({"alias": "welcome", "model": model})).await;
    assert_eq!(
        (&rendered["subject"], rendered["plain_body"].as_str().unwrap().trim_end()),
        (&json!("Hi friend"), "Hello\nAnn")
    );
}

async fn numbers_that_parsing_would_change_are_refused_with_their_pointer(world: World) {
    let template =
        json!({"alias": "n", "name": "N", "publish": true, "subject": "{{ n }}", "plain_body": "x"});
    call_ok(&world, "create", template).await;
    // The number is written into the body as text, because serde_json would change it too.
    let render = async |number: &str| {
        let body = format!(r#"{{"alias": "n", "model": {{"n": 1, "a/b": [{{"x": {number}}}]}}}}"#);
        world.request("POST", "/api/v1/templates/render", &[], body).await.json()
    };
    for number in ["123456789012345678901", "-9223372036854775809"] {
        let answer = render(number).await;
        assert_eq!(answer["data"]["code"], "ValidationError", "{answer}");
        let message = format!("`{number}` cannot be kept exactly as a number; send it as a text");
        let error = json!({"pointer": "/model/a~1b/0/x", "message": message});
        assert_eq!(answer["data"]["errors"], json!([error]), "{answer}");
    }
    for number in ["18446744073709551615", "-9223372036854775808", "1.5e300", "0.1"] {
        let answer = render(number).await;
        assert_eq!(answer["status"], "success", "{number}: {answer}");
    }
    let infinite = render("1e999").await;
    assert_eq!(infinite["data"]["code"], "ValidationError", "{infinite}");
    assert!(infinite["data"]["message"].as_str().unwrap().contains("number out of range at line 1 column"));
    let sent = r#"{"to": ["ann@example.com"], "from": "shop@example.test", "template": {"alias": "n", "model": {"n": 98765432109876543210}}}"#;
    let answer: Value = world.request("POST", SEND, &[], sent).await.json();
    assert_eq!(answer["data"]["errors"][0]["pointer"], "/template/model/n", "{answer}");
}
