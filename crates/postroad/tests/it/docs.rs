//! Runs the shell blocks of README.md and docs/*.md as a reader would paste them.
//!
//! The word after `sh` says how a block is run:
//!
//! - `sh run`: beside a running `postroad dev`, which also has the servers `production` and `shop`.
//! - `sh serve`: in an empty folder; a block of one line that starts with `postroad serve` starts the service.
//! - `sh skip`: not at all (it builds, or takes an hour).
//!
//! Blocks of one document run in order in one folder; `*.zone` files that they write are published in the test's DNS.
//! Ports, keys and ids in the text are replaced by real ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use postroad_model::{Clock, SystemClock, Timestamp};
use postroad_testkit::dkim_verifier::find_verifier;
use postroad_testkit::http::Client;
use postroad_testkit::{Daemon, DnsServer, daemon};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{DEV_ARGUMENTS, SEND, program};

/// Ids of messages in the documents; the test replaces them by ids of messages that it schedules for tomorrow.
const DOCUMENTED_IDS: [&str; 2] = ["123796799356928", "123796799356929"];
const DAY_MICROS: i64 = 86_400_000_000;
/// The service listens on any free port, and sends mail to a port where nobody listens.
const TEST_SETTINGS: [(&str, &str); 2] =
    [("POSTROAD_HTTP_LISTEN", "127.0.0.1:0"), ("POSTROAD_DELIVERY_SMARTHOST", "127.0.0.1:1")];

struct Block {
    line: usize,
    mode: String,
    script: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and docs/*.md.
fn documents() -> Vec<PathBuf> {
    let folder = fs::read_dir(repository().join("docs")).expect("the repository has docs");
    let paths = folder.map(|entry| entry.expect("docs can be listed").path());
    let mut documents: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    documents.sort();
    documents.insert(0, repository().join("README.md"));
    documents
}

fn shell_blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    for (index, line) in text.lines().enumerate() {
        if is_inside && line == "```" {
            is_inside = false;
        } else if is_inside {
            let block = blocks.last_mut().expect("a block was begun");
            block.script.push_str(line);
            block.script.push('\n');
        } else if let Some(mode) = line.strip_prefix("```sh") {
            is_inside = true;
            blocks.push(Block { line: index + 1, mode: mode.trim().to_owned(), script: String::new() });
        }
    }
    blocks
}

/// A reader of one document: the folder and service where its blocks run, and the replacements made in them.
struct Reader {
    folder: TempDir,
    daemon: Option<Daemon>,
    /// Publishes the zone files that the reader makes.
    dns: DnsServer,
    replacements: Vec<(String, String)>,
}

impl Reader {
    fn new() -> Self {
        let folder = TempDir::new().expect("the temporary folder is writable");
        let programs = folder.path().join("bin");
        fs::create_dir(&programs).expect("the temporary folder is writable");
        std::os::unix::fs::symlink(program(), programs.join("postroad")).expect("links can be made");
        // A Python without Debian's libraries may come first in PATH.
        if let Some(python) = find_verifier().filter(|python| Path::new(python).is_absolute()) {
            std::os::unix::fs::symlink(python, programs.join("python3")).expect("links can be made");
        }
        Self { folder, daemon: None, dns: DnsServer::start(), replacements: Vec::new() }
    }

    /// Starts `postroad dev` with the servers, keys and messages that the documents assume.
    async fn start_dev(&mut self) {
        let data = self.folder.path().join("postroad-data");
        let mut arguments: Vec<String> = DEV_ARGUMENTS.iter().map(|word| (*word).to_owned()).collect();
        arguments.extend(["--data-dir".to_owned(), data.display().to_string()]);
        let daemon = Daemon::start(program(), &arguments, &[]);
        let ready = daemon.ready().clone();
        let text = |pointer: &str| match ready.pointer(pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(number) => number.to_string(),
            None => panic!("the ready line has no {pointer}: {ready}"),
        };
        let (url, key) = (text("/url"), text("/api_key"));
        self.daemon = Some(daemon);
        self.replace("http://127.0.0.1:8025", &url);
        self.replace("--port 1025", &format!("--port {}", text("/smtp/plain_port")));
        self.replace("--port 2587", &format!("--port {}", text("/smtp/starttls_port")));
        self.replace("PASTE-THE-KEY", &key);
        self.replace("PASTE-THE-SECRET", &text("/api_secret"));
        self.replace("$URL", &url);
        self.replace("$KEY", &key);
        self.replace("$ACCOUNT_KEY", &text("/account_api_key"));
        self.replace("$SECRET", &text("/api_secret"));
        self.run(
            "postroad config default > postroad.toml
            postroad admin account create acme
            postroad admin server create production --account acme
            postroad admin server create shop --account acme
            printf 'ann@example.com\\nbob@example.com\\n' > list.csv",
        );
        let client = Client::new(&url);
        let body = json!({"to": ["ann@example.net"], "from": "hello@example.test", "subject": "Your order",
            "html_body": "<p>It is on its way.</p>"});
        client.post_json(SEND, Some(&key), &body).await.expect("an answer");
        let next_year = Timestamp::from_micros(SystemClock.now().as_micros() + 365 * DAY_MICROS).to_rfc3339();
        self.replace("2027-01-31T00:00:00Z", &next_year);
        let tomorrow = Timestamp::from_micros(SystemClock.now().as_micros() + DAY_MICROS).to_rfc3339();
        let body = json!({"to": ["bob@example.net"], "from": "hello@example.test", "subject": "Tomorrow",
            "plain_body": "It will arrive.", "send_at": tomorrow});
        for documented in DOCUMENTED_IDS {
            let sent = client.post_json(SEND, Some(&key), &body).await.expect("an answer").json();
            self.replace(documented, &sent["data"]["messages"]["bob@example.net"]["id"].to_string());
        }
        let wait = "/dev/messages/wait?to=ann@example.net&timeout=20";
        let caught = client.get(wait).await.expect("an answer").json();
        self.replace("/dev/messages/7/", &format!("/dev/messages/{}/", caught["id"]));
    }

    fn start_serve(&mut self, line: &str) {
        let mut arguments: Vec<String> = line
            .split_whitespace()
            .skip(1)
            .map(|word| {
                word.replace("postroad.toml", &self.folder.path().join("postroad.toml").display().to_string())
            })
            .collect();
        arguments.push("--json".to_owned());
        let data = self.folder.path().join("postroad-data").display().to_string();
        let name_server = self.dns.address().to_string();
        let own_settings =
            [("POSTROAD_DATA_DIR", data.as_str()), ("POSTROAD_DNS_NAMESERVERS", name_server.as_str())];
        let envs = [&TEST_SETTINGS[..], &own_settings].concat();
        let daemon = Daemon::start(program(), &arguments, &envs);
        let http = daemon.ready()["http"].as_str().expect("the ready line has the address").to_owned();
        self.replace("127.0.0.1:8025", &http);
        self.daemon = Some(daemon);
    }

    /// Publishes the zone files that a block wrote, as the reader does at the DNS service.
    fn publish_zone_files(&self) {
        for entry in fs::read_dir(self.folder.path()).expect("the folder can be listed") {
            let path = entry.expect("the folder can be listed").path();
            if path.extension().is_some_and(|extension| extension == "zone") {
                let zone = fs::read_to_string(&path).expect("the file can be read");
                self.dns.zone(&zone);
                fs::remove_file(&path).expect("the folder is writable");
            }
        }
    }

    fn replace(&mut self, from: &str, to: &str) {
        self.replacements.push((from.to_owned(), to.to_owned()));
    }

    /// Runs a script with the replacements made in it.
    fn output(&self, script: &str) -> Output {
        let script =
            self.replacements.iter().fold(script.to_owned(), |script, (from, to)| script.replace(from, to));
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.folder.path().join("bin").display());
        // No block takes long; one that hangs fails.
        let mut shell = daemon::command("timeout", &[("PATH", path.as_str())]);
        shell.args(["60", "sh", "-e", "-c", &script]).current_dir(self.folder.path());
        shell.output().expect("a POSIX shell is there")
    }

    /// Runs a script that must succeed; returns its standard output.
    fn run(&self, script: &str) -> String {
        let output = self.output(script);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{script}\n{text}\n{errors}", output.status);
        for failure in [r#""status":"error""#, r#""status":"parameter-error""#] {
            assert!(!text.contains(failure), "{script}\n{text}");
        }
        text
    }
}

async fn run_document(path: &Path, mode: &str) {
    let text = fs::read_to_string(path).expect("the document can be read");
    let blocks: Vec<Block> = shell_blocks(&text).into_iter().filter(|block| block.mode == mode).collect();
    if blocks.is_empty() {
        return;
    }
    let mut reader = Reader::new();
    if mode == "run" {
        reader.start_dev().await;
    }
    for block in blocks {
        eprintln!("{}:{}\n{}", path.display(), block.line, block.script);
        let script = block.script.trim();
        if script.starts_with("postroad serve") && script.lines().count() == 1 {
            reader.start_serve(script);
            continue;
        }
        let output = reader.run(&block.script);
        reader.publish_zone_files();
        // The key that the reader would paste into the next block.
        if let Some(key) = output.lines().find_map(|line| line.strip_prefix("api_key:")).map(str::trim) {
            reader.replace("PASTE-THE-KEY", key);
        }
    }
}

#[test]
fn every_shell_block_says_whether_it_is_run() {
    for path in documents() {
        let text = fs::read_to_string(&path).expect("the document can be read");
        for block in shell_blocks(&text) {
            assert!(
                ["run", "serve", "skip"].contains(&block.mode.as_str()),
                "{}:{}: write ```sh run, ```sh serve or ```sh skip",
                path.display(),
                block.line
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shell_blocks_of_the_documents_work_when_pasted() {
    for path in documents() {
        run_document(&path, "run").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_blocks_of_the_documents_work_when_pasted() {
    for path in documents() {
        run_document(&path, "serve").await;
    }
}
