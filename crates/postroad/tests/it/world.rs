//! Runs `postroad dev` on a fresh data folder and database; most tests begin with [`World::start`].

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use postroad_model::{Clock, MessageId, SystemClock};
use postroad_store::{Event, Role, Store};
use postroad_testkit::http::{Client, Reply};
use postroad_testkit::postgres::Database;
use postroad_testkit::{
    Daemon, FirstStart, OwnedRows, daemon, damage, eventually, owned_rows_of_postgres, owned_rows_of_sqlite,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Makes the tests `name::sqlite` and `name::postgres` of each scenario `async fn name(world: World)`. A scenario
/// `async fn name(engine: Engine)` starts the world itself.
macro_rules! both_engines {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            use crate::world::{Engine, ScenarioParameter};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$name(ScenarioParameter::start_on_engine(Engine::Sqlite)).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$name(ScenarioParameter::start_on_engine(Engine::Postgres)).await;
            }
        }
    )+};
}
pub(crate) use both_engines;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// Parameter of a scenario of [`both_engines`]: the engine itself, or a world started on it.
pub(crate) trait ScenarioParameter {
    fn start_on_engine(engine: Engine) -> Self;
}

impl ScenarioParameter for Engine {
    fn start_on_engine(engine: Self) -> Self {
        engine
    }
}

impl ScenarioParameter for World {
    fn start_on_engine(engine: Engine) -> Self {
        Self::start(engine)
    }
}

/// Arguments of `postroad dev` on any free ports.
pub(crate) const DEV_ARGUMENTS: [&str; 12] = [
    "dev",
    "--json",
    "--http-port",
    "0",
    "--plain-port",
    "0",
    "--smtp-port",
    "0",
    "--smtps-port",
    "0",
    "--bounce-port",
    "0",
];
pub(crate) const SEND: &str = "/api/v1/send/message";
pub(crate) const RAW: &str = "/api/v1/send/raw";
pub(crate) const MESSAGE: &str = "/api/v1/messages/message";
pub(crate) const DELIVERIES: &str = "/api/v1/messages/deliveries";

/// The program to test. `POSTROAD_TEST_PROGRAM` names another build, such as an optimised one for tests of speed.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let other = std::env::var_os("POSTROAD_TEST_PROGRAM");
        other.map_or_else(|| env!("CARGO_BIN_EXE_postroad").into(), PathBuf::from)
    });
    &PROGRAM
}

/// Whether [`program`] is as fast as a release build.
pub(crate) fn is_optimised_build() -> bool {
    std::env::var_os("POSTROAD_TEST_PROGRAM").is_some() || !cfg!(debug_assertions)
}

/// A running `postroad dev`, with its data folder, its database, and a client that has its key.
pub(crate) struct World {
    pub(crate) daemon: Daemon,
    pub(crate) client: Client,
    pub(crate) key: String,
    pub(crate) folder: TempDir,
    envs: Vec<(String, String)>,
    // Declared after the daemon, so that it is dropped when nobody is connected any more.
    database: Option<Database>,
}

impl World {
    pub(crate) fn start(engine: Engine) -> Self {
        Self::start_with(engine, &[])
    }

    /// Starts on copies of a data folder and database that an earlier start has set up.
    pub(crate) fn start_with(engine: Engine, envs: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("the temporary folder is writable");
        let database = first_start(engine).copy_to(&folder.path().join("data"));
        let url = database.as_ref().map(|database| database.url().to_owned());
        Self::start_in(folder, url.as_deref(), database, envs)
    }

    /// Like `start_with`, but on an empty data folder and database.
    pub(crate) fn start_first(engine: Engine, envs: &[(&str, &str)]) -> Self {
        let database = (engine == Engine::Postgres).then(Database::create);
        let url = database.as_ref().map(|database| database.url().to_owned());
        Self::start_on(url.as_deref(), database, envs)
    }

    /// Starts in a new data folder, on the database at `url`, or on SQLite if that is `None`.
    pub(crate) fn start_on(url: Option<&str>, database: Option<Database>, envs: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("the temporary folder is writable");
        Self::start_in(folder, url, database, envs)
    }

    fn start_in(
        folder: TempDir,
        url: Option<&str>,
        database: Option<Database>,
        envs: &[(&str, &str)],
    ) -> Self {
        let mut envs: Vec<(String, String)> =
            envs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if let Some(url) = url {
            envs.push(("POSTROAD_DATABASE".to_owned(), url.to_owned()));
        }
        let daemon = start_daemon(&folder.path().join("data"), &envs);
        let (client, key) = connect(&daemon);
        Self { daemon, client, key, folder, envs, database }
    }

    /// Starts on SQLite, in a process to which file permissions apply even if root runs the tests.
    pub(crate) fn start_without_root_rights() -> Self {
        let folder = TempDir::new().expect("the temporary folder is writable");
        let data_dir = folder.path().join("data");
        let is_root = folder.path().metadata().is_ok_and(|metadata| metadata.uid() == 0);
        let daemon = if is_root {
            let setpriv =
                ["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"].map(OsStr::new);
            let rest = [program().as_os_str()].into_iter().chain(DEV_ARGUMENTS.map(OsStr::new));
            let data_dir = [OsStr::new("--data-dir"), data_dir.as_os_str()];
            Daemon::start(Path::new("setpriv"), setpriv.into_iter().chain(rest).chain(data_dir), &[])
        } else {
            start_daemon(&data_dir, &[])
        };
        let (client, key) = connect(&daemon);
        Self { daemon, client, key, folder, envs: Vec::new(), database: None }
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Everything the PostgreSQL database holds, as text; `None` on SQLite.
    pub(crate) fn database_text(&self) -> Option<String> {
        let url = self.envs.iter().find(|(name, _)| name == "POSTROAD_DATABASE").map(|(_, url)| url)?;
        Some(postroad_testkit::postgres::all_text(url))
    }

    /// Numbers of rows that belong to servers and accounts, in all tables.
    pub(crate) fn owned_rows(&self) -> OwnedRows {
        match &self.database {
            Some(database) => owned_rows_of_postgres(database.url()),
            None => owned_rows_of_sqlite(&self.data_dir().join("postroad.db")),
        }
    }

    /// The PostgreSQL database, to change it as somebody with access could.
    pub(crate) fn database(&self) -> &Database {
        self.database.as_ref().expect("it runs on PostgreSQL")
    }

    /// Changes the database as somebody with access could.
    pub(crate) fn execute(&self, statements: &str) {
        match &self.database {
            Some(database) => database.execute(statements),
            None => damage::execute(&self.data_dir().join("postroad.db"), statements),
        }
    }

    /// Makes the database refuse outcomes of one message's attempts, as if the message's rows were damaged.
    pub(crate) fn refuse_outcomes_of(&self, message: i64) {
        match &self.database {
            Some(database) => database.refuse_outcomes_of(message),
            None => self.execute(&format!(
                "CREATE TRIGGER refuse_outcomes BEFORE INSERT ON deliveries WHEN NEW.message_id = {message}
                 BEGIN SELECT RAISE(ABORT, 'damaged'); END"
            )),
        }
    }

    /// Ends `refuse_outcomes_of`.
    pub(crate) fn accept_outcomes(&self) {
        match &self.database {
            Some(database) => database.accept_outcomes(),
            None => self.execute("DROP TRIGGER refuse_outcomes"),
        }
    }

    /// kill -9, then a new process on the same data.
    pub(crate) fn crash_and_restart(&mut self) {
        self.daemon.kill9();
        self.restart();
    }

    /// Starts a new process on the same data, with a new key.
    pub(crate) fn restart(&mut self) {
        self.daemon = start_daemon(&self.data_dir(), &self.envs);
        (self.client, self.key) = connect(&self.daemon);
    }

    /// Like `restart`, with some variables changed from now on.
    pub(crate) fn restart_with(&mut self, envs: &[(&str, &str)]) {
        for (name, value) in envs {
            self.envs.retain(|(known, _)| known != name);
            self.envs.push(((*name).to_owned(), (*value).to_owned()));
        }
        self.restart();
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.client.post_json(path, Some(&self.key), body).await.expect("the service answers")
    }

    /// Posts and returns the envelope of an answer that must be HTTP 200.
    pub(crate) async fn call(&self, path: &str, body: &Value) -> Value {
        envelope(&self.post(path, body).await)
    }

    pub(crate) async fn call_with(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Value {
        let reply = self.request("POST", path, headers, body.to_string()).await;
        envelope(&reply)
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let mut all = vec![("X-Server-API-Key", self.key.as_str())];
        all.extend_from_slice(headers);
        let method = method.parse().expect("a method");
        self.client.request(method, path, &all, body.into()).await.expect("the service answers")
    }

    /// Sends a message; returns the `data` of the answer, which must be a success.
    pub(crate) async fn accepted(&self, body: &Value) -> Value {
        let answer = self.call(SEND, body).await;
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    }

    /// Like `accepted`; returns the id of the first message.
    pub(crate) async fn accepted_id(&self, body: &Value) -> i64 {
        let data = self.accepted(body).await;
        let messages = data["messages"].as_object().expect("a map");
        messages.values().next().expect("a message")["id"].as_i64().expect("an integer")
    }

    /// A message with all expansions.
    pub(crate) async fn expanded(&self, id: i64) -> Value {
        let answer = self.call(MESSAGE, &json!({"id": id, "_expansions": true})).await;
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    }

    pub(crate) async fn deliveries(&self, id: i64) -> Value {
        let answer = self.call(DELIVERIES, &json!({ "id": id })).await;
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    }

    /// Waits until the message has this status; returns its deliveries.
    pub(crate) async fn until_status(&self, id: i64, status: &str) -> Vec<Value> {
        self.until(id, status, |now, _| now == status).await
    }

    /// Waits until `count` deliveries are recorded.
    pub(crate) async fn until_deliveries(&self, id: i64, count: usize) -> Vec<Value> {
        self.until(id, &format!("{count} deliveries"), |_, deliveries| deliveries.len() >= count).await
    }

    async fn until(&self, id: i64, what: &str, is_so: impl Fn(&str, &[Value]) -> bool) -> Vec<Value> {
        eventually(async || {
            let body = json!({"id": id, "_expansions": ["status", "details"]});
            let message = self.call(MESSAGE, &body).await["data"].clone();
            let status = &message["status"];
            let Value::Array(deliveries) = self.deliveries(id).await else { panic!("deliveries are a list") };
            if is_so(status["status"].as_str().expect("a status"), &deliveries) {
                return Ok(deliveries);
            }
            let (to, log) = (&message["details"]["rcpt_to"], self.daemon.stderr_text());
            Err(format!("message {id} to {to} is not {what}: {status:#} {deliveries:#?}\n{log}"))
        })
        .await
    }

    /// Waits until the log contains `text`, for facts that no entry point shows.
    pub(crate) async fn until_logged(&self, text: &str) {
        eventually(async || {
            let log = self.daemon.stderr_text();
            if log.contains(text) { Ok(()) } else { Err(format!("not logged: {text}\n{log}")) }
        })
        .await;
    }

    /// Events of a message, read from the store; the id 0 means those of the server itself. Stops the service.
    pub(crate) async fn events_at_the_end(&mut self, id: i64) -> Vec<Event> {
        let store = self.stopped_store().await;
        let servers = store.list_servers().await.expect("the store can be read");
        let dev = servers.iter().find(|server| server.name == "dev").expect("`dev` has its server");
        store.list_events(dev.id, MessageId(id)).await.expect("the store can be read")
    }

    /// Stops the service and opens its store.
    pub(crate) async fn stopped_store(&mut self) -> Store {
        self.stopped_store_as(Role::Tool, Arc::new(SystemClock)).await
    }

    /// Like `stopped_store`, as the node that stopped, and with another clock.
    pub(crate) async fn stopped_store_at(&mut self, clock: impl Clock + 'static) -> Store {
        let identity = std::fs::read_to_string(self.data_dir().join("node-id")).unwrap_or_default();
        self.stopped_store_as(Role::Node { identity: identity.trim().to_owned() }, Arc::new(clock)).await
    }

    async fn stopped_store_as(&mut self, role: Role, clock: Arc<dyn Clock>) -> Store {
        assert!(self.daemon.terminate().success(), "{}", self.daemon.stderr_text());
        let url = self.envs.iter().find(|(name, _)| name == "POSTROAD_DATABASE").map(|(_, url)| url.clone());
        let settings = postroad_store::Settings::small(match url {
            Some(url) => postroad_store::Database::Postgres(url),
            None => postroad_store::Database::Sqlite(self.data_dir().join("postroad.db")),
        });
        Store::open(settings, role, clock).await.expect("the store is free")
    }

    /// `postroad admin … --json` beside the running service.
    pub(crate) fn admin(&self, args: &[&str]) -> Value {
        let (success, out, err) = self.admin_output(args);
        assert!(success, "postroad admin {args:?}: {err}");
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("postroad admin {args:?}: {e}: {out}"))
    }

    pub(crate) fn admin_output(&self, args: &[&str]) -> (bool, String, String) {
        self.command_output("admin", args)
    }

    /// `postroad audit … --json` beside the running service.
    pub(crate) fn audit_output(&self, args: &[&str]) -> (bool, String, String) {
        self.command_output("audit", args)
    }

    /// `postroad queue … --json` beside the running service.
    pub(crate) fn queue(&self, args: &[&str]) -> Value {
        let (success, out, err) = self.command_output("queue", args);
        assert!(success, "postroad queue {args:?}: {err}");
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("postroad queue {args:?}: {e}: {out}"))
    }

    /// Runs a `queue` command that fails; returns its standard output and standard error.
    pub(crate) fn refused_queue(&self, args: &[&str]) -> (String, String) {
        let (success, out, err) = self.command_output("queue", args);
        assert!(!success, "postroad queue {args:?} succeeded: {out}");
        (out, err)
    }

    /// Returns when all changes made so far are in effect in the delivery engine, which may otherwise take seconds:
    /// a command about gates makes the engine read its whole setup before it answers.
    pub(crate) fn apply_changes(&self) {
        self.queue(&["suspend", "domain:nobody.invalid", "--reason", "to be read"]);
        self.queue(&["resume", "domain:nobody.invalid"]);
    }

    /// `postroad COMMAND … --json` beside the running service.
    pub(crate) fn command_output(&self, command: &str, args: &[&str]) -> (bool, String, String) {
        let envs: Vec<(&str, &str)> = self.envs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let output = daemon::command(program(), &envs)
            .arg(command)
            .args(args)
            .args(["--json", "--data-dir"])
            .arg(self.data_dir())
            .output()
            .expect("the program starts");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    /// Creates a key of the server `dev`; returns its id and the key itself.
    pub(crate) fn new_key(&self, args: &[&str]) -> (i64, String) {
        let mut all = vec!["key", "create", "--server", "dev"];
        all.extend_from_slice(args);
        let made = self.admin(&all);
        (made["id"].as_i64().expect("an id"), made["api_key"].as_str().expect("a key").to_owned())
    }

    pub(crate) async fn call_as(&self, key: &str, path: &str, body: &Value) -> Value {
        envelope(&self.client.post_json(path, Some(key), body).await.expect("the service answers"))
    }
}

fn first_start(engine: Engine) -> &'static FirstStart {
    static SQLITE: LazyLock<FirstStart> = LazyLock::new(|| FirstStart::of(program(), &DEV_ARGUMENTS, None));
    static POSTGRES: LazyLock<FirstStart> =
        LazyLock::new(|| FirstStart::of(program(), &DEV_ARGUMENTS, Some(Database::create())));
    match engine {
        Engine::Sqlite => &SQLITE,
        Engine::Postgres => &POSTGRES,
    }
}

fn start_daemon(data_dir: &Path, envs: &[(String, String)]) -> Daemon {
    let envs: Vec<(&str, &str)> = envs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let data_dir = data_dir.to_str().expect("temporary folders have plain names");
    Daemon::start(program(), DEV_ARGUMENTS.into_iter().chain(["--data-dir", data_dir]), &envs)
}

fn connect(daemon: &Daemon) -> (Client, String) {
    let text = |name: &str| daemon.ready()[name].as_str().expect("the ready line has it").to_owned();
    (Client::new(&text("url")), text("api_key"))
}

/// Like `checked_envelope`, of an answer that must have the HTTP status 200.
pub(crate) fn envelope(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    checked_envelope(reply)
}

/// The envelope of an answer; checks what every envelope has.
pub(crate) fn checked_envelope(reply: &Reply) -> Value {
    let answer = reply.json();
    let keys: Vec<&String> = answer.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["status", "time", "flags", "data"], "{answer}");
    assert!(answer["time"].is_f64(), "{answer}");
    assert!(answer["flags"].is_object(), "{answer}");
    assert!(reply.header("x-request-id").is_some_and(|id| !id.is_empty()));
    answer
}

/// A valid body of send/message.
pub(crate) fn good() -> Value {
    json!({
        "to": ["someone@example.com"],
        "from": "Shop <shop@example.test>",
        "subject": "Your order",
        "plain_body": "Thank you.",
    })
}

/// `good` with some fields replaced or added.
pub(crate) fn good_but(fields: Value) -> Value {
    let mut body = good();
    let Value::Object(fields) = fields else { panic!("fields are an object") };
    body.as_object_mut().expect("an object").extend(fields);
    body
}

/// `good` without a field.
pub(crate) fn good_without(field: &str) -> Value {
    let mut body = good();
    body.as_object_mut().expect("an object").remove(field);
    body
}
