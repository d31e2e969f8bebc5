//! Running relay for one test.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use postroad_app::App;
use postroad_app::admin::NewKey;
use postroad_model::{Clock, DomainName, Limits, Scope, SystemClock};
use postroad_net::ReloadingCertificate;
use postroad_relay::{ListenerKind, Relay, Settings};
use postroad_store::{ClaimSkips, Database, Message, Role, Store};
use postroad_testkit::{SmtpClient, TestCertificate};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;

pub(crate) const FROM: &str = "shop@example.test";

pub(crate) struct Service {
    pub(crate) app: App,
    pub(crate) store: Store,
    pub(crate) key: String,
    pub(crate) secret: String,
    pub(crate) starttls: SocketAddr,
    pub(crate) tls: SocketAddr,
    pub(crate) plain: SocketAddr,
    pub(crate) relay: Relay,
    _folder: TempDir,
}

pub(crate) fn settings() -> Settings {
    Settings::new(DomainName::parse("mail.example.test").unwrap())
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::start_with(settings(), 0).await
    }

    pub(crate) async fn start_with(settings: Settings, disk_reserve_bytes: u64) -> Self {
        let folder = TempDir::new().unwrap();
        let store = open_store(&folder, disk_reserve_bytes).await;
        let limits = Limits { message_bytes_max: settings.message_bytes_max, ..Limits::default() };
        let app = App::new(store.clone(), Arc::new(SystemClock), limits, settings.hostname.clone());
        let setup = app.dev_setup().await.unwrap();
        let tls_config = load_certificate(&folder).smtp_config();
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for kind in [
            ListenerKind::StartTls(Arc::clone(&tls_config)),
            ListenerKind::Tls(tls_config),
            ListenerKind::Plain,
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            addresses.push(listener.local_addr().unwrap());
            listeners.push((kind, listener));
        }
        let relay = Relay::start(&app, &settings, listeners);
        Self {
            app,
            store,
            key: setup.api_key,
            secret: setup.api_secret,
            starttls: addresses[0],
            tls: addresses[1],
            plain: addresses[2],
            relay,
            _folder: folder,
        }
    }

    /// Connects inside TLS and logs in.
    pub(crate) async fn client(&self) -> SmtpClient {
        let mut client = SmtpClient::connect_tls(self.tls).await;
        let reply = client.say(&auth_plain(&self.key, &self.secret)).await;
        assert_eq!(reply, "235 2.7.0 Authentication succeeded");
        client
    }

    pub(crate) fn plain_key() -> NewKey {
        NewKey {
            server: "dev".into(),
            name: "another".into(),
            scope: Scope::Full,
            test: false,
            hold: false,
            allow: Vec::new(),
            address: Vec::new(),
            login: None,
            expires_at: None,
        }
    }

    pub(crate) async fn create_key(&self, change: impl FnOnce(&mut NewKey)) -> Value {
        let mut new = Self::plain_key();
        change(&mut new);
        self.app.create_key(new).await.unwrap()
    }

    /// Binds a credential to the loopback address.
    pub(crate) async fn bind_loopback(&self) {
        self.create_key(|key| key.address = vec![IpAddr::from([127, 0, 0, 1]).into()]).await;
    }

    /// Messages stored since the last call that wait for delivery, in the order of their ids.
    pub(crate) async fn take_stored(&self) -> Vec<StoredMessage> {
        let later = SystemClock.now().plus(Duration::from_hours(1));
        let mut stored = Vec::new();
        for claimed in self.store.claim(later, 10_000, ClaimSkips::default()).await.unwrap() {
            let found = self.store.find_message(claimed.server_id, claimed.message_id).await.unwrap();
            let message = found.unwrap();
            let send = &message.send;
            let bytes = self.store.read_body(claimed.server_id, send.id, send.size).await.unwrap();
            stored.push(StoredMessage { message, text: String::from_utf8(bytes).unwrap() });
        }
        stored.sort_by_key(|stored| stored.message.id);
        stored
    }

    /// The only message stored since the last call.
    pub(crate) async fn take_only_stored(&self) -> StoredMessage {
        let mut stored = self.take_stored().await;
        assert_eq!(stored.len(), 1);
        stored.remove(0)
    }
}

#[derive(Debug)]
pub(crate) struct StoredMessage {
    pub(crate) message: Message,
    pub(crate) text: String,
}

impl StoredMessage {
    /// Whether `reply` names this message.
    pub(crate) fn is_answered_by(&self, reply: &str) -> bool {
        reply == format!("250 2.0.0 OK queued as {}", self.message.token)
    }
}

async fn open_store(folder: &TempDir, disk_reserve_bytes: u64) -> Store {
    let settings = postroad_store::Settings {
        disk_reserve_bytes,
        ..postroad_store::Settings::small(Database::Sqlite(folder.path().join("postroad.db")))
    };
    let role = Role::Node { identity: "test".into() };
    Store::open(settings, role, Arc::new(SystemClock)).await.unwrap()
}

fn load_certificate(folder: &TempDir) -> Arc<ReloadingCertificate> {
    let pair = TestCertificate::for_localhost();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&certificate, pair.certificate_pem).unwrap();
    std::fs::write(&key, pair.key_pem).unwrap();
    ReloadingCertificate::load(&certificate, &key).unwrap()
}

/// Valid message with these headers on top; its last line has no line end.
pub(crate) fn message_text(headers: &str) -> String {
    format!("{headers}From: Shop <{FROM}>\r\nSubject: Hello\r\n\r\nHello there")
}

pub(crate) fn auth_plain(key: &str, secret: &str) -> String {
    format!("AUTH PLAIN {}", encode(&format!("\0{key}\0{secret}")))
}

pub(crate) fn encode(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}
