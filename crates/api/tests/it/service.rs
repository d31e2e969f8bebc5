//! A running service for one test.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use postroad_api::{Api, HttpServer, Mode, Settings};
use postroad_app::App;
use postroad_app::admin::NewKey;
use postroad_model::{Clock, DomainName, Limits, Scope, SystemClock};
use postroad_store::{Database, Role, Store};
use postroad_testkit::{Client, ManualClock, Reply};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

pub(crate) const SEND_MESSAGE: &str = "/api/v1/send/message";
pub(crate) const SEND_RAW: &str = "/api/v1/send/raw";
pub(crate) const MESSAGE: &str = "/api/v1/messages/message";
pub(crate) const DELIVERIES: &str = "/api/v1/messages/deliveries";

pub(crate) struct Service {
    pub(crate) app: App,
    pub(crate) store: Store,
    /// Key with full scope, on a server with the verified domain `example.test`.
    pub(crate) key: String,
    pub(crate) address: SocketAddr,
    pub(crate) client: Client,
    pub(crate) server: HttpServer,
    _folder: TempDir,
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::start_with(Settings::default(), Mode::Serve).await
    }

    pub(crate) async fn start_with(settings: Settings, mode: Mode) -> Self {
        let folder = TempDir::new().unwrap();
        let (app, store) = open_app(&folder).await;
        Self::start_app(app, store, settings, mode, folder).await
    }

    /// Starts a service whose store refuses writes: no disk has as much free space as its reserve.
    pub(crate) async fn start_on_full_disk() -> Self {
        let folder = TempDir::new().unwrap();
        let database = Database::Sqlite(folder.path().join("postroad.db"));
        let (app, store) = open_app_with(database, u64::MAX, Arc::new(SystemClock)).await;
        Self::start_app(app, store, Settings::default(), Mode::Serve, folder).await
    }

    pub(crate) async fn start_on_database(database: Database) -> Self {
        let (app, store) = open_app_on_database(database).await;
        Self::start_app(app, store, Settings::default(), Mode::Serve, TempDir::new().unwrap()).await
    }

    /// Starts the service with a clock that the test moves.
    pub(crate) async fn start_with_clock(database: Database, clock: ManualClock) -> Self {
        let (app, store) = open_app_with(database, 0, Arc::new(clock)).await;
        Self::start_app(app, store, Settings::default(), Mode::Serve, TempDir::new().unwrap()).await
    }

    async fn start_app(app: App, store: Store, settings: Settings, mode: Mode, folder: TempDir) -> Self {
        let key = app.dev_setup().await.unwrap().api_key;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = HttpServer::start(&Api::new(app.clone(), settings), listener, None, mode);
        let client = Client::new(&format!("http://{address}"));
        Self { app, store, key, address, client, server, _folder: folder }
    }

    /// Makes a call with the service's key; returns the envelope.
    pub(crate) async fn call(&self, path: &str, body: &Value) -> Value {
        let reply = self.client.post_json(path, Some(&self.key), body).await.unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// Makes any request with the service's key.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut all = vec![("x-server-api-key", self.key.as_str())];
        all.extend(headers);
        self.client.request(method, path, &all, Bytes::from(body.to_owned())).await.unwrap()
    }

    /// Creates another key of the server; returns it.
    pub(crate) async fn create_key(&self, scope: Scope) -> String {
        let new = NewKey {
            server: "dev".into(),
            name: "another".into(),
            scope,
            test: false,
            hold: false,
            allow: Vec::new(),
            address: Vec::new(),
            login: None,
            expires_at: None,
        };
        self.app.create_key(new).await.unwrap()["api_key"].as_str().unwrap().to_owned()
    }

    /// Head of a POST request with the service's key and the given headers.
    pub(crate) fn head(&self, path: &str, headers: &str) -> Vec<u8> {
        format!("POST {path} HTTP/1.1\r\nHost: test\r\nX-Server-API-Key: {}\r\n{headers}\r\n", self.key)
            .into_bytes()
    }
}

pub(crate) async fn open_app(folder: &TempDir) -> (App, Store) {
    open_app_on_database(Database::Sqlite(folder.path().join("postroad.db"))).await
}

async fn open_app_on_database(database: Database) -> (App, Store) {
    open_app_with(database, 0, Arc::new(SystemClock)).await
}

async fn open_app_with(database: Database, disk_reserve_bytes: u64, clock: Arc<dyn Clock>) -> (App, Store) {
    let settings =
        postroad_store::Settings { disk_reserve_bytes, ..postroad_store::Settings::small(database) };
    let role = Role::Node { identity: "test".into() };
    let store = Store::open(settings, role, clock.clone()).await.unwrap();
    let hostname = DomainName::parse("mail.example.test").unwrap();
    (App::new(store.clone(), clock, Limits::default(), hostname), store)
}

/// Request of a valid send to `address`.
pub(crate) fn message_to(address: &str) -> Value {
    json!({
        "to": [address],
        "from": "Shop <shop@example.test>",
        "subject": "Hello",
        "plain_body": "Hello there",
    })
}
