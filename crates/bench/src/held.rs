//! Benchmark of a job on 100,000 held messages, started by one call, and of single sends meanwhile; over HTTP.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use postroad_testkit::Daemon;
use postroad_testkit::http::Client;
use serde_json::{Value, json};

use super::Bench;
use super::report::Report;
use super::systems::Kind;

const HELD_MESSAGES: usize = 100_000;
const BATCH_MESSAGES: usize = 500;
const PAUSE_BETWEEN_SENDS: Duration = Duration::from_millis(10);

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for kind in bench.kinds(Kind::is_ours) {
        eprintln!("{HELD_MESSAGES} held messages in one call · {}", kind.name());
        let folder = tempfile::TempDir::new()?;
        let database = if kind == Kind::PostroadOnPostgres { bench.database() } else { None };
        let envs: Vec<_> = database.iter().map(|database| ("POSTROAD_DATABASE", database.url())).collect();
        let data_dir = folder.path().join("data");
        let data_dir = data_dir.to_str().context("a plain path")?;
        let ports = ["--http-port", "0", "--smtp-port", "0", "--smtps-port", "0", "--bounce-port", "0"];
        let arguments = [&["dev", "--json"][..], &ports, &["--data-dir", data_dir]].concat();
        let daemon = Daemon::start(&bench.program("postroad"), arguments, &envs);
        let caller = Caller::of(&daemon);
        caller.set_mode("development").await?;
        caller.fill().await?;
        caller.set_mode("live").await?;
        let figures = caller.cancel_all().await?;
        report.add(&format!("cancel {HELD_MESSAGES} held messages by one call"), kind.name(), figures);
    }
    Ok(())
}

struct Caller {
    client: Client,
    key: String,
}

impl Caller {
    fn of(daemon: &Daemon) -> Self {
        let text = |name: &str| daemon.ready()[name].as_str().unwrap_or_default();
        Self { client: Client::new(text("url")), key: text("api_key").to_owned() }
    }

    async fn call(&self, name: &str, body: &Value) -> anyhow::Result<Value> {
        let reply = self.client.post_json(&format!("/api/v1/{name}"), Some(&self.key), body).await?;
        let answer = reply.json();
        ensure!(answer["status"] == "success", "{name}: {answer}");
        Ok(answer["data"].clone())
    }

    /// Sets the server's mode; in development it holds everything.
    async fn set_mode(&self, mode: &str) -> anyhow::Result<()> {
        self.call("server/update", &json!({ "mode": mode })).await.map(drop)
    }

    async fn fill(&self) -> anyhow::Result<()> {
        let defaults = json!({"from": "shop@example.test", "subject": "Your order", "plain_body": "x"});
        for first in (0..HELD_MESSAGES).step_by(BATCH_MESSAGES) {
            let messages: Vec<Value> = (first..first + BATCH_MESSAGES)
                .map(|number| json!({"to": [format!("u{number}@example.com")]}))
                .collect();
            self.call("send/batch", &json!({"defaults": defaults, "messages": messages})).await?;
        }
        Ok(())
    }

    /// Cancels all held messages; returns the times of the call, of the job, and of accepts meanwhile.
    async fn cancel_all(&self) -> anyhow::Result<Vec<(&'static str, f64)>> {
        let begun = Instant::now();
        let started = self.call("messages/cancel_hold", &json!({"query": "status:held"})).await?;
        let answered = begun.elapsed();
        let single = json!({"to": ["beside@example.com"], "from": "shop@example.test", "subject": "x", "plain_body": "x"});
        let mut accepts: Vec<f64> = Vec::new();
        let job = loop {
            let begun = Instant::now();
            self.call("send/message", &single).await?;
            accepts.push(begun.elapsed().as_secs_f64() * 1e3);
            let job = self.call("jobs/get", &json!({"id": started["job_id"]})).await?;
            if job["state"] != "running" {
                break job;
            }
            tokio::time::sleep(PAUSE_BETWEEN_SENDS).await;
        };
        let took = begun.elapsed().as_secs_f64();
        ensure!(job["state"] == "done" && job["done"] == HELD_MESSAGES && job["failed"] == 0, "{job}");
        accepts.sort_unstable_by(f64::total_cmp);
        let at = |share: usize| accepts[(accepts.len() - 1) * share / 100];
        Ok(vec![
            ("answer_ms", answered.as_secs_f64() * 1e3),
            ("job_s", took),
            ("messages_per_second", HELD_MESSAGES as f64 / took),
            ("accept_p50_ms", at(50)),
            ("accept_p99_ms", at(99)),
        ])
    }
}
