//! Templates: versions that never change, which one is published, layouts, limits.

use postroad_model::TemplateId;
use postroad_store::{
    NewTemplate, StoreError, Template, TemplateChange, TemplateContent, TemplateKind, TemplateRef,
    TemplateTexts, UpdateResult,
};

use crate::domains::undo_setup_changes;
use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    a_template_is_found_by_id_and_alias_on_its_server_only,
    every_change_of_texts_is_a_version_and_old_versions_are_removed,
    publishing_remembers_the_previous_version,
    an_alias_is_taken_once_and_free_again_after_deletion,
    a_layout_stays_while_it_is_used,
    a_server_has_a_limited_number_of_templates,
    duplicate_template_names_become_unique_in_the_migration,
);

/// Number of newest versions that are kept.
const VERSIONS_KEPT_MAX: usize = 3;

fn content(subject: &str) -> TemplateContent {
    let texts = TemplateTexts { subject: Some(subject.into()), ..TemplateTexts::default() };
    TemplateContent { texts, ..TemplateContent::default() }
}

fn new(fixture: &Fixture, alias: &str) -> NewTemplate {
    NewTemplate {
        server_id: fixture.server,
        alias: Some(alias.into()),
        name: format!("The {alias}"),
        kind: TemplateKind::Standard,
        content: content("one"),
    }
}

async fn create(fixture: &Fixture, alias: &str) -> Template {
    fixture.store.create_template(new(fixture, alias), 100).await.expect("the store works")
}

async fn change(fixture: &Fixture, id: TemplateId, subject: &str) -> Template {
    let change = TemplateChange { content: Some(content(subject)), ..TemplateChange::default() };
    expect_done(fixture.store.change_template(fixture.server, id, change, VERSIONS_KEPT_MAX).await)
}

fn expect_done(changed: Result<UpdateResult<Template>, StoreError>) -> Template {
    match changed.expect("the store works") {
        UpdateResult::Done(template) => template,
        UpdateResult::OtherVersion(version) => panic!("it has version {version}"),
    }
}

async fn versions(fixture: &Fixture, id: TemplateId) -> Vec<i64> {
    let found = fixture.store.list_template_versions(fixture.server, id, None, 100).await;
    found.expect("the store works").into_iter().map(|info| info.version).collect()
}

async fn a_template_is_found_by_id_and_alias_on_its_server_only(fixture: Fixture) {
    let made = create(&fixture, "welcome").await;
    assert_eq!((made.latest, made.published, made.previous), (1, None, None));
    for by in [TemplateRef::Id(made.id), TemplateRef::Alias("welcome".into())] {
        let found = fixture.store.find_template(fixture.server, by.clone()).await.expect("the store works");
        assert_eq!(found.as_ref(), Some(&made));
        let foreign = fixture.store.find_template(fixture.other_server, by).await.expect("the store works");
        assert_eq!(foreign, None);
    }
    let (other, id) = (fixture.other_server, made.id);
    assert!(fixture.store.find_template_version(other, id, 1).await.expect("the store works").is_none());
    assert!(fixture.store.list_template_versions(other, id, None, 9).await.expect("it works").is_empty());
    assert!(matches!(fixture.store.publish_template(other, id, 1).await, Err(StoreError::NotFound)));
    assert!(matches!(fixture.store.delete_template(other, id).await, Err(StoreError::NotFound)));
    let change = TemplateChange { name: Some("x".into()), ..TemplateChange::default() };
    assert!(matches!(fixture.store.change_template(other, id, change, 3).await, Err(StoreError::NotFound)));
    let second = create(&fixture, "second").await;
    let page = fixture.store.list_templates(fixture.server, None, Some(made.id), 10).await.expect("it works");
    assert_eq!(page, [second]);
}

async fn every_change_of_texts_is_a_version_and_old_versions_are_removed(fixture: Fixture) {
    let id = create(&fixture, "welcome").await.id;
    fixture.store.publish_template(fixture.server, id, 1).await.expect("the store works");
    let renamed =
        TemplateChange { name: Some("Other".into()), alias: Some(None), ..TemplateChange::default() };
    let renamed =
        expect_done(fixture.store.change_template(fixture.server, id, renamed, VERSIONS_KEPT_MAX).await);
    assert_eq!((renamed.latest, renamed.name.as_str(), renamed.alias), (1, "Other", None));
    for at in 2..=6 {
        assert_eq!(change(&fixture, id, &format!("text {at}")).await.latest, at);
    }
    assert_eq!(versions(&fixture, id).await, [6, 5, 4, 1], "the published one stays");
    let late = TemplateChange { if_latest: Some(5), ..TemplateChange::default() };
    let late = TemplateChange { name: Some("Late".into()), content: Some(content("late")), ..late };
    let late = fixture.store.change_template(fixture.server, id, late, VERSIONS_KEPT_MAX).await;
    assert!(matches!(late, Ok(UpdateResult::OtherVersion(6))), "{late:?}");
    assert_eq!(versions(&fixture, id).await, [6, 5, 4, 1], "nothing was saved");
    let found = fixture.store.find_template_version(fixture.server, id, 5).await.expect("the store works");
    assert_eq!(found.expect("it is kept").content, content("text 5"));
    assert!(matches!(fixture.store.publish_template(fixture.server, id, 2).await, Err(StoreError::NotFound)));
    let template = fixture.store.find_template(fixture.server, TemplateRef::Id(id)).await.expect("it works");
    assert_eq!(template.expect("it is there").published, Some(1), "nothing half done");
}

async fn publishing_remembers_the_previous_version(fixture: Fixture) {
    let id = create(&fixture, "welcome").await.id;
    change(&fixture, id, "two").await;
    let publish = async |version| {
        let made = fixture.store.publish_template(fixture.server, id, version).await.expect("it works");
        (made.published, made.previous)
    };
    assert_eq!(publish(1).await, (Some(1), None));
    assert_eq!(publish(2).await, (Some(2), Some(1)));
    assert_eq!(publish(2).await, (Some(2), Some(1)), "again changes nothing");
    assert_eq!(publish(1).await, (Some(1), Some(2)));
}

async fn an_alias_is_taken_once_and_free_again_after_deletion(fixture: Fixture) {
    let first = create(&fixture, "welcome").await;
    let again = fixture.store.create_template(new(&fixture, "welcome"), 100).await;
    assert!(matches!(again, Err(StoreError::Conflict)), "{again:?}");
    let foreign = NewTemplate { server_id: fixture.other_server, ..new(&fixture, "welcome") };
    fixture.store.create_template(foreign, 100).await.expect("each server has its own");
    let second = create(&fixture, "second").await;
    let taken = TemplateChange { alias: Some(Some("welcome".into())), ..TemplateChange::default() };
    let taken = fixture.store.change_template(fixture.server, second.id, taken, VERSIONS_KEPT_MAX).await;
    assert!(matches!(taken, Err(StoreError::Conflict)), "{taken:?}");
    fixture.store.delete_template(fixture.server, first.id).await.expect("it works");
    assert!(versions(&fixture, first.id).await.is_empty());
    create(&fixture, "welcome").await;
}

async fn a_layout_stays_while_it_is_used(fixture: Fixture) {
    let layout = NewTemplate { kind: TemplateKind::Layout, ..new(&fixture, "frame") };
    let layout = fixture.store.create_template(layout, 100).await.expect("it works");
    let framed = TemplateContent { layout: Some(layout.id), ..content("x") };
    let used = NewTemplate { content: framed.clone(), ..new(&fixture, "welcome") };
    let used = fixture.store.create_template(used, 100).await.expect("it works");
    let refused = fixture.store.delete_template(fixture.server, layout.id).await;
    assert!(matches!(refused, Err(StoreError::InUse)), "{refused:?}");
    let kept = fixture.store.find_template(fixture.server, TemplateRef::Alias("frame".into())).await;
    assert!(kept.expect("it works").is_some(), "nothing of it is gone");
    change(&fixture, used.id, "without").await;
    fixture.store.delete_template(fixture.server, layout.id).await.expect("only an old version uses it");
    let gone = NewTemplate { content: framed, ..new(&fixture, "third") };
    let gone = fixture.store.create_template(gone, 100).await;
    assert!(matches!(gone, Err(StoreError::MissingReference)), "{gone:?}");
    let gone = fixture.store.publish_template(fixture.server, used.id, 1).await;
    assert!(matches!(gone, Err(StoreError::MissingReference)), "{gone:?}");
    let kept = fixture.store.find_template(fixture.server, TemplateRef::Id(used.id)).await.expect("it works");
    assert_eq!(kept.expect("it is there").published, None, "nothing half done");
    let no_layout = TemplateContent { layout: Some(used.id), ..content("x") };
    let no_layout = NewTemplate { content: no_layout, ..new(&fixture, "fourth") };
    assert!(matches!(fixture.store.create_template(no_layout, 100).await, Err(StoreError::MissingReference)));
}

async fn a_server_has_a_limited_number_of_templates(fixture: Fixture) {
    for alias in ["a", "b"] {
        fixture.store.create_template(new(&fixture, alias), 2).await.expect("there is room");
    }
    let refused = fixture.store.create_template(new(&fixture, "c"), 2).await;
    assert!(matches!(refused, Err(StoreError::LimitReached)), "{refused:?}");
}

async fn duplicate_template_names_become_unique_in_the_migration(fixture: Fixture) {
    let mut ids = Vec::new();
    for alias in ["a", "b", "c"] {
        ids.push(create(&fixture, alias).await.id);
    }
    // Undoes migrations 36 to 41.
    undo_setup_changes(&fixture).await;
    for text in [
        "ALTER TABLE sources DROP COLUMN updated_at; ALTER TABLE pools DROP COLUMN updated_at",
        "CREATE INDEX queue_scheduled_by_server ON queue (server_id, message_id) WHERE scheduled > 0",
        "DROP INDEX accounts_by_name; DROP INDEX accounts_deleted; DROP INDEX accounts_suspended",
        "DROP INDEX servers_by_name; DROP INDEX servers_deleted; DROP INDEX servers_deleted_by_account",
        "DROP INDEX servers_suspended; DROP INDEX servers_suspended_by_account",
        "DROP INDEX credentials_revoked; DROP INDEX credentials_revoked_by_account",
        "DROP INDEX IF EXISTS credentials_revoked_by_server; DROP INDEX credentials_unrevoked",
        "DROP INDEX credentials_unrevoked_by_account; DROP INDEX IF EXISTS credentials_unrevoked_by_server",
        "DROP INDEX templates_by_name; DROP INDEX queue_scheduled_by_server_due",
        "ALTER TABLE queue DROP COLUMN released_at; ALTER TABLE messages DROP COLUMN rescheduled",
        "DROP INDEX IF EXISTS queue_free_by_server; ALTER TABLE webhooks DROP COLUMN version",
        "DROP INDEX search_blocks_checked; DROP INDEX search_blocks_with_parts",
        if fixture.is_sqlite() {
            "PRAGMA user_version = 35"
        } else {
            "DELETE FROM schema_version WHERE version > 35"
        },
    ] {
        fixture.execute(text).await;
    }
    if !fixture.is_sqlite() {
        fixture.execute("ALTER TABLE accounts ADD CONSTRAINT accounts_name_key UNIQUE (name)").await;
    }
    let [first, second, third] = ids[..] else { panic!("three") };
    // The third template already has the name that the second one gets.
    for (id, name) in
        [(first, "A".to_owned()), (second, "A".to_owned()), (third, format!("A (template {second})"))]
    {
        fixture.execute(&format!("UPDATE templates SET name = '{name}' WHERE id = {id}")).await;
    }
    let fixture = fixture.reopen().await;
    let listed = fixture.store.list_templates(fixture.server, None, None, 10).await.expect("it works");
    let names: Vec<String> = listed.into_iter().map(|template| template.name).collect();
    let of_second = format!("A (template {second})");
    let of_third = format!("{of_second} (template {third}) (template {third})");
    assert_eq!(names, ["A".to_owned(), of_second, of_third]);
}
