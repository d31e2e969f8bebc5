//! Full or read-only disk and dead database: requests get a 503, nothing is half-written, and the service recovers by
//! itself.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use postroad_testkit::http::Reply;
use postroad_testkit::postgres::{Database, PgProxy};
use postroad_testkit::{eventually, eventually_within, random_text};
use serde_json::{Value, json};

use crate::world::{Engine, MESSAGE, SEND, World, checked_envelope, good, good_but};

fn assert_unavailable(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.header("retry-after").is_some());
    let answer = checked_envelope(reply);
    assert_eq!(answer["status"], "error");
    assert_eq!(answer["data"]["code"], "ServiceUnavailable");
}

/// Sets the soft limit on the size of files that the process writes: the kernel then refuses writes as on a full disk.
pub(crate) fn limit_file_size(pid: u32, bytes: &str) {
    let status = Command::new("prlimit")
        .args(["--pid", &pid.to_string(), &format!("--fsize={bytes}:unlimited")])
        .status()
        .expect("prlimit is part of util-linux");
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_is_refused_on_a_full_disk_and_accepted_once_there_is_room() {
    let world = World::start(Engine::Sqlite);
    let before = world.accepted_id(&good()).await;
    limit_file_size(world.daemon.pid(), "4096");
    let large = "0123456789abcdef".repeat(16_000);
    let idempotency_header = [("Idempotency-Key", "once")];
    for body in [good(), good_but(json!({"plain_body": large}))] {
        assert_unavailable(&world.post(SEND, &body).await);
        assert_unavailable(&world.request("POST", SEND, &idempotency_header, body.to_string()).await);
    }
    let status = world.expanded(before).await["status"]["status"].take();
    assert!(["Pending", "Sent"].contains(&status.as_str().unwrap()), "reading goes on");
    limit_file_size(world.daemon.pid(), "unlimited");
    let after = world.accepted_id(&good()).await;
    for id in [before, after] {
        let status = world.expanded(id).await["status"]["status"].take();
        assert!(["Pending", "Sent"].contains(&status.as_str().unwrap()), "{status}");
    }
    // Nothing was half-written: the idempotency key of the refused requests is free, and no message has an id between
    // those of the two accepted ones.
    let sent = world.call_with(SEND, &idempotency_header, &good()).await;
    assert_eq!(sent["status"], "success");
    assert_eq!(sent["flags"], json!({}));
    for id in before + 1..after.min(before + 200) {
        assert_eq!(world.call(MESSAGE, &json!({ "id": id })).await["data"]["code"], "MessageNotFound");
    }
}

/// The service logs to a file here, so the limit stops the log too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_answered_although_the_log_cannot_be_written() {
    let world = World::start_with(Engine::Sqlite, &[("POSTROAD_LOG", "trace")]);
    world.accepted_id(&good()).await;
    limit_file_size(world.daemon.pid(), "4096");
    for _ in 0..20 {
        assert_unavailable(&world.post(SEND, &good()).await);
        assert_eq!(world.client.get("/health").await.expect("an answer").status, 200);
    }
    limit_file_size(world.daemon.pid(), "unlimited");
    world.accepted_id(&good()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_level_that_is_not_valid_is_reported() {
    let world = World::start_with(Engine::Sqlite, &[("POSTROAD_LOG", "postroad_app=loud")]);
    let reported = async || {
        let text = world.daemon.stderr_text();
        if text.contains("POSTROAD_LOG is not valid") { Ok(()) } else { Err(text) }
    };
    eventually(reported).await;
}

/// Status and body of `/ready`.
async fn ready(world: &World) -> (u16, Value) {
    let reply = world.client.get("/ready").await.expect("an answer");
    (reply.status, reply.json())
}

/// Answer of `/ready`, once it has this status.
async fn until_ready_is(world: &World, status: u16) -> Value {
    eventually(async || {
        let (found, answer) = ready(world).await;
        if found == status { Ok(answer) } else { Err(format!("/ready is {found}: {answer}")) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_reports_that_the_disk_is_full_and_how_far_the_queue_is_behind() {
    let world = World::start(Engine::Sqlite);
    let (status, answer) = ready(&world).await;
    assert_eq!((status, &answer), (200, &json!({"status": "ok", "queue_lag_seconds": 0.0})));
    world.queue(&["suspend", "everything", "--reason", "so that it waits"]);
    world.accepted_id(&good()).await;
    limit_file_size(world.daemon.pid(), "4096");
    let answer = until_ready_is(&world, 503).await;
    assert_eq!(answer["status"], "unavailable");
    assert!(answer["cause"].as_str().is_some_and(|cause| cause.contains("disk")), "{answer}");
    limit_file_size(world.daemon.pid(), "unlimited");
    let answer = until_ready_is(&world, 200).await;
    assert!(answer["queue_lag_seconds"].as_f64().is_some_and(|lag| lag > 0.0), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_reports_that_the_flight_journal_cannot_be_written() {
    let world = World::start(Engine::Sqlite);
    let (folder, elsewhere) = (world.data_dir().join("flights"), world.data_dir().join("elsewhere"));
    std::fs::rename(&folder, &elsewhere).expect("the journal has a folder");
    let answer = until_ready_is(&world, 503).await;
    // The error of the operating system is only in the log.
    assert_eq!(answer["cause"], "the flight journal cannot be written");
    assert!(world.daemon.stderr_text().contains("the flight journal cannot be written"));
    std::fs::rename(&elsewhere, &folder).expect("it can be put back");
    until_ready_is(&world, 200).await;
}

/// Makes a file, or a folder and everything in it, writable or read-only.
fn set_writable(path: &Path, writable: bool) {
    let is_folder = path.is_dir();
    let bits = match (is_folder, writable) {
        (true, true) => 0o700,
        (true, false) => 0o500,
        (false, true) => 0o600,
        (false, false) => 0o400,
    };
    std::fs::set_permissions(path, Permissions::from_mode(bits)).expect("the tests own it");
    if is_folder {
        for entry in path.read_dir().expect("a folder").map(|entry| entry.expect("a name")) {
            set_writable(&entry.path(), writable);
        }
    }
}

/// Open files stay writable (SQLite's files and the journal's current segment); new files cannot be created.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_reports_that_the_data_folder_is_read_only() {
    let world = World::start_without_root_rights();
    let large = good_but(json!({"plain_body": random_text(200_000, "\n")}));
    for body in [&good(), &large] {
        let id = world.accepted_id(body).await;
        world.until_status(id, "Sent").await;
    }
    until_ready_is(&world, 200).await;
    let data = world.data_dir();
    let store_cause = "the store may not write to its files: permission denied";
    let journal_cause = "the flight journal cannot be written";
    for (folder, cause) in [
        (data.clone(), store_cause),
        (data.join("bodies"), store_cause),
        (data.join("flights"), journal_cause),
    ] {
        set_writable(&folder, false);
        let answer = until_ready_is(&world, 503).await;
        assert_eq!((&answer["status"], &answer["cause"]), (&json!("unavailable"), &json!(cause)));
        let reply = world.post(SEND, &large).await;
        if cause == store_cause {
            assert_unavailable(&reply);
        } else {
            assert_eq!(
                reply.status,
                200,
                "mail is accepted, and sent once the journal is back: {}",
                reply.text()
            );
        }
        set_writable(&folder, true);
        assert_eq!(until_ready_is(&world, 200).await["status"], "ok");
        let id = world.accepted_id(&large).await;
        world.until_status(id, "Sent").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_is_refused_while_less_disk_space_is_free_than_the_reserve() {
    let world = World::start_with(Engine::Sqlite, &[("POSTROAD_STORE_DISK_RESERVE_BYTES", "1000000 GiB")]);
    assert_unavailable(&world.post(SEND, &good()).await);
    let (status, answer) = ready(&world).await;
    assert_eq!((status, &answer["cause"]), (503, &json!("the disk is full: the store cannot be written")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_is_refused_without_a_database_and_accepted_once_it_is_back() {
    let database = Database::create();
    let proxy = PgProxy::start(database.url());
    let world = World::start_on(Some(proxy.url()), Some(database), &[]);
    let before = world.accepted_id(&good()).await;
    proxy.cut();
    for _ in 0..3 {
        assert_unavailable(&world.post(SEND, &good()).await);
    }
    assert_eq!(world.client.get("/health").await.expect("an answer").status, 200);
    assert_eq!(world.client.get("/ready").await.expect("an answer").status, 503);
    proxy.restore();
    let after = eventually_within(Duration::from_secs(10), async || {
        let reply = world.post(SEND, &good()).await;
        if reply.status != 200 {
            return Err(format!("the message is not accepted: {}", reply.text()));
        }
        Ok(reply.json()["data"]["messages"]["someone@example.com"]["id"].as_i64().expect("an id"))
    })
    .await;
    for id in [before, after] {
        let status = world.expanded(id).await["status"]["status"].take();
        assert!(["Pending", "Sent"].contains(&status.as_str().unwrap()), "{status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_is_refused_within_25_seconds_while_the_database_hangs() {
    let database = Database::create();
    let proxy = PgProxy::start(database.url());
    let world = World::start_on(Some(proxy.url()), Some(database), &[]);
    world.accepted_id(&good()).await;
    proxy.stall();
    let reply = tokio::time::timeout(Duration::from_secs(25), world.post(SEND, &good())).await;
    assert_unavailable(&reply.expect("an answer within 25 s"));
    proxy.restore();
}
