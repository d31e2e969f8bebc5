//! Permissions of files in the data folder.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use postroad_testkit::http::Client;
use postroad_testkit::{Daemon, daemon};
use rand::RngCore;
use serde_json::json;
use tempfile::TempDir;

use crate::world::{DEV_ARGUMENTS, SEND, good_but, program};

/// Collects the folder and everything below it.
fn all_below(folder: &Path, found: &mut Vec<PathBuf>) {
    found.push(folder.to_owned());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all_below(&path, found) } else { found.push(path) }
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Runs `postroad dev` without a umask, and sends a message that leaves a body file and a flight journal behind.
/// Returns everything in the data folder.
async fn run_without_umask(data_dir: &Path) -> Vec<PathBuf> {
    let shell = ["-c", r#"umask 000; exec "$0" "$@""#, program().to_str().unwrap()];
    let args = shell.into_iter().chain(DEV_ARGUMENTS).chain(["--data-dir", data_dir.to_str().unwrap()]);
    let daemon = Daemon::start(Path::new("sh"), args, &[]);
    let text = |name: &str| daemon.ready()[name].as_str().unwrap().to_owned();
    let client = Client::new(&text("url"));
    // Random bytes, because a body that compresses well is stored in the database.
    let mut bytes = vec![0; 200 << 10];
    rand::rng().fill_bytes(&mut bytes);
    let file = json!({"name": "a.bin", "content_type": "application/octet-stream", "data": BASE64_STANDARD.encode(bytes)});
    let body = good_but(json!({ "attachments": [file] }));
    let sent = client.post_json(SEND, Some(&text("api_key")), &body).await.unwrap();
    assert_eq!(sent.json()["status"], "success", "{}", sent.text());
    let waited = client.get("/dev/messages/wait?timeout=30").await.unwrap();
    assert_eq!(waited.status, 200);
    let mut found = Vec::new();
    all_below(data_dir, &mut found);
    found
}

#[tokio::test]
async fn files_are_for_the_owner_only_whatever_the_umask() {
    let folder = TempDir::new().unwrap();
    let data_dir = folder.path().join("data");
    let found = run_without_umask(&data_dir).await;
    for path in &found {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(path), expected, "{}", path.display());
    }
    let has = |name: &str| found.iter().any(|path| path.to_str().unwrap().contains(name));
    let parts = [
        "postroad.db",
        "postroad.db.lock",
        "postroad.db-wal",
        "node-id",
        "control.sock",
        "flights/",
        "bodies/",
        "dev-key.pem",
    ];
    assert_eq!(parts.into_iter().filter(|part| !has(part)).collect::<Vec<_>>(), [""; 0], "{found:?}");
}

#[tokio::test]
async fn files_in_a_folder_that_others_may_enter_are_private_too() {
    let folder = TempDir::new().unwrap();
    let data_dir = folder.path().join("data");
    std::fs::create_dir(&data_dir).unwrap();
    std::fs::set_permissions(&data_dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let found = run_without_umask(&data_dir).await;
    for path in found.iter().filter(|path| **path != data_dir) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(path), expected, "{}", path.display());
    }
}

#[test]
fn admin_says_that_it_may_not_read_the_data_folder() {
    use std::os::unix::process::CommandExt;
    let folder = TempDir::new().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let data_dir = folder.path().join("data");
    std::fs::create_dir(&data_dir).unwrap();
    std::fs::write(data_dir.join("postroad.db"), "").unwrap();
    std::fs::set_permissions(&data_dir, std::fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    // Root may read everything, so another user runs a copy of the program that they can reach.
    let program = if is_root {
        let copy = folder.path().join("postroad");
        std::fs::copy(program(), &copy).unwrap();
        copy
    } else {
        program().to_owned()
    };
    for (args, is_json) in [
        (["admin", "server", "list"], false),
        (["admin", "server", "list"], true),
        (["queue", "stats", "--log-format=text"], false),
    ] {
        let mut command: Command = daemon::command(&program, &[]);
        command.args(args).arg("--data-dir").arg(&data_dir);
        if is_json {
            command.arg("--json");
        }
        if is_root {
            command.uid(65_534).gid(65_534);
        }
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{error}");
        assert!(error.contains("is not for this user") && error.contains("Permission denied"), "{error}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&error).is_ok(), is_json, "{error}");
    }
    std::fs::set_permissions(&data_dir, std::fs::Permissions::from_mode(0o700)).unwrap();
}
