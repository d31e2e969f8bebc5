//! Reads the flights that a previous process left.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

use super::flight::{FlightKey, RecoveredFlight, RecoveredOutcome};
use super::record::{Mark, decode};
use super::segment::{segment_number, segment_path};

#[derive(Debug, Default)]
pub(super) struct UnsettledFlights {
    /// Flights in the order of their first marks.
    pub(super) flights: Vec<UnsettledFlight>,
    /// Number of flights that began in each segment; one entry per file.
    pub(super) open_by_segment: BTreeMap<u64, usize>,
}

#[derive(Debug)]
pub(super) struct UnsettledFlight {
    pub(super) recovered: RecoveredFlight,
    pub(super) first_segment: u64,
}

pub(super) fn read_folder(folder: &Path) -> io::Result<UnsettledFlights> {
    let mut unsettled = UnsettledFlights::default();
    for entry in std::fs::read_dir(folder)? {
        if let Some(number) = segment_number(&entry?.path()) {
            unsettled.open_by_segment.insert(number, 0);
        }
    }
    let mut indexes: HashMap<FlightKey, usize> = HashMap::new();
    let numbers: Vec<u64> = unsettled.open_by_segment.keys().copied().collect();
    for number in numbers {
        let path = segment_path(folder, number);
        let bytes = std::fs::read(&path)?;
        let mut offset = 0;
        while let Some((key, mark, length)) = decode(&bytes[offset..]) {
            offset += length;
            unsettled.add_mark(&mut indexes, number, key, mark);
        }
        if offset < bytes.len() {
            // Usually the end of the last segment: the process died, or the disk was full, in the middle of a mark.
            let ignored_bytes = bytes.len() - offset;
            tracing::warn!(path = %path.display(), ignored_bytes, "flight journal: damaged or incomplete record; the rest of its file is ignored, as usual after a crash or a full disk");
        }
    }
    Ok(unsettled)
}

impl UnsettledFlights {
    /// Adds a mark; the latest mark of a flight counts.
    fn add_mark(&mut self, indexes: &mut HashMap<FlightKey, usize>, number: u64, key: FlightKey, mark: Mark) {
        let outcome = match mark {
            Mark::Finishing => RecoveredOutcome::NoReply,
            Mark::Replied(reply) => RecoveredOutcome::Replied(reply),
        };
        if let Some(index) = indexes.get(&key) {
            self.flights[*index].recovered.outcome = outcome;
            return;
        }
        indexes.insert(key, self.flights.len());
        *self.open_by_segment.entry(number).or_default() += 1;
        self.flights
            .push(UnsettledFlight { recovered: RecoveredFlight { key, outcome }, first_segment: number });
    }
}
