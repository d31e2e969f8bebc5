//! Benchmark of calls with operator, account and server keys over HTTP, for an account with few servers and keys and
//! for one with many.

use std::time::Instant;

use anyhow::{Context, ensure};
use postroad_testkit::Daemon;
use postroad_testkit::http::Client;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::Bench;
use super::report::Report;
use super::systems::Kind;

const KEYS_PER_SERVER: usize = 10;
/// Number of concurrent tasks that fill an installation.
const FILL_TASKS: usize = 8;
/// Requests per entry of `CALLS`.
const REPETITIONS: usize = 500;
/// Number of servers whose keys the calls "by known keys" use: so few that most calls find their key in the service's
/// cache.
const KNOWN_SERVERS: usize = 10;

const ACCOUNT: &str = "X-Account-API-Key";
const OPERATOR: &str = "X-Operator-API-Key";
const SERVER: &str = "X-Server-API-Key";

/// Calls of an account and of the operator, and the most frequent calls of a server beside them.
const CALLS: [&str; 34] = [
    "servers/list",
    "servers/list by name",
    "servers/list of suspended ones",
    "servers/list of deleted ones",
    "servers/get",
    "credentials/list",
    "credentials/list of a server",
    "credentials/list of revoked ones",
    "credentials/list of unrevoked ones",
    "credentials/get",
    "account/get",
    "account/usage",
    "account/audit",
    "account_keys/list",
    "users/list",
    "users/invitations",
    "domains/list",
    "ip_pools/list",
    "servers/list by the operator",
    "credentials/list by the operator",
    "users/list by the operator",
    "accounts/list by the operator",
    "servers/create",
    "servers/update",
    "servers/suspend",
    "servers/resume",
    "servers/delete",
    "credentials/create",
    "credentials/rotate",
    "credentials/revoke",
    "server/get by any key",
    "send/message by any key",
    "server/get by known keys",
    "send/message by known keys",
];

/// A running installation with one account that has all servers.
struct Filled {
    /// The service; the caller keeps the folder of its data until this value is dropped.
    _daemon: Daemon,
    client: Client,
    operator_key: String,
    account_key: String,
    account: Value,
    /// Another account, for new servers, so that the number of servers of `account` stays the same.
    other_account: Value,
    servers: Vec<FilledServer>,
}

struct FilledServer {
    id: i64,
    /// Ids and keys of the credentials.
    credentials: Vec<(i64, String)>,
}

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for kind in bench.kinds(Kind::is_ours) {
        for servers in [10, 10_000] {
            let keys = servers * KEYS_PER_SERVER;
            eprintln!("accounts · {} · {servers} servers, {keys} keys", kind.name());
            let folder = tempfile::TempDir::new()?;
            let database = if kind == Kind::PostroadOnPostgres { bench.database() } else { None };
            let url = database.as_ref().map(postroad_testkit::postgres::Database::url);
            let filled = fill(bench, folder.path(), url, servers).await?;
            for (name, milliseconds) in measure_calls(&filled).await? {
                let work = format!("{name} with {servers} servers and {keys} keys");
                let at = |share: usize| milliseconds[(milliseconds.len() - 1) * share / 100];
                report.add(&work, kind.name(), vec![("median_ms", at(50)), ("p99_ms", at(99))]);
            }
        }
    }
    Ok(())
}

async fn fill(
    bench: &Bench,
    folder: &std::path::Path,
    database: Option<&str>,
    servers: usize,
) -> anyhow::Result<Filled> {
    let data_dir = folder.join("data");
    let data_dir = data_dir.to_str().context("a plain path")?;
    // Without `--any-from`, each server would need a verified domain to send from.
    let arguments = ["dev", "--json", "--any-from", "--http-port", "0", "--data-dir", data_dir];
    let envs: Vec<(&str, &str)> = database.iter().map(|url| ("POSTROAD_DATABASE", *url)).collect();
    let daemon = Daemon::start(&bench.program("postroad"), arguments, &envs);
    let text = |name: &str| daemon.ready()[name].as_str().unwrap_or_default().to_owned();
    let (client, operator) = (Client::new(&text("url")), text("operator_api_key"));
    let by = (OPERATOR, operator.as_str());
    let account = call(&client, by, "accounts/create", &json!({"name": "bench"})).await?["id"].clone();
    let key = call(&client, by, "account_keys/create", &json!({"account": account, "name": "bench"})).await?;
    let account_key = key["api_key"].as_str().context("a key")?.to_owned();
    let mut made = Vec::with_capacity(servers);
    let mut waiting = 0..servers;
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        while tasks.len() < FILL_TASKS
            && let Some(number) = waiting.next()
        {
            let (client, operator) = (client.clone(), operator.clone());
            let account = account.clone();
            tasks.spawn(async move { add_server(&client, &operator, &account, number).await });
        }
        let Some(server) = tasks.join_next().await else { break };
        made.push(server??);
    }
    let other_account = call(&client, by, "accounts/create", &json!({"name": "other"})).await?["id"].clone();
    Ok(Filled {
        _daemon: daemon,
        client,
        operator_key: operator,
        account_key,
        account,
        other_account,
        servers: made,
    })
}

async fn add_server(
    client: &Client,
    operator: &str,
    account: &Value,
    number: usize,
) -> anyhow::Result<FilledServer> {
    let by = (OPERATOR, operator);
    let new = json!({"account": account, "name": format!("s{number}")});
    let id = call(client, by, "servers/create", &new).await?["id"].as_i64().context("an id")?;
    let mut credentials = Vec::with_capacity(KEYS_PER_SERVER);
    for _ in 0..KEYS_PER_SERVER {
        let made = call(client, by, "credentials/create", &json!({"server": id, "name": "bench"})).await?;
        let key = made["api_key"].as_str().context("a key")?.to_owned();
        credentials.push((made["id"].as_i64().context("an id")?, key));
    }
    Ok(FilledServer { id, credentials })
}

/// Makes all calls; returns each with the milliseconds of its repetitions, sorted.
async fn measure_calls(filled: &Filled) -> anyhow::Result<Vec<(&'static str, Vec<f64>)>> {
    let mut random = StdRng::seed_from_u64(1);
    let mut figures = Vec::new();
    let by_account = (ACCOUNT, filled.account_key.as_str());
    let by_operator = (OPERATOR, filled.operator_key.as_str());
    let known = &filled.servers[..KNOWN_SERVERS.min(filled.servers.len())];
    for (_, key) in known.iter().flat_map(|server| &server.credentials) {
        call(&filled.client, (SERVER, key), "send/message", &mail()).await?;
    }
    for name in CALLS {
        let mut milliseconds = Vec::with_capacity(REPETITIONS);
        let servers = if name.ends_with("by known keys") { known } else { &filled.servers[..] };
        for number in 0..REPETITIONS {
            let server = &servers[random.random_range(0..servers.len())];
            let (credential, key) = &server.credentials[random.random_range(0..server.credentials.len())];
            let by_server = (SERVER, key.as_str());
            let (by, body) = match name {
                "servers/list by name" => (by_account, json!({ "name": "s7" })),
                // No row matches the next three filters, so that a scan would read all rows.
                "servers/list of suspended ones" => (by_account, json!({ "suspended": true })),
                "servers/list of deleted ones" => (by_account, json!({ "deleted": true })),
                "credentials/list of revoked ones" => (by_account, json!({ "revoked": true })),
                "credentials/list of unrevoked ones" => (by_account, json!({ "revoked": false })),
                "accounts/list by the operator"
                | "servers/list by the operator"
                | "credentials/list by the operator" => (by_operator, json!({})),
                "users/list by the operator" => (by_operator, json!({ "account": filled.account })),
                "servers/create" => {
                    (by_operator, json!({ "account": filled.other_account, "name": format!("new{number}") }))
                }
                "servers/update" => (by_account, json!({ "id": server.id, "name": format!("x{number}") })),
                "servers/suspend" => (by_account, suspension(server)),
                "servers/resume" => {
                    call(&filled.client, by_account, "servers/suspend", &suspension(server)).await?;
                    (by_account, json!({ "id": server.id }))
                }
                "servers/delete" => {
                    let new = json!({ "account": filled.other_account, "name": format!("old{number}") });
                    let made = call(&filled.client, by_operator, "servers/create", &new).await?;
                    (by_operator, json!({ "id": made["id"] }))
                }
                "credentials/create" => (by_account, json!({ "server": server.id, "name": "bench" })),
                "credentials/rotate" | "credentials/revoke" => {
                    let new = json!({ "server": server.id, "name": "bench" });
                    let made = call(&filled.client, by_account, "credentials/create", &new).await?;
                    (by_account, json!({ "id": made["id"] }))
                }
                "servers/get" => (by_account, json!({ "id": server.id })),
                "credentials/get" => (by_account, json!({ "id": credential })),
                "credentials/list of a server" => (by_account, json!({ "server": server.id })),
                _ if name.starts_with("server/get") => (by_server, json!({})),
                _ if name.starts_with("send/message") => (by_server, mail()),
                _ => (by_account, json!({})),
            };
            let path = name.split(' ').next().unwrap_or(name);
            let begun = Instant::now();
            call(&filled.client, by, path, &body).await?;
            milliseconds.push(begun.elapsed().as_secs_f64() * 1e3);
            if name == "servers/suspend" {
                call(&filled.client, by_account, "servers/resume", &json!({ "id": server.id })).await?;
            }
        }
        milliseconds.sort_by(f64::total_cmp);
        figures.push((name, milliseconds));
    }
    Ok(figures)
}

fn suspension(server: &FilledServer) -> Value {
    json!({ "id": server.id, "reason": "bench" })
}

fn mail() -> Value {
    json!({
        "to": ["someone@example.com"],
        "from": "shop@example.test",
        "subject": "Your order",
        "plain_body": "Thank you.",
    })
}

async fn call(client: &Client, key: (&str, &str), name: &str, body: &Value) -> anyhow::Result<Value> {
    let (path, post) = (format!("/api/v1/{name}"), "POST".parse().context("a method")?);
    let reply = client.request(post, &path, &[key], body.to_string().into()).await?;
    let answer = reply.json();
    ensure!(answer["status"] == "success", "{name} {body}: {answer}");
    Ok(answer["data"].clone())
}
