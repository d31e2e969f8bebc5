//! Erasure on PostgreSQL down to the bytes of its files, on a separate PostgreSQL server.

use postroad_testkit::Cluster;
use postroad_testkit::postgres::{Database, run};
use serde_json::json;

use super::erase::{ADDRESS, erase, files_with, id_of, send};
use crate::world::World;

/// The steps that docs/search.md names. The service may run meanwhile.
const STEPS: [&str; 6] = [
    "ANALYZE",
    "VACUUM FULL",
    "ALTER SYSTEM SET wal_recycle = off",
    "SELECT pg_reload_conf()",
    "SELECT pg_switch_wal()",
    "CHECKPOINT",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_of_postgresql_contains_an_erased_address_after_a_full_vacuum() {
    let cluster = Cluster::start().expect("PostgreSQL starts");
    let database = Database::create_on(cluster.url());
    let url = database.url().to_owned();
    let world = World::start_on(Some(&url), Some(database), &[]);
    let mut last = 0;
    for number in 0..40 {
        let text = format!("Dear {ADDRESS}, ").repeat(1 + number * 40);
        let sent = send(
            &world,
            json!({"to": [ADDRESS], "subject": format!("{number} for {ADDRESS}"), "plain_body": text,
                "metadata": {"customer": ADDRESS}, "idempotency_key": format!("key-{number}")}),
        )
        .await;
        last = id_of(&sent, ADDRESS);
        send(&world, json!({"to": [format!("u{number}@example.com")], "subject": "Somebody else"})).await;
    }
    world.until_status(last, "Sent").await;
    world.call("/api/v1/suppressions/add", &json!({"address": ADDRESS})).await;
    // Puts samples of the columns, and thus the address, into the planner's statistics.
    run(&url, "ANALYZE");
    run(&url, "CHECKPOINT");
    let folder = cluster.data_dir();
    let before = files_with(&folder, ADDRESS);
    assert!(before.iter().any(|file| file.contains("/base/")), "tables: {before:?}");
    assert!(before.iter().any(|file| file.contains("/pg_wal/")), "the log: {before:?}");

    let job = erase(&world, json!({"address": ADDRESS})).await;
    assert_eq!((&job["done"], &job["failed"]), (&json!(40), &json!(0)), "{job}");
    let rows = world.database_text().unwrap().to_lowercase();
    assert!(!rows.contains(ADDRESS), "no row contains it as soon as the job is done: {rows}");
    for step in STEPS {
        run(&url, step);
    }
    assert_eq!(files_with(&folder, ADDRESS), Vec::<String>::new());
    let kept = world.call("/api/v1/messages/search", &json!({"to": "u39@example.com"})).await;
    assert_eq!(kept["data"]["items"].as_array().unwrap().len(), 1, "{kept}");
}
