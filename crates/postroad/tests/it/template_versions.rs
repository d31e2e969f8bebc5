//! Versions of templates from outside: drafts, publishing, rolling back, and which versions are kept.

use postroad_testkit::eventually;
use postroad_testkit::postgres::Database;
use serde_json::{Value, json};

use crate::templates::{by_template, call_ok, call_refused};
use crate::world::{SEND, World, both_engines};

/// Number of the newest versions that are kept, besides the published and the previously published one.
const NEWEST_VERSIONS_KEPT: i64 = 30;

both_engines!(
    a_draft_is_not_sent_and_the_first_version_cannot_be_rolled_back,
    a_template_is_sent_by_its_id,
    an_update_with_an_old_if_version_is_refused,
    concurrent_changes_of_different_texts_are_all_kept,
    a_draft_of_a_layout_changes_no_mail,
    the_published_version_and_the_one_published_before_are_kept_besides_the_newest_thirty,
    a_version_whose_layout_is_gone_is_not_published
);

fn draft(alias: &str) -> Value {
    json!({"alias": alias, "name": alias, "subject": "First", "plain_body": "x"})
}

async fn a_draft_is_not_sent_and_the_first_version_cannot_be_rolled_back(world: World) {
    call_ok(&world, "create", draft("a")).await;
    let sent = world.call(SEND, &by_template(json!({"alias": "a"}))).await;
    assert_eq!(sent["data"]["code"], "TemplateNotPublished", "{sent}");
    let rolled = call_refused(&world, "rollback", json!({"alias": "a"})).await;
    assert_eq!(rolled["code"], "NothingToRollBackTo", "{rolled}");
    call_ok(&world, "publish", json!({"alias": "a"})).await;
    let rolled = call_refused(&world, "rollback", json!({"alias": "a"})).await;
    assert_eq!(rolled["code"], "NothingToRollBackTo", "the first one has none before it: {rolled}");
    world.accepted_id(&by_template(json!({"alias": "a"}))).await;
}

async fn a_template_is_sent_by_its_id(world: World) {
    let mut template = draft("a");
    template["publish"] = json!(true);
    let id = call_ok(&world, "create", template).await["id"].clone();
    let sent = world.accepted_id(&by_template(json!({"id": id}))).await;
    assert_eq!(world.expanded(sent).await["details"]["subject"], "First");
    let unknown = world.call(SEND, &by_template(json!({"id": 987_654_321}))).await;
    assert_eq!(unknown["data"]["errors"][0]["pointer"], "/template", "{unknown}");
}

async fn an_update_with_an_old_if_version_is_refused(world: World) {
    call_ok(&world, "create", draft("a")).await;
    let change = |if_version: i64, subject: &str| json!({"alias": "a", "if_version": if_version, "subject": subject, "name": subject});
    assert_eq!(call_ok(&world, "update", change(1, "Second")).await["version"], 2);
    let late = call_refused(&world, "update", change(1, "Late")).await;
    assert_eq!(late["code"], "VersionConflict", "{late}");
    let kept = call_ok(&world, "get", json!({"alias": "a"})).await;
    assert_eq!(
        (&kept["version"], &kept["subject"], &kept["name"]),
        (&json!(2), &json!("Second"), &json!("Second"))
    );
    assert_eq!(call_ok(&world, "update", change(2, "Third")).await["version"], 3);
}

async fn concurrent_changes_of_different_texts_are_all_kept(world: World) {
    call_ok(&world, "create", draft("a")).await;
    let change = async |field: &str, text: String| {
        let mut change = json!({"alias": "a"});
        change[field] = json!(text);
        call_ok(&world, "update", change).await;
    };
    for round in 0..10 {
        let text = |field: &str| format!("{field} {round}");
        tokio::join!(
            change("subject", text("subject")),
            change("plain_body", text("plain")),
            change("html_body", text("html"))
        );
        let kept = call_ok(&world, "get", json!({"alias": "a"})).await;
        let texts = json!([kept["subject"], kept["plain_body"], kept["html_body"]]);
        assert_eq!(texts, json!([text("subject"), text("plain"), text("html")]), "{kept}");
    }
    assert_eq!(call_ok(&world, "get", json!({"alias": "a"})).await["version"], 31);
}

/// Publishing a template publishes its layout too, if the layout was never published.
async fn a_draft_of_a_layout_changes_no_mail(world: World) {
    let frame =
        |mark: &str| json!({"alias": "frame", "html_body": format!("<i>{mark}</i>{{{{ content }}}}")});
    let mut layout = frame("first");
    layout["name"] = json!("Frame");
    layout["type"] = json!("layout");
    call_ok(&world, "create", layout).await;
    let template = json!({"alias": "a", "name": "A", "layout": "frame", "subject": "x", "html_body": "<p>y</p>",
        "publish": true});
    call_ok(&world, "create", template).await;
    let body = async || {
        let sent = world.accepted_id(&by_template(json!({"alias": "a"}))).await;
        world.expanded(sent).await["html_body"].as_str().unwrap().to_owned()
    };
    assert!(body().await.contains("first"));
    let changed = call_ok(&world, "update", frame("second")).await;
    assert_eq!(
        (&changed["version"], &changed["published_version"], &changed["state"]),
        (&json!(2), &json!(1), &json!("draft"))
    );
    assert!(body().await.contains("first"), "a draft");
    // Publishing the template again leaves the layout's draft alone.
    call_ok(&world, "publish", json!({"alias": "a"})).await;
    assert!(body().await.contains("first"), "still a draft");
    call_ok(&world, "publish", json!({"alias": "frame"})).await;
    assert!(body().await.contains("second"), "published");
}

async fn the_published_version_and_the_one_published_before_are_kept_besides_the_newest_thirty(world: World) {
    call_ok(&world, "create", draft("a")).await;
    let save = async |version: i64| {
        let saved =
            call_ok(&world, "update", json!({"alias": "a", "subject": format!("Text {version}")})).await;
        assert_eq!(saved["version"], version);
    };
    call_ok(&world, "publish", json!({"alias": "a"})).await;
    save(2).await;
    call_ok(&world, "publish", json!({"alias": "a"})).await;
    for version in 3..=NEWEST_VERSIONS_KEPT + 5 {
        save(version).await;
    }
    let versions = call_ok(&world, "versions", json!({"alias": "a", "limit": 100})).await;
    let versions: Vec<i64> =
        versions["items"].as_array().unwrap().iter().map(|item| item["version"].as_i64().unwrap()).collect();
    let newest = (6..=NEWEST_VERSIONS_KEPT + 5).rev();
    assert_eq!(versions, newest.chain([2, 1]).collect::<Vec<_>>());
    let gone = call_refused(&world, "publish", json!({"alias": "a", "version": 5})).await;
    assert_eq!(gone["code"], "TemplateVersionNotFound", "{gone}");
    assert_eq!(call_ok(&world, "rollback", json!({"alias": "a"})).await["published_version"], 1);
    let sent = world.accepted_id(&by_template(json!({"alias": "a"}))).await;
    assert_eq!(world.expanded(sent).await["details"]["subject"], "First");
}

/// Creates a layout, and a template that uses it in its first version only.
async fn create_template_that_left_its_layout(world: &World) {
    let layout =
        json!({"alias": "frame", "name": "Frame", "type": "layout", "html_body": "<p>{{ content }}</p>"});
    call_ok(world, "create", layout).await;
    let template =
        json!({"alias": "a", "name": "A", "layout": "frame", "subject": "Framed", "html_body": "x"});
    call_ok(world, "create", template).await;
    call_ok(world, "update", json!({"alias": "a", "layout": "", "subject": "Bare", "publish": true})).await;
}

async fn assert_publishing_fails(world: &World) {
    for action in ["publish", "rollback"] {
        let answer = call_refused(world, action, json!({"alias": "a", "version": 1})).await;
        let error = json!({"pointer": "/layout", "message": "There is no such layout on this server"});
        assert_eq!((&answer["code"], &answer["errors"]), (&json!("ValidationError"), &json!([error])));
    }
    let sent = world.accepted_id(&by_template(json!({"alias": "a"}))).await;
    assert_eq!(world.expanded(sent).await["details"]["subject"], "Bare", "it is still sent");
}

async fn a_version_whose_layout_is_gone_is_not_published(world: World) {
    create_template_that_left_its_layout(&world).await;
    call_ok(&world, "delete", json!({"alias": "frame"})).await;
    assert_publishing_fails(&world).await;
    let used = call_refused(&world, "update", json!({"alias": "a", "layout": "frame"})).await;
    assert_eq!(used["errors"][0]["pointer"], "/layout", "{used}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_cached_a_deleted_layout_does_not_publish_a_template_with_it() {
    let database = Database::create();
    let url = database.url().to_owned();
    let one = World::start_on(Some(&url), Some(database), &[]);
    let other = World::start_on(Some(&url), None, &[]);
    create_template_that_left_its_layout(&one).await;
    // This render puts the layout into the other node's cache for two seconds.
    let framed = call_ok(&other, "render", json!({"alias": "a", "version": 1, "model": {}})).await;
    assert_eq!(framed["subject"], "Framed");
    call_ok(&one, "delete", json!({"alias": "frame"})).await;
    assert_publishing_fails(&other).await;
}

/// In this test, the layout leaves the other node's cache a second before the template.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_cached_a_template_but_not_its_deleted_layout_reads_the_template_again() {
    let database = Database::create();
    let url = database.url().to_owned();
    let one = World::start_on(Some(&url), Some(database), &[]);
    let other = World::start_on(Some(&url), None, &[]);
    let layout =
        json!({"alias": "frame", "name": "Frame", "type": "layout", "html_body": "<p>{{ content }}</p>"});
    call_ok(&one, "create", layout).await;
    for alias in ["a", "b"] {
        let template = json!({"alias": alias, "name": alias, "layout": "frame", "subject": "Framed", "html_body": "x",
            "publish": true});
        call_ok(&one, "create", template).await;
    }
    other.accepted_id(&by_template(json!({"alias": "b"}))).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    other.accepted_id(&by_template(json!({"alias": "a"}))).await;
    call_ok(&one, "update", json!({"alias": "a", "layout": "", "subject": "Bare", "publish": true})).await;
    call_ok(&one, "delete", json!({"alias": "b"})).await;
    call_ok(&one, "delete", json!({"alias": "frame"})).await;
    eventually(async || {
        let sent = other.accepted_id(&by_template(json!({"alias": "a"}))).await;
        let details = other.expanded(sent).await["details"].take();
        if details["subject"] == "Bare" { Ok(()) } else { Err(details) }
    })
    .await;
}
