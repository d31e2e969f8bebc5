//! Tests of the journal: marks survive the process, damaged files are read as far as possible, and files are deleted in
//! time.

use postroad_model::{MessageId, ServerId, Timestamp};
use tempfile::TempDir;

use super::*;

fn key(message: i64) -> FlightKey {
    FlightKey { server_id: ServerId(3), message_id: MessageId(message), attempt: 2 }
}

fn reply(code: u16) -> FinalReply {
    FinalReply {
        accepted: code == 250,
        at: Timestamp::from_micros(1_794_711_600_000_000),
        code,
        text: "2.0.0 OK \u{fc}".to_owned(),
        mx: "mx.example.com".to_owned(),
        remote_ip: "192.0.2.1".to_owned(),
        source_ip: "2001:db8::1".to_owned(),
        tls: Some("TLSv1.3 TLS_AES_256_GCM_SHA384".to_owned()),
        tls_policy: Some("dane".to_owned()),
        without_tls: Some("mx.example.com: handshake failure".to_owned()),
        dkim: Some("pr1._domainkey.example.com".to_owned()),
        duration_us: Some(1_234),
        phase: "final".to_owned(),
        source_id: Some(postroad_model::SourceId(7)),
        ip_pool: Some("main".to_owned()),
        provider: Some("google".to_owned()),
    }
}

fn recovered(message: i64, code: Option<u16>) -> RecoveredFlight {
    let outcome = code.map_or(RecoveredOutcome::NoReply, |code| RecoveredOutcome::Replied(reply(code)));
    RecoveredFlight { key: key(message), outcome }
}

fn files(folder: &TempDir) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn open(folder: &TempDir) -> (Journal, Vec<RecoveredFlight>) {
    Journal::open(folder.path()).unwrap()
}

/// Opens a journal with segments of up to three marks.
fn open_small(folder: &TempDir) -> (Journal, Vec<RecoveredFlight>) {
    Journal::open_with(folder.path(), 60).unwrap()
}

#[test]
fn flights_are_recovered_with_their_reply_or_without() {
    let folder = TempDir::new().unwrap();
    let (journal, recovered_flights) = open(&folder);
    assert_eq!(recovered_flights, []);
    for message in 1..=4 {
        journal.mark_finishing(key(message)).unwrap();
    }
    journal.mark_reply(key(2), &reply(250)).unwrap();
    journal.mark_reply(key(4), &reply(550)).unwrap();
    journal.remove_settled([key(3)]);
    drop(journal);

    let (_, recovered_flights) = open(&folder);
    // The third flight is settled, but its mark is still in the file. The caller finds its outcome in the store.
    assert_eq!(
        recovered_flights,
        [recovered(1, None), recovered(2, Some(250)), recovered(3, None), recovered(4, Some(550))]
    );
}

#[test]
fn no_file_contains_the_address_of_a_recipient() {
    let folder = TempDir::new().unwrap();
    let (journal, _) = open(&folder);
    journal.mark_finishing(key(1)).unwrap();
    let text =
        FinalReply::without_recipient("5.1.1 <Jane@Example.com> is not jane@example.com", "jane@example.com");
    journal.mark_reply(key(1), &FinalReply { text, ..reply(550) }).unwrap();
    drop(journal);
    for path in files(&folder) {
        let bytes = std::fs::read(path).unwrap().to_ascii_lowercase();
        assert!(!bytes.windows(16).any(|window| window == b"jane@example.com"));
    }
    let (_, recovered_flights) = open(&folder);
    let RecoveredOutcome::Replied(recorded) = &recovered_flights[0].outcome else {
        panic!("{recovered_flights:?}")
    };
    assert_eq!(recorded.with_recipient(Some("j@x.example")), "5.1.1 <j@x.example> is not j@x.example");
}

#[test]
fn flights_of_one_message_are_distinguished_by_their_attempt() {
    let folder = TempDir::new().unwrap();
    let (journal, _) = open(&folder);
    let second = FlightKey { attempt: 3, ..key(1) };
    journal.mark_finishing(key(1)).unwrap();
    journal.mark_reply(key(1), &reply(451)).unwrap();
    journal.mark_finishing(second).unwrap();
    let (_, recovered_flights) = open(&folder);
    let outcome = RecoveredOutcome::NoReply;
    assert_eq!(recovered_flights, [recovered(1, Some(451)), RecoveredFlight { key: second, outcome }]);
}

#[test]
fn a_journal_without_open_flights_is_empty() {
    let folder = TempDir::new().unwrap();
    let (journal, _) = open(&folder);
    journal.mark_finishing(key(1)).unwrap();
    journal.mark_reply(key(1), &reply(250)).unwrap();
    journal.remove_settled([key(1), key(9)]);
    assert_eq!(files(&folder).iter().map(|path| path.metadata().unwrap().len()).sum::<u64>(), 0);
    // The empty journal takes new marks.
    journal.mark_finishing(key(2)).unwrap();
    drop(journal);
    assert_eq!(open(&folder).1, [recovered(2, None)]);
}

#[test]
fn recovered_flights_are_kept_until_they_are_settled() {
    let folder = TempDir::new().unwrap();
    open(&folder).0.mark_finishing(key(1)).unwrap();
    let (journal, recovered_flights) = open(&folder);
    assert_eq!(recovered_flights, [recovered(1, None)]);
    journal.mark_finishing(key(2)).unwrap();
    drop(journal);

    let (journal, recovered_flights) = open(&folder);
    assert_eq!(recovered_flights, [recovered(1, None), recovered(2, None)]);
    assert_eq!((journal.open_flights(), files(&folder).len()), (2, 2));
    journal.remove_settled([key(1)]);
    assert_eq!(files(&folder).len(), 1);
    journal.remove_settled([key(2)]);
    assert_eq!((journal.open_flights(), files(&folder).len()), (0, 0));
}

#[test]
fn full_segments_are_followed_by_new_ones() {
    let folder = TempDir::new().unwrap();
    let (journal, _) = open_small(&folder);
    for message in 1..=9 {
        journal.mark_finishing(key(message)).unwrap();
    }
    // A mark before the dot has 29 bytes: three to a segment.
    assert_eq!(files(&folder).len(), 3);
    assert_eq!(open_small(&folder).1, (1..=9).map(|message| recovered(message, None)).collect::<Vec<_>>());
}

#[test]
fn segments_are_deleted_oldest_first() {
    let folder = TempDir::new().unwrap();
    let (journal, _) = open_small(&folder);
    for message in 1..=9 {
        journal.mark_finishing(key(message)).unwrap();
    }
    let all = files(&folder);
    journal.remove_settled((4..=6).map(key));
    assert_eq!(files(&folder), all, "the second segment waits for the first");
    journal.remove_settled((1..=2).map(key));
    assert_eq!(files(&folder), all, "one flight keeps its segment");
    journal.remove_settled([key(3)]);
    assert_eq!(files(&folder), all[2..]);
    journal.remove_settled((7..=9).map(key));
    assert_eq!(files(&folder), all[2..], "the segment in use stays");
}

#[test]
fn the_mark_of_a_reply_is_kept_as_long_as_the_first_mark_of_its_flight() {
    let folder = TempDir::new().unwrap();
    let (journal, _) = open_small(&folder);
    for message in 1..=3 {
        journal.mark_finishing(key(message)).unwrap();
    }
    // The replies to 1 and 2 are in later segments, which nothing else needs.
    journal.mark_reply(key(1), &reply(250)).unwrap();
    journal.mark_reply(key(2), &reply(250)).unwrap();
    journal.mark_finishing(key(4)).unwrap();
    journal.remove_settled([key(1), key(2)]);
    drop(journal);
    assert_eq!(
        open_small(&folder).1,
        [recovered(1, Some(250)), recovered(2, Some(250)), recovered(3, None), recovered(4, None)]
    );
}

/// A folder whose only segment has these bytes.
fn folder_with(bytes: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(segment_path(folder.path(), 1), bytes).unwrap();
    folder
}

/// Three marks, and where each ends.
fn three_marks() -> (Vec<u8>, [usize; 3]) {
    let first = encode(key(1), &Mark::Finishing).unwrap();
    let second = encode(key(1), &Mark::Replied(reply(250))).unwrap();
    let third = encode(key(2), &Mark::Finishing).unwrap();
    let ends = [first.len(), first.len() + second.len(), first.len() + second.len() + third.len()];
    ([first, second, third].concat(), ends)
}

fn recovered_after_marks(count: usize) -> Vec<RecoveredFlight> {
    match count {
        0 => vec![],
        1 => vec![recovered(1, None)],
        2 => vec![recovered(1, Some(250))],
        _ => vec![recovered(1, Some(250)), recovered(2, None)],
    }
}

#[test]
fn a_segment_cut_at_any_byte_gives_the_marks_before_the_cut() {
    let (bytes, ends) = three_marks();
    for length in 0..=bytes.len() {
        let folder = folder_with(&bytes[..length]);
        let whole = ends.iter().filter(|end| **end <= length).count();
        let (journal, recovered_flights) = open(&folder);
        assert_eq!(recovered_flights, recovered_after_marks(whole), "torn at {length}");
        // The torn mark does not hide new ones.
        journal.mark_finishing(key(7)).unwrap();
        drop(journal);
        let expected: Vec<RecoveredFlight> =
            recovered_after_marks(whole).into_iter().chain([recovered(7, None)]).collect();
        assert_eq!(open(&folder).1, expected, "torn at {length}");
    }
}

#[test]
fn reading_ends_before_a_damaged_mark() {
    let (bytes, ends) = three_marks();
    for at in 0..bytes.len() {
        for spoil in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= spoil;
            let whole = ends.iter().filter(|end| **end <= at).count();
            assert_eq!(open(&folder_with(&damaged)).1, recovered_after_marks(whole), "byte {at}");
        }
    }
}

#[test]
fn zeros_at_the_end_of_a_segment_are_no_marks() {
    let (bytes, _) = three_marks();
    let folder = folder_with(&[bytes, vec![0; 4_096]].concat());
    assert_eq!(open(&folder).1, recovered_after_marks(3));
}

#[test]
fn a_damaged_segment_hides_no_marks_of_other_segments() {
    let (bytes, _) = three_marks();
    let folder = folder_with(&bytes[..10]);
    std::fs::write(segment_path(folder.path(), 2), &bytes).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "not ours").unwrap();
    assert_eq!(open(&folder).1, recovered_after_marks(3));
    assert!(folder.path().join("notes.txt").exists());
}

#[test]
fn texts_of_a_reply_are_cut_to_their_limits() {
    let folder = TempDir::new().unwrap();
    let (journal, _) = open(&folder);
    let long = FinalReply {
        text: "\u{1}".repeat(511) + "\u{fc}\u{fc}",
        mx: "m".repeat(100_000),
        without_tls: Some("\u{1}".repeat(1_000)),
        ..reply(550)
    };
    journal.mark_finishing(key(1)).unwrap();
    journal.mark_reply(key(1), &long).unwrap();
    let (_, recovered_flights) = open(&folder);
    let RecoveredOutcome::Replied(kept) = &recovered_flights[0].outcome else { panic!("the reply is lost") };
    assert_eq!((kept.text.len(), kept.mx.len()), (511, 255));
}

#[test]
fn a_mark_that_cannot_be_written_is_an_error_and_leaves_no_flight() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal");
    let (journal, _) = Journal::open(&path).unwrap();
    std::fs::remove_dir(&path).unwrap();
    assert!(journal.mark_finishing(key(1)).is_err());
    assert_eq!(journal.open_flights(), 0);
    std::fs::create_dir(&path).unwrap();
    journal.mark_finishing(key(1)).unwrap();
    assert_eq!(journal.open_flights(), 1);
}

#[test]
fn marks_that_many_threads_write_are_all_kept() {
    let folder = TempDir::new().unwrap();
    let (journal, _) = Journal::open_with(folder.path(), 1_000).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let journal = &journal;
            scope.spawn(move || {
                for message in 0..200 {
                    let key = key(thread * 1_000 + message);
                    journal.mark_finishing(key).unwrap();
                    journal.mark_reply(key, &reply(250)).unwrap();
                    if message % 2 == 0 {
                        journal.remove_settled([key]);
                    }
                }
            });
        }
    });
    assert_eq!(journal.open_flights(), 800);
    drop(journal);
    let (_, recovered_flights) = open(&folder);
    let unsettled = recovered_flights.iter().filter(|flight| flight.key.message_id.0 % 2 == 1);
    assert_eq!(unsettled.count(), 800);
    assert!(recovered_flights.iter().all(|flight| matches!(flight.outcome, RecoveredOutcome::Replied(_))));
}
