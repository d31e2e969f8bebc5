//! Benchmark of the portal's pages over many messages of one server, on SQLite and over HTTP. Fails if a page takes
//! 100 ms or more (p99), or if a first visit transfers 100 kB or more: the page uncompressed, and its assets
//! compressed.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};
use postroad_testkit::Daemon;
use postroad_testkit::http::{Bytes, Client, Method};
use tokio::process::Command;

use super::Bench;
use super::report::Report;

/// Requests per page.
const REPETITIONS: usize = 50;
const MILLISECONDS_MAX: f64 = 100.0;
const BYTES_MAX: usize = 100_000;
/// Events of one message, as `analytics_fill` writes them.
const EVENTS_PER_MESSAGE: f64 = 2.4;

/// File that marks a data folder as filled.
const FILLED_MARKER_FILE: &str = "filled-for-benchmark";

/// Pages of a server. Ids from links on other pages replace `{message}`, `{waiting}`, `{webhook}` and `{domain}`.
const SERVER_PAGES: &[(&str, &str)] = &[
    ("home", ""),
    ("messages", "/messages"),
    ("messages, a later page", "/messages?before={message}"),
    ("messages, delivered ones", "/messages?status=Sent"),
    ("messages, bounced ones", "/messages?status=Bounced"),
    ("messages of a domain", "/messages?domain=news.example.com"),
    ("messages, a rare word", "/messages?q=small19999.example"),
    ("messages, a word that none has", "/messages?q=nowhere-at-all"),
    ("messages, a tag in the search", "/messages?q=tag%3A%22kind+3%22"),
    ("messages of a tag", "/messages?tag=kind+3"),
    ("messages, held", "/messages?tab=held"),
    ("messages, scheduled", "/messages?tab=scheduled"),
    ("message, timeline", "/messages/{message}"),
    ("message, events", "/messages/{message}?view=events"),
    ("message, headers", "/messages/{message}?view=headers"),
    ("message that waits", "/messages/{waiting}"),
    ("message, text", "/messages/{message}?view=text"),
    ("message, preview", "/messages/{message}?view=preview"),
    ("message, source", "/messages/{message}?view=source"),
    ("message, links", "/messages/{message}?view=links"),
    ("message, attachments", "/messages/{message}?view=attachments"),
    ("jobs", "/jobs"),
    ("queue", "/queue"),
    ("events", "/events"),
    ("events of one kind", "/events?kind=message.delivered"),
    ("events, a kind that none has", "/events?kind=domain.verified"),
    ("analytics, 24 hours", "/analytics?range=day"),
    ("analytics, 7 days", "/analytics"),
    ("analytics, 30 days by tag", "/analytics?range=month&by=tag"),
    ("analytics, 30 days by provider", "/analytics?range=month&by=recipient_provider"),
    ("reports", "/reports"),
    ("templates", "/templates"),
    ("template editor", "/templates/new"),
    ("domains", "/domains"),
    ("domain with its records", "/domains/{domain}"),
    ("webhooks", "/webhooks"),
    ("webhook with its attempts", "/webhooks/{webhook}"),
    ("request inspector", "/webhooks/inspector"),
    ("suppressions", "/suppressions"),
    ("suppressions by reason", "/suppressions?reason=hard_bounce"),
    ("suppressions, a reason that none has", "/suppressions?reason=complaint"),
    ("keys", "/keys"),
    ("settings", "/settings"),
    ("inbox of the server", "/inbox"),
];

const OTHER_PAGES: &[(&str, &str)] = &[
    ("servers", "/servers"),
    ("account", "/account"),
    ("people", "/account/people"),
    ("person", "/account/people/{person}"),
    ("account domains", "/account/domains"),
    ("pools", "/account/pools"),
    ("account keys", "/account/keys"),
    ("audit log", "/account/audit"),
    ("audit log of domains", "/account/audit?subject=domain"),
    ("you", "/account/you"),
    ("operator", "/operator"),
    ("operator, accounts", "/operator/accounts"),
    ("operator, one account", "/operator/accounts/{account}"),
    ("operator, domains of an account", "/operator/accounts/{account}/domains"),
    ("operator, people of an account", "/operator/accounts/{account}/people"),
    ("operator, keys of an account", "/operator/accounts/{account}/keys"),
    ("operator, audit log of an account", "/operator/accounts/{account}/audit"),
    ("operator, audit log", "/operator/audit"),
    ("operator, check-up", "/operator/doctor"),
    ("operator, keys", "/operator/keys"),
    ("operator, nodes", "/operator/nodes"),
    ("operator, waiting mail", "/operator/queue"),
    ("inbox", "/inbox"),
];

/// Measures all pages over the messages in the folder `data`, which is filled once and kept. Without `data`, fills a
/// temporary folder.
pub(super) async fn measure(
    bench: &Bench,
    report: &mut Report,
    messages: usize,
    data: Option<&Path>,
) -> anyhow::Result<()> {
    let temporary = tempfile::TempDir::new()?;
    let data = data.map_or_else(|| temporary.path().join("data"), Path::to_owned);
    let arguments = [
        "dev",
        "--json",
        "--http-port",
        "0",
        "--smtp-port",
        "0",
        "--smtps-port",
        "0",
        "--bounce-port",
        "0",
        "--data-dir",
        data.to_str().context("a plain path")?,
    ];
    let filled = data.join(FILLED_MARKER_FILE);
    if !filled.exists() {
        // Creates the installation and its first server.
        let mut daemon = Daemon::start(&bench.program("postroad"), arguments, &[]);
        ensure!(daemon.terminate().success(), "the server does not stop");
        fill(bench, &data, messages).await?;
        std::fs::write(&filled, "")?;
    }
    let daemon = Daemon::start(&bench.program("postroad"), arguments, &[]);
    let pages = Pages::sign_in(&daemon).await?;
    pages.send(&daemon).await?;
    let mut too_slow_or_large = Vec::new();
    for (name, path) in pages.all().await? {
        let (milliseconds, bytes) = pages.measure(&path).await.with_context(|| format!("{name}: {path}"))?;
        let at = |share: usize| milliseconds[(milliseconds.len() - 1) * share / 100];
        let figures = vec![("p50_ms", at(50)), ("p99_ms", at(99)), ("first_visit_bytes", bytes as f64)];
        report.add(&format!("portal, {messages} messages: {name}"), "postroad", figures);
        if at(99) >= MILLISECONDS_MAX || bytes >= BYTES_MAX {
            too_slow_or_large.push(format!("{name} ({:.0} ms, {bytes} bytes)", at(99)));
        }
    }
    ensure!(too_slow_or_large.is_empty(), "pages beyond 100 ms or 100 kB: {}", too_slow_or_large.join(", "));
    Ok(())
}

async fn fill(bench: &Bench, data: &Path, messages: usize) -> anyhow::Result<()> {
    let database = format!("sqlite:{}/postroad.db", data.display());
    let events = (messages as f64 * EVENTS_PER_MESSAGE) as usize;
    for (program, more) in
        [("analytics_fill", vec!["--events".to_owned(), events.to_string()]), ("portal_fill", vec![])]
    {
        let mut fill = Command::new(bench.program(program));
        fill.args(["--database", &database]).args(more);
        ensure!(fill.status().await?.success(), "{program} failed");
    }
    Ok(())
}

/// The pages of the portal, requested by a signed-in person.
struct Pages {
    client: Client,
    cookie: String,
    server: String,
    /// Compressed bytes of style, script and icon; the browser keeps them.
    assets: usize,
}

impl Pages {
    async fn sign_in(daemon: &Daemon) -> anyhow::Result<Self> {
        let text = |name: &str| daemon.ready()[name].as_str().unwrap_or_default();
        let client = Client::new(text("url"));
        let link = text("sign_in_url").strip_prefix(text("url")).context("a link to the service")?;
        let reply = client.get(link).await?;
        let cookie = reply.header("set-cookie").context("a session")?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let mut pages = Self { client, cookie, server: String::new(), assets: 0 };
        let start = pages.get("/").await?;
        start.header("location").context("the first server")?.clone_into(&mut pages.server);
        let home = pages.get(&pages.server).await?.text();
        for asset in home
            .split('"')
            .filter(|part| part.starts_with("/assets/"))
            .collect::<std::collections::BTreeSet<_>>()
        {
            pages.assets += pages.get_compressed(asset).await?;
        }
        ensure!(pages.assets > 0, "the page has no style");
        Ok(pages)
    }

    /// Sends a message, whose pages are measured because it is the newest one: messages of `analytics_fill` have no
    /// content.
    async fn send(&self, daemon: &Daemon) -> anyhow::Result<()> {
        let key = daemon.ready()["api_key"].as_str().unwrap_or_default();
        let headers = [("x-server-api-key", key), ("content-type", "application/json")];
        let message = serde_json::json!({
            "to": ["ann@example.com"],
            "from": "shop@example.test",
            "subject": "Your receipt",
            "plain_body": "Thank you. Your code is 482915.",
            "html_body": "<h1>Thank you</h1><p>Your order is <a href='https://example.test/o'>on its way</a>.</p>",
            "attachments": [{ "name": "receipt.txt", "content_type": "text/plain", "data": "T25lIGJvb2sK" }],
        });
        let body = Bytes::from(message.to_string());
        let reply = self.client.request(Method::POST, "/api/v1/send/message", &headers, body).await?;
        ensure!(reply.text().contains("\"success\""), "the message is refused: {}", reply.text());
        Ok(())
    }

    async fn get(&self, path: &str) -> anyhow::Result<postroad_testkit::http::Reply> {
        let headers = [("cookie", self.cookie.as_str())];
        Ok(self.client.request(Method::GET, path, &headers, Bytes::new()).await?)
    }

    /// Number of bytes of the answer with gzip, which browsers accept.
    async fn get_compressed(&self, path: &str) -> anyhow::Result<usize> {
        let headers = [("cookie", self.cookie.as_str()), ("accept-encoding", "gzip")];
        Ok(self.client.request(Method::GET, path, &headers, Bytes::new()).await?.body.len())
    }

    /// Names and paths of all pages, with ids in place.
    async fn all(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        let of_server = |page: &str| format!("{}{page}", self.server);
        let (messages, webhooks) = (of_server("/messages/"), of_server("/webhooks/"));
        let is_number = |link: &str| link.parse::<i64>().is_ok();
        let is_domain = |link: &str| link.contains('.') && !link.contains('/');
        let links = [
            ("{message}", self.first_link(&of_server("/messages"), &messages, is_number).await?),
            (
                "{waiting}",
                self.first_link(&of_server("/messages?status=SoftFail"), &messages, is_number).await?,
            ),
            ("{webhook}", self.first_link(&of_server("/webhooks"), &webhooks, is_number).await?),
            ("{domain}", self.first_link(&of_server("/domains"), &of_server("/domains/"), is_domain).await?),
            ("{person}", self.first_link("/account/people", "/account/people/", is_number).await?),
            ("{account}", self.first_link("/operator/accounts", "/operator/accounts/", is_number).await?),
        ];
        let filled = |path: String| links.iter().fold(path, |path, (name, link)| path.replace(name, link));
        let pages = SERVER_PAGES.iter().map(|(name, path)| (*name, of_server(path)));
        let others = OTHER_PAGES.iter().map(|(name, path)| (*name, (*path).to_owned()));
        Ok(pages.chain(others).map(|(name, path)| (name, filled(path))).collect())
    }

    /// Finds the first link on `page` that begins with `folder` and whose remainder satisfies `is_wanted`; returns that
    /// remainder.
    async fn first_link(
        &self,
        page: &str,
        folder: &str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> anyhow::Result<String> {
        let text = self.get(page).await?.text();
        let start = format!("href=\"{folder}");
        let mut links = text.split(&start).skip(1).filter_map(|rest| rest.split('"').next());
        let found = links.find(|link| is_wanted(link));
        Ok(found.with_context(|| format!("{page} has no link to {folder}"))?.to_owned())
    }

    /// Requests one page repeatedly; returns the times in milliseconds, sorted, and the bytes of a first visit.
    async fn measure(&self, path: &str) -> anyhow::Result<(Vec<f64>, usize)> {
        let (mut milliseconds, mut bytes) = (Vec::with_capacity(REPETITIONS), 0);
        for _ in 0..REPETITIONS {
            let begun = Instant::now();
            let reply = self.get(path).await?;
            milliseconds.push(begun.elapsed().as_secs_f64() * 1e3);
            ensure!(reply.status == 200, "status {}", reply.status);
            bytes = reply.body.len() + self.assets;
        }
        milliseconds.sort_by(f64::total_cmp);
        Ok((milliseconds, bytes))
    }
}
