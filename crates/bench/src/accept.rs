//! Benchmark of accepting messages.
//!
//! Measures rates by number of callers: of the store alone, and through the HTTP port with single sends and with
//! batches. Also measures latencies at 1,000 messages a second, with other mail servers for comparison. Nothing is
//! delivered meanwhile, except to the inbox of `postroad dev` while rates through HTTP are measured.

use std::path::Path;

use anyhow::{Context as _, ensure};
use postroad_testkit::Daemon;
use tokio::process::Command;

use super::Bench;
use super::load::{self, SESSIONS};
use super::report::{Figures, Report};
use super::sink::Sink;
use super::systems::{Kind, Setup};
use super::usage::Usage;

/// Messages a second of the runs at a fixed rate.
const RATE: usize = 1_000;
/// Duration of a run at a fixed rate.
const SECONDS: usize = 10;
/// Duration of each run without a fixed rate, for `http_bench`.
const LEVEL_SECONDS: &str = "5";
const BATCH_MESSAGES: &str = "500";
const OTHER_SENDER: &str = "shop@other.test";

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for round in 1..=bench.rounds {
        for kind in bench.kinds(|_| true) {
            eprintln!("{RATE}/s over SMTP · {} · run {round} of {}", kind.name(), bench.rounds);
            let work = format!("accept only, SMTP, {RATE}/s");
            report.add(&work, kind.name(), measure_at_rate(bench, kind, Protocol::Smtp).await?);
        }
        for kind in bench.kinds(Kind::is_ours) {
            eprintln!("{RATE}/s over HTTP · {} · run {round} of {}", kind.name(), bench.rounds);
            let work = format!("accept only, HTTP, {RATE}/s");
            report.add(&work, kind.name(), measure_at_rate(bench, kind, Protocol::Http).await?);
        }
    }
    for kind in bench.kinds(Kind::is_ours) {
        measure_levels(bench, kind, report).await?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Protocol {
    Smtp,
    Http,
}

async fn measure_at_rate(bench: &Bench, kind: Kind, protocol: Protocol) -> anyhow::Result<Figures> {
    let sink = Sink::start()?;
    let system = bench.systems.start(kind, Setup { sink_port: sink.port(), dkim: false, holds: true })?;
    let accept = async |messages: usize| {
        let (messages, rate, sessions) = (messages.to_string(), RATE.to_string(), SESSIONS.to_string());
        let common = ["--messages", &messages, "--rate", &rate];
        if let (Protocol::Http, Some(postroad)) = (protocol, system.as_postroad()) {
            load::http(bench, "http", postroad, &[&common[..], &["--callers", &sessions]].concat()).await
        } else {
            let (address, sender) = (system.smtp().to_string(), system.sender());
            let arguments = ["smtp", "--address", &address, "--from", &sender, "--sessions", &sessions];
            load::run_tool(bench, &[&arguments[..], &common].concat()).await
        }
    };
    accept(RATE).await?;
    let usage = Usage::begin(system.roots())?;
    let figures = accept(RATE * SECONDS).await?;
    let used = usage.end()?;
    ensure!(sink.messages() == 0, "the sink got {} messages that should wait", sink.messages());
    let number = |name: &str| figures[name].as_f64().unwrap_or_default();
    Ok(vec![
        ("p50_ms", number("p50_ms")),
        ("p99_ms", number("p99_ms")),
        ("max_ms", number("max_ms")),
        ("cpu_s_per_1000", used.cpu.as_secs_f64() / SECONDS as f64),
    ])
}

/// Measures rates at several numbers of callers (levels). Each caller sends again as soon as it is answered.
async fn measure_levels(bench: &Bench, kind: Kind, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::TempDir::new()?;
    let database = if kind == Kind::PostroadOnPostgres { bench.database() } else { None };
    let url = database.as_ref().map_or_else(
        || format!("sqlite:{}", folder.path().join("store.db").display()),
        |database| database.url().to_owned(),
    );
    eprintln!("accepting as fast as possible · {}", kind.name());
    let mut store = Command::new(bench.program("accept_bench"));
    store.args(["--database", &url]);
    add_levels(report, "accept only, the store alone", kind, &output(&mut store).await?);

    let database = if kind == Kind::PostroadOnPostgres { bench.database() } else { None };
    let envs: Vec<_> = database.iter().map(|database| ("POSTROAD_DATABASE", database.url())).collect();
    let data_dir = folder.path().join("http");
    let data_dir = data_dir.to_string_lossy();
    let ports = ["--http-port", "0", "--smtp-port", "0", "--smtps-port", "0", "--bounce-port", "0"];
    let arguments = [&["dev", "--json"][..], &ports, &["--data-dir", &data_dir]].concat();
    let daemon = Daemon::start(&bench.program("postroad"), arguments, &envs);
    let text = |name: &str| daemon.ready()[name].as_str().unwrap_or_default();
    let mut http = Command::new(bench.program("http_bench"));
    http.args(["--url", text("url"), "--key", text("api_key"), "--seconds", LEVEL_SECONDS]);
    add_levels(report, "accept through HTTP, inbox behind it", kind, &output(&mut http).await?);

    eprintln!("accepting batches beside another server's single sends · {}", kind.name());
    let other_key = create_other_server(&bench.program("postroad"), &data_dir, &envs).await?;
    let mut batches = Command::new(bench.program("http_bench"));
    batches.args(["--url", text("url"), "--key", text("api_key"), "--seconds", LEVEL_SECONDS]);
    batches.args(["--batch", BATCH_MESSAGES, "--beside", &other_key, "--beside-from", OTHER_SENDER]);
    let table = output(&mut batches).await?;
    let (mut of_batches, mut of_singles) = (String::new(), String::new());
    split_levels(&table, &mut of_batches, &mut of_singles);
    let work = format!("accept batches of {BATCH_MESSAGES} through HTTP, messages a second");
    add_levels(report, &work, kind, &of_batches);
    add_levels(report, "single sends of another server beside batches", kind, &of_singles);
    Ok(())
}

/// Splits the output of `http_bench --beside` into lines of the load and lines of the other server. Each line of the
/// other server follows a line `beside N callers:`.
fn split_levels(table: &str, of_load: &mut String, of_others: &mut String) {
    let mut beside = None;
    for line in table.lines() {
        if let Some(rest) = line.strip_prefix("beside ") {
            beside = rest.split_whitespace().next().map(str::to_owned);
            continue;
        }
        match beside.take() {
            // The report names figures of the other server by the number of callers of the load.
            Some(callers) => {
                let figures = line.trim_start().split_once(' ').map_or("", |(_, figures)| figures);
                of_others.extend([&callers, " ", figures, "\n"]);
            }
            None => of_load.extend([line, "\n"]),
        }
    }
}

/// Creates a server of another account, with a verified domain; returns its key.
async fn create_other_server(
    program: &Path,
    data_dir: &str,
    envs: &[(&str, &str)],
) -> anyhow::Result<String> {
    let admin = async |arguments: &[&str]| {
        let mut command = Command::new(program);
        command
            .arg("admin")
            .args(arguments)
            .args(["--json", "--data-dir", data_dir])
            .envs(envs.iter().copied());
        output(&mut command).await
    };
    let domain = OTHER_SENDER.split('@').next_back().unwrap_or_default();
    admin(&["account", "create", "Other"]).await?;
    admin(&["server", "create", "other", "--account", "Other"]).await?;
    admin(&["domain", "create", domain, "--server", "other"]).await?;
    admin(&["domain", "set-verified", domain, "--server", "other"]).await?;
    let created = admin(&["key", "create", "--server", "other"]).await?;
    let created: serde_json::Value = serde_json::from_str(&created)?;
    created["api_key"].as_str().map(str::to_owned).context("the new key")
}

async fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stderr(std::process::Stdio::inherit()).output().await?;
    ensure!(output.status.success(), "{command:?} failed ({})", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// Adds the figures of lines `callers rate p50 p99 …` to the report. Other lines, such as the heading, are skipped.
fn add_levels(report: &mut Report, work: &str, kind: Kind, table: &str) {
    for line in table.lines() {
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        if let [callers, rate, p50, p99, ..] = numbers[..] {
            let figures = vec![("accepts_per_second", rate), ("p50_ms", p50), ("p99_ms", p99)];
            report.add(&format!("{work}, {callers:.0} callers"), kind.name(), figures);
        }
    }
}
