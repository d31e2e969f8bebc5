//! schemathesis, an independent API tester, calls every endpoint of the OpenAPI document with generated data.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use postroad_testkit::PYTHON_VARIABLE;
use serde_json::{Value, json};

use crate::world::{Engine, World};

/// Groups of endpoints that account keys and operator keys may call.
const ABOVE_SERVERS: &str = "/(account|accounts|account_keys|credentials|domains|ip_pools|servers|users)/";
const BY_OPERATOR_ONLY: &str =
    "/accounts/|/ip_pools/(create|delete|add_address|remove_address|update_address)$";
/// Endpoints that may remove what other calls need, and are therefore called last.
const DESTRUCTIVE: &str =
    "/(accounts|servers)/(suspend|delete)$|/(account_keys|credentials)/(revoke|rotate)$";

/// A run that takes longer than this counts as hanging.
const TIME_MAX: Duration = Duration::from_mins(5);

/// Calls with one key, to the endpoints whose path matches `include` and not `exclude` (`^$` excludes none).
struct TestRun<'a> {
    header: &'a str,
    key: &'a str,
    include: &'a str,
    exclude: &'a str,
}

/// The OpenAPI document, with a low maximum of `wait_s`: polls of events could otherwise wait for 30 s each.
fn document() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let request = &mut document["components"]["schemas"]["ListEventsIn"];
    assert!(request["properties"]["wait_s"].is_object(), "{request}");
    request["properties"]["wait_s"]["maximum"] = json!(0.2);
    request["example"]["wait_s"] = json!(0.1);
    document
}

/// Runs schemathesis with one key; fails with its report if there is a finding. Returns the number of operations that
/// were tested.
fn run_schemathesis(world: &World, document: &Path, run: &TestRun<'_>) -> usize {
    let python = std::env::var_os(PYTHON_VARIABLE)
        .unwrap_or_else(|| panic!("{PYTHON_VARIABLE} is not set: run the tests with `cargo xtask test`"));
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/schemathesis.toml");
    let report = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new(Path::new(&python).with_file_name("schemathesis"))
        .arg("--config-file")
        .arg(settings)
        .arg("run")
        .arg(document)
        .args(["--url", world.daemon.ready()["url"].as_str().unwrap()])
        .args(["--header", &format!("{}:{}", run.header, run.key)])
        .args(["--include-path-regex", run.include, "--exclude-path-regex", run.exclude])
        .current_dir(world.folder.path())
        .stdout(report.reopen().unwrap())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("schemathesis starts");
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begun.elapsed() < TIME_MAX => std::thread::sleep(Duration::from_millis(100)),
            None => {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
        }
    };
    let report = std::fs::read_to_string(report.path()).unwrap();
    assert!(status.success(), "with {}, {status}:\n{report}", run.header);
    let tested = report.lines().find_map(|line| line.trim().strip_prefix("Tested: "));
    tested.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("nothing was tested:\n{report}"))
}

/// On PostgreSQL only, because a run takes two minutes, and PostgreSQL refuses more values than SQLite does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_no_fault_in_any_endpoint() {
    let world = World::start(Engine::Postgres);
    let file = world.folder.path().join("openapi.json");
    let document = document();
    std::fs::write(&file, document.to_string()).unwrap();
    let operator = world.daemon.ready()["operator_api_key"].as_str().unwrap();
    let account = world.daemon.ready()["account_api_key"].as_str().unwrap();
    let not_by_accounts = format!("{BY_OPERATOR_ONLY}|{DESTRUCTIVE}");
    let not_by_servers = ABOVE_SERVERS.replace("domains|", "");
    let runs = [
        TestRun { header: "X-Server-API-Key", key: &world.key, include: ".", exclude: &not_by_servers },
        TestRun {
            header: "X-Account-API-Key",
            key: account,
            include: ABOVE_SERVERS,
            exclude: &not_by_accounts,
        },
        TestRun { header: "X-Operator-API-Key", key: operator, include: ABOVE_SERVERS, exclude: DESTRUCTIVE },
        TestRun { header: "X-Operator-API-Key", key: operator, include: DESTRUCTIVE, exclude: "^$" },
    ];
    let tested: Vec<usize> = runs.iter().map(|run| run_schemathesis(&world, &file, run)).collect();
    let paths = document["paths"].as_object().unwrap();
    let all = paths.len();
    let domains = paths.keys().filter(|path| path.contains("/domains/")).count();
    // The endpoints about domains are called with the server key and with the operator key.
    assert_eq!(tested[0] + tested[2] + tested[3], all + domains, "every endpoint: {tested:?}");
    assert!(tested[1] > domains, "{tested:?}");
    let log = world.daemon.stderr_text();
    assert!(!log.contains(" ERROR "), "{log}");
}
