//! A fresh store on either engine, with a clock that only the test advances, one account and two servers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{
    AccountId, Clock as _, Direction, DomainName, EventKind, MessageId, MessageToken, SendId, ServerId,
    ServerMode, Status, Timestamp,
};
use postroad_store::{
    Accepted, ClaimSkips, ClaimedEntry, Database, Delivery, DomainOwner, Event, Idempotency, InitialState,
    KeyAlgorithm, Message, NewDelivery, NewDkimKey, NewDomain, NewEvent, NewRecipient, NewSend, NewServer,
    OTHER_PROVIDER, OpenError, Outcome, Role, SendInfo, SendOptions, Settings, Store, StoreError, StoredBody,
};
use postroad_testkit::ManualClock;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio_postgres::NoTls;

/// Makes `name::sqlite` and `name::postgres` of each `async fn name(fixture: Fixture)`.
macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            use crate::fixture::Fixture;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$name(Fixture::sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$name(Fixture::postgres().await).await;
            }
        }
    )+};
}
pub(crate) use on_both_engines;

pub(crate) const IDENTITY: &str = "the node of the test";

/// The main tables to which `accept` and `finish` write.
pub(crate) const MAIL_TABLES: [&str; 7] =
    ["sends", "bodies", "messages", "queue", "deliveries", "events", "idempotency_keys"];

pub(crate) struct Fixture {
    // Declared before `engine_files`, so that the store is closed before the files and databases are removed.
    pub(crate) store: Store,
    pub(crate) clock: ManualClock,
    pub(crate) account: AccountId,
    pub(crate) server: ServerId,
    pub(crate) other_server: ServerId,
    pub(crate) engine_files: EngineFiles,
}

/// Where a store keeps its data; removed when this is dropped.
pub(crate) enum EngineFiles {
    Sqlite(TempDir),
    Postgres(postroad_testkit::Database),
}

impl EngineFiles {
    pub(crate) fn database(&self) -> Database {
        match self {
            Self::Sqlite(_) => Database::Sqlite(self.sqlite_path()),
            Self::Postgres(database) => Database::Postgres(database.url().to_owned()),
        }
    }

    pub(crate) fn sqlite_path(&self) -> PathBuf {
        match self {
            Self::Sqlite(folder) => folder.path().join("data/postroad.db"),
            Self::Postgres(_) => panic!("this is PostgreSQL"),
        }
    }
}

pub(crate) fn settings(database: Database) -> Settings {
    Settings { reader_threads: 2, postgres_connections: 8, ..Settings::small(database) }
}

pub(crate) async fn open(
    database: Database,
    identity: &str,
    clock: &ManualClock,
) -> Result<Store, OpenError> {
    Store::open(settings(database), Role::Node { identity: identity.to_owned() }, Arc::new(clock.clone()))
        .await
}

/// A DKIM key; its private and public parts are texts that contain the selector.
pub(crate) fn new_key(selector: &str, algorithm: KeyAlgorithm) -> NewDkimKey {
    NewDkimKey {
        selector: selector.to_owned(),
        algorithm,
        private_pkcs8: format!("private {selector}").into_bytes(),
        public_spki: format!("public {selector}").into_bytes(),
    }
}

async fn create_tables() -> postroad_testkit::Database {
    let database = postroad_testkit::Database::create();
    let settings = settings(Database::Postgres(database.url().to_owned()));
    drop(
        Store::open(settings, Role::Tool, Arc::new(ManualClock::default()))
            .await
            .expect("a fresh store opens"),
    );
    database
}

impl Fixture {
    pub(crate) async fn sqlite() -> Self {
        Self::at(EngineFiles::Sqlite(TempDir::new().expect("the temporary folder is writable"))).await
    }

    /// Copies a database that has all tables already, because creating the tables takes longer than most tests.
    pub(crate) async fn postgres() -> Self {
        static WITH_TABLES: OnceCell<postroad_testkit::Database> = OnceCell::const_new();
        let with_tables = WITH_TABLES.get_or_init(create_tables).await;
        Self::at(EngineFiles::Postgres(with_tables.copy())).await
    }

    async fn at(engine_files: EngineFiles) -> Self {
        let database = engine_files.database();
        Self::through(engine_files, database).await
    }

    /// `database` is how the store reaches `engine_files`, perhaps through a proxy.
    pub(crate) async fn through(engine_files: EngineFiles, database: Database) -> Self {
        let clock = ManualClock::default();
        let store = open(database, IDENTITY, &clock).await.expect("a fresh store opens");
        let account = store.create_account("Acme".into()).await.expect("the store is empty").id;
        let server = create_server(&store, account, "Live").await;
        let other_server = create_server(&store, account, "Other").await;
        Self { store, clock, account, server, other_server, engine_files }
    }

    /// Closes the store and opens it again, as a restart does.
    pub(crate) async fn reopen(self) -> Self {
        let Self { store, clock, account, server, other_server, engine_files } = self;
        drop(store);
        let store = open(engine_files.database(), IDENTITY, &clock).await.expect("the store opens again");
        Self { store, clock, account, server, other_server, engine_files }
    }

    /// An unverified domain of the first server, with one key.
    pub(crate) fn new_domain(&self, name: &str) -> NewDomain {
        NewDomain {
            owner: DomainOwner::Server(self.server),
            name: DomainName::parse(name).expect("a domain"),
            is_verified: false,
            keys: vec![new_key("pr1", KeyAlgorithm::Rsa)],
            next_check_at: self.now(),
            records: "[]".to_owned(),
            per_owner_max: 1_000,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time `seconds` from now.
    pub(crate) fn in_secs(&self, seconds: u64) -> Timestamp {
        self.now().plus(Duration::from_secs(seconds))
    }

    /// A pending send of the first server.
    pub(crate) fn send_to(&self, addresses: &[&str]) -> NewSend {
        self.send(self.server, addresses, InitialState::Pending, b"Subject: hello\r\n\r\nHello\r\n")
    }

    pub(crate) fn send(
        &self,
        server_id: ServerId,
        addresses: &[&str],
        state: InitialState,
        message: &[u8],
    ) -> NewSend {
        new_send(&self.store, server_id, self.now(), addresses, state, message)
    }

    /// A pending send that becomes due in `seconds`. It is created at that time, because a pending message is due when
    /// it is created.
    pub(crate) fn send_due_in(&self, server_id: ServerId, seconds: u64) -> NewSend {
        let due_at = self.in_secs(seconds);
        new_send(&self.store, server_id, due_at, &["a@example.com"], InitialState::Pending, b"x")
    }

    pub(crate) fn send_with_key(&self, key: &str, fingerprint: u8, answer: &str) -> NewSend {
        let mut send = self.send_to(&["ann@example.com"]);
        send.idempotency = Some(Idempotency {
            key: key.to_owned(),
            fingerprint: [fingerprint; 32],
            answer: answer.to_owned(),
            expires_at: self.in_secs(24 * 3_600),
        });
        send
    }

    /// Accepts a send that must be stored; returns its messages' ids.
    pub(crate) async fn accept(&self, send: NewSend) -> Vec<MessageId> {
        let ids = message_ids(&send);
        let accepted = self.store.accept(send).await.expect("it is accepted");
        assert!(matches!(accepted, Accepted::Stored(_)), "{accepted:?}");
        ids
    }

    /// Accepts a pending message of the first server and claims it.
    pub(crate) async fn accept_and_claim(&self) -> MessageId {
        let id = self.accept(self.send_to(&["ann@example.com"])).await[0];
        let claimed = self.claim_due().await;
        assert!(claimed.iter().any(|entry| entry.message_id == id), "{id} is not among {claimed:?}");
        id
    }

    pub(crate) async fn claim_due(&self) -> Vec<ClaimedEntry> {
        self.store.claim(self.now(), 1_000, ClaimSkips::default()).await.expect("claiming works")
    }

    pub(crate) fn outcome(&self, id: MessageId, status: Status) -> Outcome {
        let mut delivery = NewDelivery::local(self.now(), status, format!("it is {status}"));
        if status == Status::SoftFail {
            delivery.next_attempt_at = Some(self.in_secs(60));
        }
        let kind = match status {
            Status::Sent => EventKind::Delivered,
            Status::SoftFail => EventKind::Delayed,
            Status::Held => EventKind::Held,
            _ => EventKind::Failed,
        };
        Outcome {
            server_id: self.server,
            message_id: id,
            claimed_due_at: None,
            counts_as_attempt: true,
            hold_expiry: (status == Status::Held).then(|| self.in_secs(3_600)),
            keep_claim: false,
            suppress: None,
            transcript: None,
            source_id: None,
            provider: OTHER_PROVIDER.into(),
            retry_source_id: None,
            delivery,
            event: NewEvent { kind, data: format!(r#"{{"status":"{status}"}}"#) },
        }
    }

    pub(crate) async fn finish(&self, outcome: Outcome) -> bool {
        let settled = self.store.finish(vec![outcome]).await.expect("finishing works");
        assert_eq!(settled.len(), 1);
        settled[0]
    }

    pub(crate) async fn message(&self, id: MessageId) -> Message {
        self.store.find_message(self.server, id).await.expect("reading works").expect("it is there")
    }

    pub(crate) async fn deliveries(&self, id: MessageId) -> Vec<Delivery> {
        self.store.list_deliveries(self.server, id).await.expect("reading works")
    }

    pub(crate) async fn events(&self, id: MessageId) -> Vec<Event> {
        self.store.list_events(self.server, id).await.expect("reading works")
    }

    /// Kinds of the message's events. Checks that their numbers have no gap.
    pub(crate) async fn event_kinds(&self, id: MessageId) -> Vec<EventKind> {
        let events = self.events(id).await;
        let numbers: Vec<i64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=events.len() as i64).collect::<Vec<_>>(), "a gap in seq");
        events.iter().map(|event| event.kind).collect()
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.engine_files, EngineFiles::Sqlite(_))
    }

    /// Runs a statement directly in the database.
    pub(crate) async fn execute(&self, text: &str) {
        match &self.engine_files {
            EngineFiles::Sqlite(_) => {
                let connection =
                    rusqlite::Connection::open(self.engine_files.sqlite_path()).expect("the file is there");
                connection.execute_batch(text).expect("the statement is good");
            }
            EngineFiles::Postgres(database) => {
                connect(database.url()).await.batch_execute(text).await.expect("the statement is good");
            }
        }
    }

    /// Runs a query that returns one integer directly in the database.
    pub(crate) async fn query_int(&self, text: &str) -> i64 {
        match &self.engine_files {
            EngineFiles::Sqlite(_) => {
                let connection =
                    rusqlite::Connection::open(self.engine_files.sqlite_path()).expect("the file is there");
                connection.query_row(text, [], |row| row.get(0)).expect("the query is good")
            }
            EngineFiles::Postgres(database) => {
                connect(database.url()).await.query_one(text, &[]).await.expect("the query is good").get(0)
            }
        }
    }

    /// Rows of each mail table.
    pub(crate) async fn row_counts(&self) -> BTreeMap<&'static str, i64> {
        let mut counts = BTreeMap::new();
        for table in MAIL_TABLES {
            counts.insert(table, self.query_int(&format!("SELECT count(*) FROM {table}")).await);
        }
        counts
    }
}

pub(crate) async fn create_server(store: &Store, account_id: AccountId, name: &str) -> ServerId {
    let new = NewServer { account_id, name: name.to_owned(), mode: ServerMode::Live, pool_id: None };
    store.create_server(new).await.expect("the name is free").id
}

pub(crate) async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the database answers");
    tokio::spawn(connection);
    client
}

pub(crate) fn message_ids(send: &NewSend) -> Vec<MessageId> {
    send.recipients.iter().map(|recipient| recipient.id).collect()
}

/// The simulator's domain, whose mail does not count against limits.
pub(crate) fn simulator_domain() -> DomainName {
    DomainName::parse("sim.postroad.test").expect("a domain")
}

pub(crate) fn new_send(
    store: &Store,
    server_id: ServerId,
    now: Timestamp,
    addresses: &[&str],
    state: InitialState,
    message: &[u8],
) -> NewSend {
    let ids = store.ids().expect("a node has ids");
    let test = matches!(state, InitialState::TestSent { .. });
    let recipients = addresses.iter().map(|address| NewRecipient {
        id: MessageId(ids.next()),
        token: MessageToken::random(&mut rand::rng()),
        rcpt_to: (*address).to_owned(),
        domain: DomainName::parse(address.rsplit('@').next().expect("a domain")).expect("a domain"),
        exempt: false,
    });
    let recipients: Vec<NewRecipient> = recipients.collect();
    let id = SendId(ids.next());
    let metadata = [("order", "17"), ("Größe", "XL \"fit\"")];
    NewSend {
        info: SendInfo {
            server_id,
            id,
            credential_id: None,
            message_id: format!("{id}@example.test"),
            mail_from: "shop@example.test".into(),
            from_domain: "shop.example".to_owned(),
            subject: "Ihre Bestellung – 注文".into(),
            tag: Some("orders".into()),
            metadata: metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            options: SendOptions { require_tls: true, ..SendOptions::default() },
            size: message.len() as u64,
            direction: Direction::Outgoing,
            bounce: false,
            received_with_ssl: true,
            test,
            created_at: now,
        },
        body: StoredBody::compress(message.to_vec()).expect("zstd compresses anything"),
        recipients,
        state,
        idempotency: None,
        hourly_limit: None,
        account_limits: None,
        batch_id: None,
    }
}

pub(crate) fn is_unavailable<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Unavailable(_)))
}
