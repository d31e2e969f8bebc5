//! Measures how fast the store accepts: `accept_bench --database sqlite:PATH|postgres://… [--seconds N]
//! [--callers 1,16,…] [--index]`.
//!
//! Each caller stores one message after the other: 10 kB, compressed to about half. Use an empty database. With
//! `--index` the messages are added to the search index meanwhile, as in a running service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postroad_model::{
    Clock, Direction, DomainName, IdGenerator, MessageId, MessageToken, SendId, ServerId, ServerMode,
    SystemClock,
};
use postroad_store::{
    Database, IndexProgress, InitialState, NewRecipient, NewSend, NewServer, Role, SendInfo, SendOptions,
    Settings, Store, StoredBody,
};
use rand::{Rng, SeedableRng};

const BODY_BYTES: usize = 10_000;

#[tokio::main(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "the figures are its output")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let database = option("--database").expect("--database sqlite:PATH or postgres://… is given");
    let seconds = option("--seconds").map_or(3, |text| text.parse().expect("--seconds is a number"));
    let callers = option("--callers").map_or("1,16,128,1024", String::as_str);

    let settings = Settings {
        reader_threads: 2,
        postgres_connections: 8,
        ..Settings::small(Database::parse(database).expect("the database is understood"))
    };
    let role = Role::Node { identity: "accept_bench".into() };
    let store = Store::open(settings, role, Arc::new(SystemClock)).await.expect("the store opens");
    let account = store.create_account("Bench".into()).await.expect("the database is empty");
    let server =
        NewServer { account_id: account.id, name: "Bench".into(), mode: ServerMode::Live, pool_id: None };
    let server = store.create_server(server).await.expect("the database is empty").id;

    if arguments.iter().any(|argument| argument == "--index") {
        let store = store.clone();
        tokio::spawn(async move {
            loop {
                if store.index_next_block(server, 4_096).await.expect("indexing works")
                    == IndexProgress::Nothing
                {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        });
    }

    println!("{:>8} {:>10} {:>10} {:>10} {:>10}", "callers", "accepts/s", "p50 ms", "p99 ms", "max ms");
    for callers in callers.split(',') {
        let callers: usize = callers.parse().expect("--callers are numbers with commas");
        let begun = Instant::now();
        let mut latencies = run(&store, server, callers, Duration::from_secs(seconds)).await;
        let rate = latencies.len() as f64 / begun.elapsed().as_secs_f64();
        latencies.sort_unstable();
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        println!("{callers:>8} {rate:>10.0} {:>10.2} {:>10.2} {:>10.2}", at(0.5), at(0.99), at(1.0));
    }
}

async fn run(store: &Store, server: ServerId, callers: usize, time: Duration) -> Vec<Duration> {
    let until = Instant::now() + time;
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..callers {
        let store = store.clone();
        tasks.spawn(async move {
            let ids = store.ids().expect("a node has ids");
            let mut rng = rand::rngs::SmallRng::seed_from_u64(caller as u64);
            let mut latencies = Vec::new();
            while Instant::now() < until {
                let send = new_send(server, &ids, &mut rng);
                let begun = Instant::now();
                store.accept(send).await.expect("the store accepts");
                latencies.push(begun.elapsed());
            }
            latencies
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

fn new_send(server: ServerId, ids: &IdGenerator, rng: &mut impl Rng) -> NewSend {
    let mut message = vec![b'x'; BODY_BYTES];
    rng.fill(&mut message[BODY_BYTES / 2..]);
    let recipient = NewRecipient {
        id: MessageId(ids.next()),
        token: MessageToken::random(rng),
        rcpt_to: "someone@example.com".into(),
        domain: DomainName::parse("example.com").expect("a domain"),
        exempt: false,
    };
    NewSend {
        info: SendInfo {
            server_id: server,
            id: SendId(ids.next()),
            credential_id: None,
            message_id: format!("{}@example.test", recipient.token),
            mail_from: "bench@example.test".into(),
            from_domain: "example.com".to_owned(),
            subject: "A message of the benchmark".into(),
            tag: Some("bench".into()),
            metadata: BTreeMap::new(),
            options: SendOptions::default(),
            size: BODY_BYTES as u64,
            direction: Direction::Outgoing,
            bounce: false,
            received_with_ssl: true,
            test: false,
            created_at: SystemClock.now(),
        },
        body: StoredBody::compress(message).expect("zstd compresses anything"),
        recipients: vec![recipient],
        state: InitialState::Pending,
        idempotency: None,
        hourly_limit: None,
        account_limits: None,
        batch_id: None,
    }
}
