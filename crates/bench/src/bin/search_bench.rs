//! Measures searches: `search_bench --database sqlite:PATH|postgres://… [--messages N] [--filled]`. Use an empty
//! database, or with `--filled` one that an earlier run filled with the same number of messages.
//!
//! Messages of one server are written directly into the tables, evenly over the last hours; the store then adds them to
//! its index, and searches use the store as in a running service. A call ends after 80 ms with what it has found by
//! then, and the next call continues there. So two times are shown: that of one call, and that of all calls until a
//! page of 50 messages is full or the search has come to its end.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postroad_model::{Clock, MessageId, ServerId, ServerMode, Status, SystemClock, Timestamp, idgen};
use postroad_store::{
    BLOCKS_PER_MERGE, Database, FilterTerm, IndexProgress, Matcher, Needle, NewServer, Role, SearchFilter,
    Settings, Store,
};

const BLOCK_MESSAGES: usize = 4_096;
const PAGE: usize = 50;
const PAGE_TIME_MAX: Duration = Duration::from_millis(80);
const REPETITIONS_MAX: usize = 20;
/// Time for the repetitions of one search, so that a slow search is repeated less often.
const TIME_PER_SEARCH: Duration = Duration::from_secs(20);
/// Messages written by one statement.
const STEP: i64 = 100_000;

#[tokio::main(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let messages: i64 = option("--messages").map_or(10_000_000, |text| text.parse().expect("a number"));
    let url = option("--database").expect("--database sqlite:PATH or postgres://… is given");
    let database = Database::parse(url).expect("the database is understood");

    let store = open(database.clone()).await;
    if arguments.iter().any(|argument| argument == "--filled") {
        let servers = store.list_servers().await.expect("the store can be read");
        let server = servers.first().expect("an earlier run filled it").id;
        index(&store, server).await;
        merge(&store, server).await;
        return measure(&store, server, messages).await;
    }
    let account_id = store.create_account("Bench".into()).await.expect("the database is empty").id;
    let new = NewServer { account_id, name: "Bench".into(), mode: ServerMode::Live, pool_id: None };
    let server = store.create_server(new).await.expect("the database is empty").id;
    // On PostgreSQL, any write creates this week's partitions; an empty job is the simplest write.
    let job = postroad_store::NewJob {
        server_id: server,
        kind: postroad_store::JobKind::Retry,
        request: String::new(),
        total: 0,
    };
    store.create_job(job, 1).await.expect("the store works");

    let begun = Instant::now();
    let now = SystemClock.now();
    // All ids lie in one week, as in a partition. An id has 21 bits below its seconds.
    let week = (7 * 24 * 3_600) << 21;
    let first =
        (idgen::first_id_at(now) / week * week).max(idgen::first_id_at(now.minus(Duration::from_hours(4))));
    let last = idgen::first_id_at(now.minus(Duration::from_secs(20)));
    let fill = Fill { server, messages, first, apart: ((last - first) / messages).max(1), now };
    match &database {
        Database::Sqlite(path) => fill.sqlite(path),
        Database::Postgres(url) => fill.postgres(url).await,
    }
    println!("{messages} messages written in {:.0} s", begun.elapsed().as_secs_f64());

    index(&store, server).await;
    merge(&store, server).await;
    measure(&store, server, messages).await;
}

/// Adds all messages that are not in the index yet.
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
async fn index(store: &Store, server: ServerId) {
    let begun = Instant::now();
    let mut blocks = 0_u32;
    while store.index_next_block(server, BLOCK_MESSAGES).await.expect("indexing works")
        == IndexProgress::Added
    {
        blocks += 1;
    }
    let taken = begun.elapsed().as_secs_f64();
    let rate = f64::from(blocks) * BLOCK_MESSAGES as f64 / taken.max(0.001);
    println!("{blocks} blocks indexed in {taken:.0} s: {rate:.0} messages/s");
}

/// Merges blocks that are older than 15 minutes, as a running service does.
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
async fn merge(store: &Store, server: ServerId) {
    let begun = Instant::now();
    while store.check_next_block().await.expect("checking works").is_some() {}
    let checked = begun.elapsed().as_secs_f64();
    let mut merges = 0_u32;
    while store.merge_next_blocks(server, BLOCKS_PER_MERGE).await.expect("merging works")
        == IndexProgress::Added
    {
        merges += 1;
    }
    let taken = begun.elapsed().as_secs_f64() - checked;
    println!(
        "blocks checked in {checked:.0} s; {merges} merges of {BLOCKS_PER_MERGE} blocks each in {taken:.0} s"
    );
}

#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
async fn measure(store: &Store, server: ServerId, messages: i64) {
    let term = |matcher| FilterTerm { matcher, is_negated: false };
    let by = |matcher| SearchFilter { terms: vec![term(matcher)], ..SearchFilter::default() };
    let oldest = format!("order {:09}", 17);
    let middle = format!("user{}@", messages / 2);
    let in_status = |status| SearchFilter { statuses: Some(vec![status]), ..SearchFilter::default() };
    let searches = [
        ("everything", SearchFilter::default()),
        ("a word that all have", by(Matcher::Subject(Needle::new("order")))),
        ("an order number, among the oldest", by(Matcher::Anywhere(Needle::new(&oldest)))),
        ("a recipient, in the middle", by(Matcher::To(Needle::new(&middle)))),
        ("a text that none has", by(Matcher::Anywhere(Needle::new("nowhere at all")))),
        ("digits that none has in a row", by(Matcher::Subject(Needle::new("999999999")))),
        ("a tag that every tenth message has", by(Matcher::Tag("tag 3".into()))),
        ("a tag that none has", by(Matcher::Tag("tag".into()))),
        ("held", in_status(Status::Held)),
        (
            "bounced, with a word that all have",
            SearchFilter {
                statuses: Some(vec![Status::Bounced]),
                ..by(Matcher::Subject(Needle::new("order")))
            },
        ),
        ("two letters that none has", by(Matcher::Subject(Needle::new("zz")))),
    ];
    println!(
        "{:<36} {:>8} {:>8} {:>9} {:>9} {:>6} {:>6} {:>6}",
        "search", "call ms", "max", "full ms", "max", "calls", "cut", "found"
    );
    let (mut quick, count) = (0, searches.len());
    for (name, filter) in searches {
        let filter = Arc::new(filter);
        let (begun, mut runs) = (Instant::now(), Vec::with_capacity(REPETITIONS_MAX));
        while runs.len() < REPETITIONS_MAX && begun.elapsed() < TIME_PER_SEARCH {
            runs.push(run(store, server, &filter).await);
        }
        let (call, longest_call) = median_and_max(runs.iter().flat_map(|run| run.calls.iter().copied()));
        let (full, longest_full) = median_and_max(runs.iter().map(|run| run.calls.iter().sum()));
        let last = &runs[runs.len() - 1];
        println!(
            "{name:<36} {call:>8.1} {longest_call:>8.1} {full:>9.1} {longest_full:>9.1} {:>6} {:>6} {:>6}",
            last.calls.len(),
            last.cut,
            last.found
        );
        quick += usize::from(longest_full < 100.0);
    }
    println!("{quick} of {count} searches always filled a page, or ended, within 100 ms");
}

/// One search until its first page is full, or the search has come to its end.
struct Run {
    calls: Vec<Duration>,
    /// Number of calls that ended because their time was up.
    cut: usize,
    found: usize,
}

async fn run(store: &Store, server: ServerId, filter: &Arc<SearchFilter>) -> Run {
    let mut run = Run { calls: Vec::new(), cut: 0, found: 0 };
    let mut before: Option<MessageId> = None;
    loop {
        let begun = Instant::now();
        let wanted = PAGE - run.found;
        let page = store.search(server, filter, before, wanted, PAGE_TIME_MAX).await.expect("it works");
        run.calls.push(begun.elapsed());
        run.found += page.items.len();
        before = page.next;
        if run.found == PAGE || before.is_none() {
            return run;
        }
        run.cut += 1;
    }
}

/// Median and maximum in milliseconds.
fn median_and_max(times: impl Iterator<Item = Duration>) -> (f64, f64) {
    let mut times: Vec<f64> = times.map(|time| time.as_secs_f64() * 1e3).collect();
    times.sort_unstable_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() - 1])
}

async fn open(database: Database) -> Store {
    let settings = Settings { reader_threads: 2, ..Settings::small(database) };
    let role = Role::Node { identity: "search_bench".into() };
    Store::open(settings, role, Arc::new(SystemClock)).await.expect("the store opens")
}

/// The messages to write. Each has its own send; the first has the id `first`, each next one an id that is higher by
/// `apart`.
struct Fill {
    server: ServerId,
    messages: i64,
    first: i64,
    apart: i64,
    now: Timestamp,
}

impl Fill {
    /// One statement for each table. `numbers` is SQL for a table whose column `n` has the numbers of the messages.
    fn statements(&self, numbers: &str) -> [String; 2] {
        let Self { server, first, apart, now, .. } = self;
        let (server, now) = (server.0, now.as_micros());
        let id = format!("{first} + n * {apart}");
        let status = "CASE WHEN n % 50 = 0 THEN 'Bounced' WHEN n % 1000 = 1 THEN 'Held' ELSE 'Sent' END";
        [
            format!(
                "INSERT INTO sends (server_id, id, message_id, mail_from, subject, tag, metadata, options, size, direction,
                     bounce, received_with_ssl, test, created_at, from_domain)
                 SELECT {server}, {id}, 'm' || n || '@example.com', 'shop@example.com',
                     'Your order ' || {PADDED} || ' is on its way', 'tag ' || (n % 10), '{{}}', '{{}}', 1000, 'outgoing',
                     0, 1, 0, {now}, 'example.com' FROM {numbers}"
            ),
            format!(
                "INSERT INTO messages (server_id, id, send_id, token, rcpt_to, status, bounce_for_id, last_seq)
                 SELECT {server}, {id}, {id}, 't' || n, 'user' || n || '@mail' || (n % 5000) || '.example', {status}, 0, 1
                 FROM {numbers}"
            ),
        ]
    }

    fn sqlite(&self, path: &Path) {
        let connection = rusqlite::Connection::open(path).expect("the file is there");
        connection.pragma_update(None, "synchronous", "OFF").expect("a setting of SQLite");
        let numbers =
            "(WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
                        SELECT n FROM numbers)";
        for from in (0..self.messages).step_by(STEP as usize) {
            for text in self.statements(numbers) {
                let to = (from + STEP).min(self.messages) - 1;
                connection.execute(&text, [from, to]).expect("a good statement");
            }
        }
    }

    /// Runs the statements with `psql`, which is in the PATH of machines with PostgreSQL.
    async fn postgres(&self, url: &str) {
        for from in (0..self.messages).step_by(STEP as usize) {
            let to = (from + STEP).min(self.messages) - 1;
            for text in
                self.statements(&format!("generate_series({from}::bigint, {to}::bigint) AS numbers (n)"))
            {
                psql(url, &format!("SET synchronous_commit = off; {text}")).await;
            }
        }
        psql(url, "ANALYZE sends; ANALYZE messages").await;
    }
}

async fn psql(url: &str, text: &str) {
    let mut command = tokio::process::Command::new("psql");
    let status = command.args(["--quiet", "--no-psqlrc", "--command", text, url]).status().await;
    assert!(status.expect("psql runs").success(), "a good statement");
}

/// SQL for the number as nine digits.
const PADDED: &str = "substr('000000000' || n, length('000000000' || n) - 8)";
