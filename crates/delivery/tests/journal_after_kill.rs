//! The flight journal after kill -9: a process writes marks and prints each, until it is killed.

#![cfg(test)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use postroad_delivery::journal::{FinalReply, FlightKey, Journal, RecoveredOutcome};
use postroad_model::{MessageId, ServerId, Timestamp};

/// Set in the process that is to be killed, which runs this same test.
const VICTIM_FOLDER: &str = "POSTROAD_TEST_VICTIM_FOLDER";

fn key(message: i64) -> FlightKey {
    FlightKey { server_id: ServerId(1), message_id: MessageId(message), attempt: 1 }
}

/// Prints each mark after it is written; every third flight gets no reply.
fn make_marks_until_killed(folder: &Path) {
    let (journal, _) = Journal::open(folder).unwrap();
    let mut output = std::io::stderr();
    for message in 0.. {
        journal.mark_finishing(key(message)).unwrap();
        output.write_all(format!("finishing {message}\n").as_bytes()).unwrap();
        if message % 3 == 0 {
            continue;
        }
        let reply = FinalReply {
            accepted: true,
            at: Timestamp::from_micros(message),
            code: 250,
            text: format!("queued as {message}"),
            mx: "mx.example.com".to_owned(),
            remote_ip: "192.0.2.1".to_owned(),
            source_ip: "192.0.2.2".to_owned(),
            tls: None,
            tls_policy: None,
            without_tls: None,
            dkim: None,
            duration_us: None,
            phase: String::new(),
            source_id: None,
            ip_pool: None,
            provider: None,
        };
        journal.mark_reply(key(message), &reply).unwrap();
        output.write_all(format!("replied {message}\n").as_bytes()).unwrap();
    }
}

#[test]
fn marks_survive_a_kill() {
    if let Some(folder) = std::env::var_os(VICTIM_FOLDER) {
        make_marks_until_killed(Path::new(&folder));
    }
    // Different numbers of marks, so that the kill follows a mark of either kind.
    for marks in [1, 2, 3, 4, 17, 100, 1_001, 5_000] {
        let folder = tempfile::tempdir().unwrap();
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "marks_survive_a_kill"])
            .env(VICTIM_FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(victim.stderr.take().unwrap()).lines();
        let mut printed: Vec<String> = output.by_ref().take(marks).map(Result::unwrap).collect();
        victim.kill().unwrap();
        victim.wait().unwrap();
        // The rest of its output before it died. The last line may be torn.
        printed.extend(output.map_while(Result::ok).filter(|line| line.contains(' ')));
        check(folder.path(), &printed);
    }
}

fn check(folder: &Path, printed: &[String]) {
    let (_, left) = Journal::open(folder).unwrap();
    let left: BTreeMap<i64, RecoveredOutcome> =
        left.into_iter().map(|flight| (flight.key.message_id.0, flight.outcome)).collect();
    let (complete, _) = printed.split_at(printed.len() - 1);
    for line in complete {
        let (mark, message) = line.split_once(' ').unwrap();
        let message: i64 = message.parse().unwrap();
        match (mark, &left[&message]) {
            ("finishing", _) => {}
            ("replied", RecoveredOutcome::Replied(reply)) => {
                assert_eq!(reply.text, format!("queued as {message}"));
            }
            other => panic!("{line}: {other:?}"),
        }
    }
    // No other flights, except at most one that the process did not print before it was killed.
    let flights_printed = printed.iter().filter(|line| line.starts_with("finishing")).count();
    assert!(
        (flights_printed..=flights_printed + 1).contains(&left.len()),
        "{} of {flights_printed}",
        left.len()
    );
    for (message, outcome) in &left {
        assert!(message % 3 != 0 || *outcome == RecoveredOutcome::NoReply, "{message}: {outcome:?}");
    }
}
