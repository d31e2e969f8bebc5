//! The services that the tests use: a running `postroad dev`, and a running `postroad serve` that nobody has set up yet.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use postroad_testkit::http::Method;
use postroad_testkit::{Browser, Client, Daemon, Database, FirstStart, Reply, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::roles::call;

/// Arguments of `postroad dev` with free ports.
const DEV_ARGUMENTS: [&str; 10] =
    ["dev", "--json", "--http-port", "0", "--smtp-port", "0", "--smtps-port", "0", "--bounce-port", "0"];

/// Data folder after a first start on SQLite.
static FIRST_START: LazyLock<FirstStart> = LazyLock::new(|| FirstStart::of(program(), &DEV_ARGUMENTS, None));

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_postroad"))
}

/// A running `postroad dev`.
pub(crate) struct DevService {
    daemon: Daemon,
    pub(crate) client: Client,
    pub(crate) url: String,
    folder: TempDir,
    database: Option<Database>,
}

impl DevService {
    /// Starts a service on SQLite.
    pub(crate) fn start() -> Self {
        Self::start_with(None, &[])
    }

    /// Like `start`, on a new PostgreSQL database.
    pub(crate) fn start_on_postgres() -> Self {
        Self::start_with(Some(Database::create()), &[])
    }

    /// Starts a service with these environment variables, on SQLite unless a database is given.
    pub(crate) fn start_with(database: Option<Database>, envs: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("the temporary folder is writable");
        let mut envs = envs.to_vec();
        match &database {
            Some(database) => envs.push(("POSTROAD_DATABASE", database.url())),
            None => drop(FIRST_START.copy_to(&folder.path().join("data"))),
        }
        Self::of(start_daemon(&folder, &envs), folder, database)
    }

    /// Starts another node on this service's database, with the same sealing key. Drop it before this service, which
    /// owns the database.
    pub(crate) fn start_beside(&self) -> Self {
        let folder = TempDir::new().expect("the temporary folder is writable");
        let database = self.database.as_ref().expect("it runs on PostgreSQL");
        let key_file = self.folder.path().join("data/secrets.key");
        let key_file = ("POSTROAD_SECRETS_KEY_FILE", key_file.to_str().unwrap());
        let daemon = start_daemon(&folder, &[("POSTROAD_DATABASE", database.url()), key_file]);
        Self::of(daemon, folder, None)
    }

    fn of(daemon: Daemon, folder: TempDir, database: Option<Database>) -> Self {
        let url = daemon.ready()["url"].as_str().unwrap().to_owned();
        Self { client: Client::new(&url), url, daemon, folder, database }
    }

    /// A field of the ready line.
    pub(crate) fn ready(&self, name: &str) -> String {
        self.daemon.ready()[name].as_str().unwrap().to_owned()
    }

    /// Address of the bounce listener.
    pub(crate) fn bounce_address(&self) -> SocketAddr {
        let port = self.daemon.ready()["smtp"]["bounce_port"].as_u64().unwrap();
        SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()))
    }

    /// Address of the port that accepts mail from everybody.
    pub(crate) fn plain_address(&self) -> SocketAddr {
        let port = self.daemon.ready()["smtp"]["plain_port"].as_u64().unwrap();
        SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()))
    }

    /// Port for submission with STARTTLS.
    pub(crate) fn starttls_port(&self) -> u64 {
        self.daemon.ready()["smtp"]["starttls_port"].as_u64().unwrap()
    }

    /// Sends SIGHUP: the service loads its certificate again.
    pub(crate) fn hang_up(&self) {
        self.daemon.signal("HUP");
    }

    /// The PostgreSQL database, to change it as somebody with access could.
    pub(crate) fn database(&self) -> &Database {
        self.database.as_ref().expect("it runs on PostgreSQL")
    }

    /// Sends SIGTERM: the service stops.
    pub(crate) fn terminate(&self) {
        self.daemon.signal("TERM");
    }

    /// `postroad queue stats` beside the running service.
    pub(crate) fn queue_stats(&self) -> Value {
        let mut command = Command::new(program());
        command.args(["queue", "stats", "--json", "--data-dir"]).arg(self.folder.path().join("data"));
        if let Some(database) = &self.database {
            command.env("POSTROAD_DATABASE", database.url());
        }
        let output = command.output().expect("the program runs");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// URL of a path.
    pub(crate) fn url_of(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Sends by the API with this key; returns the ids of the messages.
    pub(crate) async fn send_with(&self, key: &str, message: &Value) -> Vec<i64> {
        let answer = self.client.post_json("/api/v1/send/message", Some(key), message).await.unwrap().json();
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"]["messages"]
            .as_object()
            .unwrap()
            .values()
            .map(|message| message["id"].as_i64().unwrap())
            .collect()
    }

    /// Sends a message with these fields in addition to, or instead of, the usual ones; returns its id.
    pub(crate) async fn send(&self, fields: Value) -> i64 {
        let mut message = json!({
            "to": ["ann@example.net"], "from": "shop@example.test", "subject": "Your order", "plain_body": "Thank you.",
        });
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.send_with(&self.ready("api_key"), &message).await[0]
    }

    /// Waits until a message has a status.
    pub(crate) async fn until_status(&self, id: i64, status: &str) {
        let (wanted, key) = (json!({ "id": id, "_expansions": ["status"] }), self.ready("api_key"));
        eventually(async || {
            let answer =
                self.client.post_json("/api/v1/messages/message", Some(&key), &wanted).await.unwrap().json();
            let is_so = answer["data"]["status"]["status"] == status;
            if is_so { Ok(()) } else { Err(format!("message {id} is not {status}: {answer}")) }
        })
        .await;
    }

    /// A browser that is signed in by the link of the ready line, on the overview of the first server.
    pub(crate) async fn signed_in_browser(&self) -> Browser {
        let browser = Browser::start().await;
        browser.open(&self.ready("sign_in_url")).await;
        browser.until("nav.side").await;
        browser
    }

    /// Signs in without a browser, as the developer, who is the operator; returns the cookie of the new session.
    pub(crate) async fn sign_in(&self) -> String {
        let link = self.ready("sign_in_url");
        let reply = self.client.get(link.strip_prefix(&self.url).unwrap()).await.unwrap();
        assert_eq!(reply.status, 303, "{}", String::from_utf8_lossy(&reply.body));
        let cookie = reply.headers["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Loads a page with this session cookie.
    pub(crate) async fn get(&self, path: &str, cookie: &str) -> Reply {
        self.client.request(Method::GET, path, &[("cookie", cookie)], no_body()).await.unwrap()
    }

    /// Sends a form of a signed-in person, with the session's token.
    pub(crate) async fn submit(&self, path: &str, cookie: &str, fields: &str) -> Reply {
        let token = form_token(&self.get("/servers", cookie).await);
        let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
        self.post(path, &headers, &format!("csrf={token}&{fields}")).await
    }

    /// Path of the first server's overview.
    pub(crate) async fn server_path(&self, cookie: &str) -> String {
        self.get("/", cookie).await.headers["location"].to_str().unwrap().to_owned()
    }

    /// Sends a form with these headers, without adding the session's token.
    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], form: &str) -> Reply {
        let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
        all.extend_from_slice(headers);
        self.client.request(Method::POST, path, &all, form.to_owned().into()).await.unwrap()
    }
}

fn start_daemon(folder: &TempDir, envs: &[(&str, &str)]) -> Daemon {
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().unwrap();
    Daemon::start(program(), DEV_ARGUMENTS.iter().copied().chain(["--data-dir", data_dir]), envs)
}

/// A second server, with the domain `dev.test`; a development server unless `create_live` made it.
pub(crate) struct SecondServer {
    pub(crate) id: i64,
    pub(crate) key: String,
}

impl SecondServer {
    /// Creates a development server.
    pub(crate) async fn create_development(service: &DevService) -> Self {
        Self::create_in_mode(service, "development").await
    }

    /// Creates a live server, which sends its mail.
    pub(crate) async fn create_live(service: &DevService) -> Self {
        Self::create_in_mode(service, "live").await
    }

    async fn create_in_mode(service: &DevService, mode: &str) -> Self {
        let account_key = service.ready("account_api_key");
        let by_account =
            async |path: &str, body| call(service, "x-account-api-key", &account_key, path, &body).await;
        let server = json!({ "name": "staging", "mode": mode });
        let id = by_account("servers/create", server).await["id"].as_i64().unwrap();
        let key =
            by_account("credentials/create", json!({ "server": id, "name": "all", "scope": "full" })).await;
        let key = key["api_key"].as_str().unwrap().to_owned();
        let domain = json!({ "name": "dev.test" });
        call(service, "x-server-api-key", &key, "domains/create", &domain).await;
        assert_eq!(service.post("/dev/dns/dev.test", &[], "").await.status, 200);
        eventually(async || {
            let checked = call(service, "x-server-api-key", &key, "domains/verify", &domain).await;
            if checked["verified"] == true { Ok(()) } else { Err(checked) }
        })
        .await;
        Self { id, key }
    }

    /// Sends a message, which a development server holds; returns its id.
    pub(crate) async fn send(&self, service: &DevService, fields: Value) -> i64 {
        let mut message = json!({ "to": ["ann@example.net"], "from": "shop@dev.test", "subject": "Held", "plain_body": "Hi." });
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        service.send_with(&self.key, &message).await[0]
    }
}

/// A running `postroad serve` that was started on an empty folder: nobody has set it up yet.
pub(crate) struct FreshService {
    pub(crate) url: String,
    /// The one-time link for the first person, at the address where the service listens.
    pub(crate) set_up_link: String,
    pub(crate) client: Client,
    daemon: Daemon,
    _folder: TempDir,
}

impl FreshService {
    /// Starts the service; `extra_config` is appended to the configuration.
    pub(crate) fn start(extra_config: &str) -> Self {
        let folder = TempDir::new().expect("the temporary folder is writable");
        let config = Self::write_configuration(&folder, extra_config);
        let daemon = Daemon::start(program(), ["serve", "--json", "--config", config.to_str().unwrap()], &[]);
        let url = format!("http://{}", daemon.ready()["http"].as_str().unwrap());
        let printed = daemon.ready()["set_up_url"].as_str().unwrap();
        let set_up_link = format!("{url}/{}", printed.splitn(4, '/').nth(3).unwrap());
        Self { client: Client::new(&url), url, set_up_link, daemon, _folder: folder }
    }

    /// Writes a configuration with plain HTTP on loopback, with `extra_config` appended; returns its path.
    pub(crate) fn write_configuration(folder: &TempDir, extra_config: &str) -> PathBuf {
        let path = folder.path().join("postroad.toml");
        let data_dir = folder.path().join("data");
        let text = format!(
            "data_dir = \"{}\"\nhostname = \"mail.example.com\"\n[http]\nlisten = \"127.0.0.1:0\"\n{extra_config}",
            data_dir.display()
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    /// URL of a path.
    pub(crate) fn url_of(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Port of the HTTPS listener; the configuration must have one.
    pub(crate) fn https_port(&self) -> u16 {
        self.daemon.ready()["https"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap()
    }
}

/// The value of the first hidden field of this name.
pub(crate) fn hidden_field(page: &str, name: &str) -> String {
    let (_, rest) =
        page.split_once(&format!("name=\"{name}\" value=\"")).expect("the page has the hidden field");
    rest.split('"').next().unwrap().to_owned()
}

fn no_body() -> postroad_testkit::http::Bytes {
    postroad_testkit::http::Bytes::new()
}

/// The token of the forms on a page.
pub(crate) fn form_token(page: &Reply) -> String {
    let text = String::from_utf8_lossy(&page.body).into_owned();
    let (_, rest) = text.split_once("name=\"csrf\" value=\"").expect("the page has a form");
    rest.split('"').next().unwrap().to_owned()
}

/// Id of the server whose page is open in the browser.
pub(crate) async fn server_of(browser: &Browser) -> i64 {
    let url = browser.url().await;
    url.rsplit_once("/servers/").unwrap().1.split(['/', '?']).next().unwrap().parse().unwrap()
}

/// Folder for pictures of pages.
pub(crate) fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("portal-pictures")
}
