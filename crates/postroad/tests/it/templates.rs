//! Templates from outside: saved, validated, published, sent by HTTP and SMTP, on both engines.

use std::collections::BTreeMap;
use std::time::Duration;

use postroad_testkit::postgres::Database;
use postroad_testkit::{eventually, eventually_within};
use serde_json::{Value, json};

use crate::smtp::log_in;
use crate::world::{SEND, World, both_engines};

const FROM: &str = "shop@example.test";

pub(crate) async fn call(world: &World, action: &str, body: Value) -> Value {
    world.call(&format!("/api/v1/templates/{action}"), &body).await
}

/// The `data` of a call that has to succeed.
pub(crate) async fn call_ok(world: &World, action: &str, body: Value) -> Value {
    let answer = call(world, action, body).await;
    assert_eq!(answer["status"], "success", "{action}: {answer}");
    answer["data"].clone()
}

/// The `data` of a call that has to fail.
pub(crate) async fn call_refused(world: &World, action: &str, body: Value) -> Value {
    let answer = call(world, action, body).await;
    assert_ne!(answer["status"], "success", "{action}: {answer}");
    answer["data"].clone()
}

fn welcome() -> Value {
    json!({
        "alias": "welcome", "name": "Welcome mail", "publish": true,
        "subject": "Welcome, {{ name }}",
        "html_body": "<p>Hello {{ name }}, your total is {{ total|currency('EUR') }}</p>",
        "locales": {"de": {"subject": "Willkommen, {{ name }}", "html_body": "<p>Hallo {{ name }}: {{ total|currency('EUR') }}</p>"}},
    })
}

/// The body of a send/message request that uses a template.
pub(crate) fn by_template(template: Value) -> Value {
    let mut message = json!({"to": ["ann@example.com"], "from": "Shop <shop@example.test>"});
    message["template"] = template;
    message
}

both_engines!(
    a_template_is_made_shown_changed_and_deleted,
    mistakes_are_reported_with_part_line_and_column,
    mistakes_in_mjml_are_reported_with_line_and_column,
    mistakes_in_styles_are_reported_with_line_and_column,
    validate_reports_all_mistakes_together,
    validate_renders_the_sample_model_in_every_language,
    a_mail_has_the_texts_of_its_template_and_counts_for_the_template,
    an_idempotency_key_repeats_only_the_same_template_call,
    templates_of_another_server_are_reported_as_unknown,
    every_mail_has_the_texts_of_a_single_version_while_versions_change,
    a_layout_surrounds_the_bodies_and_styles_are_inlined,
    a_diff_shows_what_changes_in_the_mail,
    inline_images_of_a_template_keep_their_content_id_over_smtp,
    a_repeated_submission_is_answered_before_its_template_is_rendered,
    a_template_is_sent_by_smtp_with_its_model_as_the_body
);

async fn a_template_is_made_shown_changed_and_deleted(world: World) {
    let made = call_ok(&world, "create", welcome()).await;
    assert_eq!(
        (&made["version"], &made["state"], &made["type"]),
        (&json!(1), &json!("published"), &json!("standard"))
    );
    assert_eq!(made["plain_body"], "Hello {{ name }}, your total is {{ total|currency('EUR') }}\n");
    assert_eq!(made["plain_body_generated"], true);
    let id = made["id"].clone();
    assert_eq!(call_ok(&world, "get", json!({"id": id})).await, made);
    assert_eq!(call_ok(&world, "get", json!({"alias": "welcome"})).await, made);
    let taken = call_refused(&world, "create", welcome()).await;
    assert_eq!(taken["code"], "TemplateAliasTaken");
    let mut same_name = welcome();
    same_name["alias"] = json!("other");
    let taken = call_refused(&world, "create", same_name.clone()).await;
    assert_eq!(
        (&taken["code"], &taken["errors"][0]["pointer"]),
        (&json!("ValidationError"), &json!("/name"))
    );
    same_name["name"] = json!("Another");
    call_ok(&world, "create", same_name).await;
    let taken = call_refused(&world, "update", json!({"alias": "other", "name": welcome()["name"]})).await;
    assert_eq!(taken["errors"][0]["pointer"], "/name", "{taken}");
    call_ok(&world, "update", json!({"alias": "other", "name": "Another", "subject": "x"})).await;
    call_ok(&world, "delete", json!({"alias": "other"})).await;

    let changed = call_ok(&world, "update", json!({"alias": "welcome", "subject": "Hi {{ name }}"})).await;
    assert_eq!(
        (&changed["version"], &changed["published_version"], &changed["state"]),
        (&json!(2), &json!(1), &json!("draft"))
    );
    assert_eq!(changed["html_body"], made["html_body"], "fields that are left out stay");
    assert_eq!(
        call_ok(&world, "get", json!({"id": id, "version": 1})).await["subject"],
        "Welcome, {{ name }}"
    );
    let renamed = call_ok(&world, "update", json!({"id": id, "new_alias": "hello", "name": "Hello"})).await;
    assert_eq!(
        (&renamed["alias"], &renamed["version"]),
        (&json!("hello"), &json!(2)),
        "a new name makes no new version"
    );

    let listed = call_ok(&world, "list", json!({})).await;
    assert_eq!(listed["items"][0]["alias"], "hello");
    assert_eq!(listed["items"][0]["state"], "draft");
    assert!(listed["items"][0].get("html_body").is_none());
    let versions = call_ok(&world, "versions", json!({"id": id})).await;
    let states: Vec<_> =
        versions["items"].as_array().unwrap().iter().map(|v| v["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["draft", "published"]);
    let page = call(&world, "versions", json!({"id": id, "limit": 1})).await;
    let cursor = &page["flags"]["pagination"]["next_cursor"];
    let rest = call_ok(&world, "versions", json!({"id": id, "limit": 1, "cursor": cursor})).await;
    assert_eq!(rest["items"][0]["version"], 1);

    assert_eq!(call_ok(&world, "delete", json!({"id": id})).await, json!({"id": id, "deleted": true}));
    for action in ["get", "delete", "publish", "rollback", "versions", "render", "diff"] {
        let gone = call_refused(&world, action, json!({"alias": "hello"})).await;
        assert_eq!(gone["code"], "TemplateNotFound", "{action}");
    }
    assert_eq!(call_refused(&world, "get", json!({})).await["code"], "ValidationError");
}

async fn mistakes_are_reported_with_part_line_and_column(world: World) {
    let body = json!({"name": "x", "subject": "{{ a", "html_body": "<p>\n  {{ b|uper }}</p>",
            "locales": {"de": {"html_body": "{% for x in y %}"}}});
    let found = call_ok(
        &world,
        "validate",
        json!({"subject": body["subject"], "html_body": body["html_body"], "locales": body["locales"]}),
    )
    .await;
    assert_eq!(found["valid"], false);
    let parts: Vec<_> =
        found["errors"].as_array().unwrap().iter().map(|e| e["part"].as_str().unwrap()).collect();
    assert!(parts.contains(&"html_body") && parts.contains(&"locales/de/html_body"), "{found}");
    let html = found["errors"].as_array().unwrap().iter().find(|e| e["part"] == "html_body").unwrap();
    assert_eq!(html["line"], 2, "{html}");
    assert!(html["column"].as_i64().unwrap() > 2, "{html}");
    assert!(html["message"].as_str().unwrap().contains("did you mean `upper`?"), "{html}");
    let refusal = call_refused(&world, "create", body).await;
    assert_eq!(refusal["code"], "TemplateInvalid");
    assert!(
        refusal["errors"].as_array().unwrap().iter().any(|e| e["part"] == "html_body" && e["line"] == 2),
        "{refusal}"
    );

    let good = call_ok(&world, "validate", json!({"subject": "{{ user.name }}", "html_body": "{% for i in items %}{{ i.price|number }}{% endfor %}"})).await;
    assert_eq!(good["valid"], true);
    assert_eq!(good["variables"], json!(["items", "items[].price", "user.name"]));
    assert_eq!(good["suggested_model"], json!({"items": [{"price": 1}], "user": {"name": "name_value"}}));
    for hostile in [
        "{% include 'x' %}",
        "{% macro m() %}{{ m() }}{% endmacro %}",
        "{{ x.__class__() }}",
        "{% extends '/etc/passwd' %}",
    ] {
        let found = call_ok(&world, "validate", json!({"subject": "x", "html_body": hostile})).await;
        assert_eq!(found["valid"], false, "{hostile}");
    }
}

async fn mistakes_in_mjml_are_reported_with_line_and_column(world: World) {
    let body =
        |text: &str| format!("<mjml>\n<mj-body>{{# a\nnote #}}\n  {{{{ name }}}}{text}\n</mj-body>\n</mjml>");
    // The mistakes are behind template tags, which have another length in the text that the MJML parser sees.
    for (text, line, column) in [("<mj-section>", 5, 1), ("<mj-include path='x' />", 4, 14)] {
        let request = json!({"subject": "x", "format": "mjml", "html_body": body(text)});
        let found = call_ok(&world, "validate", request).await;
        assert_eq!(found["valid"], false, "{text}: {found}");
        let error = &found["errors"][0];
        assert_eq!((&error["line"], &error["column"]), (&json!(line), &json!(column)), "{text}: {error}");
        assert!(error["message"].as_str().unwrap().starts_with("this is not valid MJML: "), "{error}");
    }
}

async fn mistakes_in_styles_are_reported_with_line_and_column(world: World) {
    let html = "<style>\n  p { color: {{ colour }} }\n  td { color: 'red }\n</style><p>{{ name }}</p>";
    let mjml =
        "<mjml>\n<mj-head><mj-style>\n p { color: red\n</mj-style></mj-head><mj-body></mj-body></mjml>";
    for (format, source, line, column, message) in [
        ("html", html, 3, 15, "this is not valid CSS: a quoted text does not end on its line"),
        ("mjml", mjml, 3, 4, "this is not valid CSS: `{` without `}`"),
    ] {
        let request = json!({"subject": "x", "format": format, "html_body": source});
        let found = call_ok(&world, "validate", request).await;
        let error = json!({"part": "html_body", "line": line, "column": column, "message": message});
        assert_eq!((&found["valid"], &found["errors"]), (&json!(false), &json!([error])), "{source}");
    }
    // Without inlining, styles stay as they are.
    let own = json!({"subject": "x", "html_body": html, "inline_css": false});
    assert_eq!(call_ok(&world, "validate", own).await["valid"], true);
}

async fn validate_renders_the_sample_model_in_every_language(world: World) {
    let body = json!({
        "subject": "Hello {{ name }}", "html_body": "<p>{{ total }}</p>",
        "locales": {
            "de": {"subject": "Hallo {{ vorname }}"},
            "es": {"subject": "Hola {{ name }}"},
            "fr": {"html_body": "<p>\n{{ total|currency('EUR') }}</p>"},
        },
        "sample_model": {"name": "Ann", "total": "nine"},
    });
    let found = call_ok(&world, "validate", body.clone()).await;
    let errors: Vec<String> = found["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| format!("{} {}", error["part"].as_str().unwrap(), error["line"]))
        .collect();
    assert_eq!(errors, ["locales/de/subject 1", "locales/fr/html_body 2"], "{found:#}");
    assert_eq!(found["valid"], false, "{found:#}");
    let mut fine = body;
    fine["sample_model"] = json!({"name": "Ann", "vorname": "Anna", "total": 9});
    let found = call_ok(&world, "validate", fine).await;
    assert_eq!(found["valid"], true, "{found:#}");
}

async fn validate_reports_all_mistakes_together(world: World) {
    let body = json!({
        "subject": "{{ a|uper }}", "plain_body": "{{ x|lowr }}\n{% if y %}{{ z is oddd }}{% endif %}",
        "html_body": "<p>{{ a|uper|trimm }}</p>\n{% for i in list %}{{ i|uper }}{% endfor %}\n{{ f() }}{% filter upper %}x{% endfilter %}",
        "locales": {"de": {"subject": "{{ a|uper }}", "html_body": "{{ b"}},
    });
    let found = call_ok(&world, "validate", body).await;
    let places: Vec<String> = found["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| format!("{} {}", error["part"].as_str().unwrap(), error["line"]))
        .collect();
    assert_eq!(
        places,
        [
            "locales/de/subject 1",
            "locales/de/html_body 1",
            "subject 1",
            "html_body 1",
            "html_body 1",
            "html_body 2",
            "html_body 3",
            "html_body 3",
            "plain_body 1",
            "plain_body 2",
        ],
        "{found:#}"
    );
    let texts = json!({"subject": "{{ name }}", "html_body": "{{ user.first }} {{ user.last }} {{ total }} {{ note|default('') }}"});
    let mut sampled = texts.clone();
    sampled["sample_model"] = json!({"nam": "Ann", "user": {"first": "A"}});
    let found = call_ok(&world, "validate", sampled).await;
    let messages: Vec<&str> =
        found["errors"].as_array().unwrap().iter().map(|error| error["message"].as_str().unwrap()).collect();
    assert_eq!(
        (&found["valid"], messages),
        (
            &json!(false),
            vec![
                "the sample model has no variable `name`; did you mean `nam`?",
                "the sample model has no variable `user.last`",
                "the sample model has no variable `total`",
            ]
        ),
        "missing variables are not reported again for the plain text, which is generated from the HTML"
    );
    let mut sampled = texts;
    sampled["sample_model"] = json!({"name": "Ann", "user": {"first": "A", "last": "B"}, "total": 1});
    assert_eq!(call_ok(&world, "validate", sampled).await["valid"], true);
}

async fn a_mail_has_the_texts_of_its_template_and_counts_for_the_template(world: World) {
    call_ok(&world, "create", welcome()).await;
    let call = by_template(
        json!({"alias": "welcome", "model": {"name": "Ann <b>", "total": 9.5}, "locale": "de-AT"}),
    );
    let id = world.accepted_id(&call).await;
    let message = world.expanded(id).await;
    assert_eq!(message["details"]["subject"], "Willkommen, Ann <b>");
    assert_eq!(message["html_body"].as_str().unwrap().trim(), "<p>Hallo Ann &lt;b&gt;: €\u{a0}9,50</p>");
    assert_eq!(message["plain_body"].as_str().unwrap().trim(), "Hallo Ann <b>: €\u{a0}9,50");
    let mut own = by_template(json!({"alias": "welcome", "model": {"name": "Ann", "total": 1}}));
    own["subject"] = json!("My own");
    assert_eq!(world.expanded(world.accepted_id(&own).await).await["details"]["subject"], "My own");
    own["html_body"] = json!("x");
    let both = world.call(SEND, &own).await;
    assert_eq!(both["data"]["errors"][0]["pointer"], "/html_body", "{both}");

    let missing = world
        .call(SEND, &by_template(json!({"alias": "welcome", "model": {"nmae": "Ann", "total": 1}})))
        .await;
    assert_eq!(missing["data"]["code"], "TemplateVariableMissing", "{missing}");
    assert_eq!(
        (&missing["data"]["variable"], &missing["data"]["part"], &missing["data"]["line"]),
        (&json!("name"), &json!("subject"), &json!(1))
    );
    assert_eq!(missing["data"]["did_you_mean"], "nmae");
    let injected = world
        .call(
            SEND,
            &by_template(
                json!({"alias": "welcome", "model": {"name": "x\r\nBcc: eve@example.com", "total": 1}}),
            ),
        )
        .await;
    assert_eq!(injected["data"]["code"], "TemplateRenderingFailed", "{injected}");
    let unknown = world.call(SEND, &by_template(json!({"alias": "other"}))).await;
    assert_eq!(
        unknown["data"]["errors"],
        json!([{"pointer": "/template", "message": "There is no template `other` on this server"}])
    );

    eventually(async || {
        let top = world.call("/api/v1/analytics/top", &json!({"dimension": "template"})).await;
        let found = top["data"]["items"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|row| row["template"] == "welcome" || row["value"] == "welcome");
        if found { Ok(()) } else { Err(format!("not counted: {top}")) }
    })
    .await;
}

async fn an_idempotency_key_repeats_only_the_same_template_call(world: World) {
    call_ok(&world, "create", welcome()).await;
    let mut call = by_template(json!({"alias": "welcome", "model": {"name": "Ann", "total": 1}}));
    call["idempotency_key"] = json!("one");
    let first = world.call(SEND, &call).await;
    let again = world.call(SEND, &call).await;
    assert_eq!((&first["data"], &again["flags"]["idempotent_replay"]), (&again["data"], &json!(true)));
    call["template"]["model"]["name"] = json!("Bob");
    assert_eq!(world.call(SEND, &call).await["data"]["code"], "IdempotencyConflict");
}

async fn templates_of_another_server_are_reported_as_unknown(world: World) {
    let id = call_ok(&world, "create", welcome()).await["id"].clone();
    world.admin(&["account", "create", "other"]);
    world.admin(&["server", "create", "other", "--account", "other"]);
    let key = world.admin(&["key", "create", "--server", "other"])["api_key"].as_str().unwrap().to_owned();
    for action in ["get", "update", "delete", "render", "versions", "publish", "rollback", "diff"] {
        let path = format!("/api/v1/templates/{action}");
        let foreign = world.call_as(&key, &path, &json!({"id": id})).await;
        let unknown = world.call_as(&key, &path, &json!({"id": 987_654_321})).await;
        assert_eq!(foreign["data"], unknown["data"], "{action}");
        assert_eq!(foreign["data"]["code"], "TemplateNotFound", "{action}: {foreign}");
    }
    let framed = json!({"name": "x", "subject": "x", "html_body": "x", "layout": id});
    let answer = world.call_as(&key, "/api/v1/templates/create", &framed).await;
    assert_eq!(answer["data"]["errors"][0]["pointer"], "/layout", "{answer}");
    let (_, read) = world.new_key(&["--scope", "read"]);
    let denied = world.call_as(&read, "/api/v1/templates/delete", &json!({"id": id})).await;
    assert_eq!(denied["data"]["code"], "AccessDenied");
    assert_eq!(world.call_as(&read, "/api/v1/templates/get", &json!({"id": id})).await["status"], "success");
}

async fn every_mail_has_the_texts_of_a_single_version_while_versions_change(world: World) {
    let body = |mark: &str| json!({"subject": format!("{mark} {{{{ n }}}}"), "html_body": format!("<p>{mark} {{{{ n }}}}</p>")});
    let mut first = body("one");
    first
        .as_object_mut()
        .unwrap()
        .extend(json!({"alias": "v", "name": "V", "publish": true}).as_object().unwrap().clone());
    call_ok(&world, "create", first).await;
    let mut second = body("two");
    second["alias"] = json!("v");
    call_ok(&world, "update", second).await;
    let draft = world.call(SEND, &by_template(json!({"alias": "v", "model": {"n": 0}}))).await;
    let id = draft["data"]["messages"]["ann@example.com"]["id"].as_i64().unwrap();
    assert_eq!(world.expanded(id).await["details"]["subject"], "one 0", "a draft is not sent");

    let send = async |count: usize| {
        let mut ids = Vec::new();
        for n in 0..count {
            ids.push(world.accepted_id(&by_template(json!({"alias": "v", "model": {"n": n}}))).await);
        }
        ids
    };
    // Publishes and rolls back in turn, and sends one message after each. Other sends go on meanwhile.
    let alternate_versions = async {
        let mut ids = Vec::new();
        for _ in 0..6 {
            for (action, mark) in [("publish", "two 0"), ("rollback", "one 0")] {
                call_ok(&world, action, json!({"alias": "v"})).await;
                // The message has the new version, even if the other sends had cached the old one.
                let sent = send(1).await;
                assert_eq!(world.expanded(sent[0]).await["details"]["subject"], mark, "after {action}");
                ids.extend(sent);
            }
        }
        ids
    };
    let (ids, more, after_changes) = tokio::join!(send(30), send(30), alternate_versions);
    let mut marks = BTreeMap::new();
    for id in ids.into_iter().chain(more).chain(after_changes) {
        let message = world.expanded(id).await;
        let mark = message["details"]["subject"].as_str().unwrap().split(' ').next().unwrap().to_owned();
        *marks.entry(mark.clone()).or_insert(0) += 1;
        assert!(message["html_body"].as_str().unwrap().contains(&format!("<p>{mark} ")), "{message}");
        assert!(message["plain_body"].as_str().unwrap().starts_with(&mark), "{message}");
    }
    assert!(marks.len() == 2 && marks.values().all(|count| *count >= 6), "both were sent: {marks:?}");
    let rolled = call_ok(&world, "get", json!({"alias": "v"})).await;
    assert_eq!((&rolled["published_version"], &rolled["latest_version"]), (&json!(1), &json!(2)));
    call_ok(&world, "delete", json!({"alias": "v"})).await;
    let gone = world.call(SEND, &by_template(json!({"alias": "v", "model": {"n": 1}}))).await;
    assert_eq!(gone["data"]["code"], "ValidationError", "{gone}");
}

async fn a_layout_surrounds_the_bodies_and_styles_are_inlined(world: World) {
    let layout = json!({"alias": "frame", "name": "Frame", "type": "layout", "publish": true,
            "html_body": "<html><head><style>p { color: red }</style></head><body><h1>{{ company }}</h1>{{ content }}</body></html>"});
    call_ok(&world, "create", layout).await;
    let mail = json!({"alias": "m", "name": "M", "layout": "frame", "publish": true, "subject": "x",
            "html_body": "<style>td { color: blue }</style><table>{% for r in rows %}<tr><td>{{ r }}</td></tr>{% endfor %}</table>"});
    let made = call_ok(&world, "create", mail).await;
    assert_eq!(made["layout"], "frame");
    let model = json!({"company": "Us & Co", "rows": ["<1>", "2"]});
    let html = call_ok(&world, "render", json!({"alias": "m", "model": model})).await["html_body"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(html.contains("<h1>Us &amp; Co</h1>"), "{html}");
    assert!(html.contains("color: blue") && html.contains("&lt;1&gt;</td>"), "{html}");
    assert_eq!(call_refused(&world, "delete", json!({"alias": "frame"})).await["code"], "TemplateInUse");
    let missing = call_refused(&world, "render", json!({"alias": "m", "model": {"rows": []}})).await;
    assert_eq!(
        (&missing["variable"], &missing["part"]),
        (&json!("company"), &json!("layout/html_body")),
        "{missing}"
    );
    let without_content =
        call_refused(&world, "create", json!({"name": "x", "type": "layout", "html_body": "<p>x</p>"})).await;
    assert_eq!(without_content["code"], "TemplateInvalid");

    let mjml = json!({"name": "J", "alias": "j", "format": "mjml", "subject": "x", "publish": true,
            "html_body": "<mjml><mj-body>{% for i in items %}<mj-section><mj-column><mj-text>Hi {{ i }}</mj-text></mj-column></mj-section>{% endfor %}</mj-body></mjml>"});
    call_ok(&world, "create", mjml).await;
    let made = call_ok(&world, "render", json!({"alias": "j", "model": {"items": ["a", "b"]}})).await;
    let html = made["html_body"].as_str().unwrap();
    assert!(html.contains("Hi a") && html.contains("Hi b") && html.contains("<table"), "{html}");
    assert!(made["plain_body"].as_str().unwrap().contains("Hi b"), "{made}");
}

async fn a_diff_shows_what_changes_in_the_mail(world: World) {
    call_ok(&world, "create", welcome()).await;
    let sample = json!({"name": "Ann", "total": 2});
    call_ok(
        &world,
        "update",
        json!({"alias": "welcome", "subject": "Hi {{ name }}", "sample_model": sample}),
    )
    .await;
    let diff = call_ok(&world, "diff", json!({"alias": "welcome"})).await;
    assert_eq!((&diff["from"], &diff["to"], &diff["model"]), (&json!(1), &json!(2), &sample));
    assert_eq!(diff["parts"][0]["part"], "subject");
    assert!(diff["parts"][0]["diff"].as_str().unwrap().contains("-Welcome, Ann\n+Hi Ann\n"), "{diff}");
    assert_eq!(diff["parts"][1]["changed"], false);
    let same = call_ok(&world, "diff", json!({"alias": "welcome", "from": 2, "to": 2})).await;
    assert_eq!(same["changed"], false);
    assert_eq!(
        call_refused(&world, "diff", json!({"alias": "welcome", "from": 9})).await["code"],
        "TemplateVersionNotFound"
    );
}

async fn inline_images_of_a_template_keep_their_content_id_over_smtp(world: World) {
    let html = "<p>{{ name }} <img src=\"cid:logo@shop\"></p>";
    call_ok(
        &world,
        "create",
        json!({"alias": "logo", "name": "Logo", "publish": true, "subject": "x", "html_body": html}),
    )
    .await;
    let mut client = log_in(&world).await;
    let message = format!(
        "From: Shop <{FROM}>\r\nTo: ann@example.com\r\nX-Postroad-Template: logo\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/json\r\n\r\n{{\"name\": \"Ann\"}}\r\n\
             --b\r\nContent-Type: image/png; name=logo.png\r\nContent-ID: <logo@shop>\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw0=\r\n\
             --b\r\nContent-Type: text/csv; name=list.csv\r\nContent-Disposition: attachment; filename=list.csv\r\n\r\na,b\r\n--b--\r\n"
    );
    let reply = client.deliver(FROM, &["ann@example.com"], &message).await;
    assert!(reply.starts_with("250 "), "{reply}");
    let caught = crate::delivery::inbox::wait_for_mail_to(&world, "ann@example.com").await;
    let raw = world.client.get(&format!("/dev/messages/{}/raw", caught["id"])).await.unwrap().text();
    assert!(raw.contains("Content-ID: <logo@shop>") && raw.contains("multipart/related"), "{raw}");
    assert_eq!(raw.matches("Content-ID:").count(), 1, "{raw}");
    assert!(raw.contains("filename=\"list.csv\"") || raw.contains("filename=list.csv"), "{raw}");
}

async fn a_repeated_submission_is_answered_before_its_template_is_rendered(world: World) {
    call_ok(&world, "create", welcome()).await;
    let mut client = log_in(&world).await;
    let message = format!(
        "From: Shop <{FROM}>\r\nTo: ann@example.com\r\nX-Postroad-Template: welcome\r\nX-Idempotency-Key: once\r\n\r\n\
             {{\"name\": \"Ann\", \"total\": 3}}"
    );
    let first = client.deliver(FROM, &["ann@example.com"], &message).await;
    assert!(first.starts_with("250 2.0.0 OK queued as "), "{first}");
    call_ok(&world, "delete", json!({"alias": "welcome"})).await;
    assert_eq!(
        client.deliver(FROM, &["ann@example.com"], &message).await,
        first,
        "the reply is the first one, although the template is gone"
    );
    let other = client.deliver(FROM, &["ann@example.com"], &message.replace("once", "twice")).await;
    assert!(other.starts_with("550 5.6.0 There is no template"), "{other}");
}

async fn a_template_is_sent_by_smtp_with_its_model_as_the_body(world: World) {
    call_ok(&world, "create", welcome()).await;
    let mut client = log_in(&world).await;
    let submit = |headers: &str, body: &str| {
        format!("From: Shop <{FROM}>\r\nTo: Ann <ann@example.com>\r\n{headers}\r\n{body}")
    };
    let template =
        "X-Postroad-Template: welcome\r\nX-Postroad-Template-Locale: de\r\nX-Postroad-Tag: hello\r\n";
    let reply =
        client.deliver(FROM, &["ann@example.com"], &submit(template, r#"{"name": "Zoë", "total": 3}"#)).await;
    assert!(reply.starts_with("250 2.0.0 OK queued as "), "{reply}");
    let json_part =
        format!("{template}Subject: Own subject\r\nMIME-Version: 1.0\r\nContent-Type: application/json\r\n");
    let second = client
        .deliver(FROM, &["ann@example.com"], &submit(&json_part, r#"{"name": "Bob", "total": 3}"#))
        .await;
    assert!(second.starts_with("250 "), "{second}");

    let missing = client.deliver(FROM, &["ann@example.com"], &submit(template, r#"{"total": 3}"#)).await;
    assert!(missing.starts_with("550 5.6.0 The model has no variable `name`"), "{missing}");
    let no_json = client.deliver(FROM, &["ann@example.com"], &submit(template, "Hello")).await;
    assert!(
        no_json.starts_with("550 5.6.0 The body of a message by template must be a JSON object"),
        "{no_json}"
    );
    let inexact = "{\"name\": \"Zoë\",\r\n\"total\": 123456789012345678901}";
    let inexact = client.deliver(FROM, &["ann@example.com"], &submit(template, inexact)).await;
    assert!(
        inexact.starts_with(
            "550 5.6.0 The model in the body of the message has a whole number of more than 64 bits in line 2"
        ),
        "{inexact}"
    );
    let unknown =
        client.deliver(FROM, &["ann@example.com"], &submit("X-Postroad-Template: other\r\n", "{}")).await;
    assert!(unknown.starts_with("550 5.6.0 There is no template `other`"), "{unknown}");

    let inbox = eventually(async || {
        let inbox = world.client.get("/dev/messages?limit=10").await.unwrap().json();
        if inbox["messages"].as_array().is_some_and(|all| all.len() == 2) { Ok(inbox) } else { Err(inbox) }
    })
    .await;
    let subjects: Vec<_> =
        inbox["messages"].as_array().unwrap().iter().map(|m| m["subject"].as_str().unwrap()).collect();
    assert!(subjects.contains(&"Willkommen, Zoë") && subjects.contains(&"Own subject"), "{subjects:?}");
    for message in inbox["messages"].as_array().unwrap() {
        let raw = world.client.get(&format!("/dev/messages/{}/raw", message["id"])).await.unwrap().text();
        assert!(
            !raw.to_lowercase().contains("x-postroad-template") && !raw.contains("application/json"),
            "{raw}"
        );
        assert!(raw.contains("multipart/alternative"), "{raw}");
        assert_eq!(raw.lines().filter(|line| line.starts_with("Subject:")).count(), 1, "{raw}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_one_node_rolls_back_is_used_on_the_other_within_three_seconds() {
    let database = Database::create();
    let url = database.url().to_owned();
    let one = World::start_on(Some(&url), Some(database), &[]);
    let other = World::start_on(Some(&url), None, &[]);
    let text = |mark: &str| json!({"alias": "v", "name": "V", "publish": true, "subject": mark, "html_body": "<p>x</p>"});
    call_ok(&one, "create", text("first")).await;
    call_ok(&one, "update", text("second")).await;
    let subject = async || {
        let id = other.accepted_id(&by_template(json!({"alias": "v", "model": {}}))).await;
        other.expanded(id).await["details"]["subject"].as_str().unwrap().to_owned()
    };
    assert_eq!(subject().await, "second");
    call_ok(&one, "rollback", json!({"alias": "v"})).await;
    eventually_within(Duration::from_secs(3), async || {
        let subject = subject().await;
        if subject == "first" { Ok(()) } else { Err(format!("the other node still sends {subject:?}")) }
    })
    .await;
    assert_eq!(subject().await, "first", "the other node keeps sending the first version");
}
