//! The flight journal: which messages were sent, and their replies, until the store has the outcomes.
//!
//! One mark is written right before the final dot and one right after the reply, each with one write to a local file.
//! There is no fsync: the journal protects against a killed process (kill -9), whose writes the kernel keeps, not
//! against a machine crash. After a kill, the reply of a flight is recorded as its outcome; a message without a reply
//! may have arrived.
//!
//! A mark that cannot be written is an error and leaves no record. Without the first mark the dot must not be sent. A
//! missing second mark costs at most one `possible_duplicate`.
//!
//! The journal is split into segment files, which are deleted oldest first once their flights are settled. The order
//! matters: a second mark is never deleted while the first is kept.

mod flight;
mod record;
mod recovery;
mod segment;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};

pub use flight::{FinalReply, FlightKey, RecoveredFlight, RecoveredOutcome};

use self::record::{Mark, encode};
use self::segment::{Segment, segment_path};

/// Length after which a new segment begins: about 20,000 flights of some 400 bytes each.
const SEGMENT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Bytes that `check` writes: more than most marks have.
const CHECK_BYTES: usize = 1_024;

/// The open journal, shared by all connections.
pub struct Journal {
    state: Mutex<State>,
}

struct State {
    folder: PathBuf,
    segment_bytes_max: u64,
    /// `None` until the first mark or check, and after a segment had to be abandoned.
    current: Option<Segment>,
    next_number: u64,
    /// The segment with the first mark of each unsettled flight.
    segment_of_open: HashMap<FlightKey, u64>,
    /// Number of flights of `segment_of_open` that began in each segment; one entry per file.
    open_by_segment: BTreeMap<u64, usize>,
}

impl Journal {
    /// Opens the journal. Also returns the flights that a previous process left: the caller stores them and calls
    /// `remove_settled`. Some of them may already be stored.
    pub fn open(folder: &Path) -> io::Result<(Self, Vec<RecoveredFlight>)> {
        Self::open_with(folder, SEGMENT_BYTES_MAX)
    }

    fn open_with(folder: &Path, segment_bytes_max: u64) -> io::Result<(Self, Vec<RecoveredFlight>)> {
        // The journal contains replies of other servers: accessible to the owner only.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let unsettled = recovery::read_folder(folder)?;
        let next_number = unsettled.open_by_segment.last_key_value().map_or(1, |(last, _)| last + 1);
        let mut state = State {
            folder: folder.to_owned(),
            segment_bytes_max,
            current: None,
            next_number,
            segment_of_open: unsettled
                .flights
                .iter()
                .map(|flight| (flight.recovered.key, flight.first_segment))
                .collect(),
            open_by_segment: unsettled.open_by_segment,
        };
        state.remove_settled_segments();
        let recovered = unsettled.flights.into_iter().map(|flight| flight.recovered).collect();
        Ok((Self { state: Mutex::new(state) }, recovered))
    }

    /// Call this right before the last bytes (the final dot, or the last chunk). On an error they must not be sent.
    pub fn mark_finishing(&self, key: FlightKey) -> io::Result<()> {
        self.lock().mark(key, &Mark::Finishing)
    }

    /// Call this right after the final reply, whatever it says.
    pub fn mark_reply(&self, key: FlightKey, reply: &FinalReply) -> io::Result<()> {
        self.lock().mark(key, &Mark::Replied(reply.bounded()))
    }

    /// Call this when the outcomes of these flights are stored: the journal forgets them.
    pub fn remove_settled(&self, keys: impl IntoIterator<Item = FlightKey>) {
        self.lock().remove_settled(keys);
    }

    /// Checks that a mark, and the next segment, could be written now.
    pub fn check(&self) -> io::Result<()> {
        self.lock().check()
    }

    /// Number of flights that are marked and not settled.
    pub fn open_flights(&self) -> usize {
        self.lock().segment_of_open.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Code under the lock cannot panic between changes, so the state is always valid.
        self.state.lock()
    }
}

impl State {
    fn mark(&mut self, key: FlightKey, mark: &Mark) -> io::Result<()> {
        let number = self.append(&encode(key, mark)?)?;
        if let std::collections::hash_map::Entry::Vacant(vacant) = self.segment_of_open.entry(key) {
            vacant.insert(number);
            *self.open_by_segment.entry(number).or_default() += 1;
        }
        Ok(())
    }

    /// Writes as many bytes as a mark and truncates them again. If the process dies in between, they are half a record
    /// at the end of a segment, which recovery ignores.
    fn check(&mut self) -> io::Result<()> {
        // The current segment is already open, so writing to it says nothing about permissions.
        segment::try_create(&self.folder)?;
        let segment = self.segment()?;
        let written = segment.try_write(&[0; CHECK_BYTES]);
        if segment.truncate().is_err() {
            self.current = None;
        }
        written
    }

    /// The segment that takes the next record.
    fn segment(&mut self) -> io::Result<&mut Segment> {
        let has_room = |segment: &Segment| segment.length() < self.segment_bytes_max;
        if !self.current.as_ref().is_some_and(has_room) {
            let number = self.next_number;
            self.current = Some(Segment::create(&self.folder, number)?);
            self.next_number += 1;
            self.open_by_segment.insert(number, 0);
            self.remove_settled_segments();
        }
        Ok(self.current.as_mut().expect("a segment was begun if there was none"))
    }

    fn append(&mut self, record: &[u8]) -> io::Result<u64> {
        let segment = self.segment()?;
        let number = segment.number();
        if let Err(error) = segment.append(record) {
            // Half a record would hide all that follow it. If it cannot be truncated, the next records go to a new
            // file.
            if segment.truncate().is_err() {
                self.current = None;
            }
            return Err(error);
        }
        Ok(number)
    }

    fn remove_settled(&mut self, keys: impl IntoIterator<Item = FlightKey>) {
        for key in keys {
            let Some(number) = self.segment_of_open.remove(&key) else { continue };
            let open = self.open_by_segment.get_mut(&number).expect("the segment of an open flight is known");
            *open -= 1;
        }
        self.remove_settled_segments();
        // An idle node has an empty journal, and nothing to read when it starts again.
        if self.segment_of_open.is_empty()
            && let Some(segment) = &mut self.current
            && segment.clear().is_err()
        {
            self.current = None;
        }
    }

    /// Deletes segments, oldest first, up to the first one with an unsettled flight, or the current one.
    fn remove_settled_segments(&mut self) {
        let current = self.current.as_ref().map(Segment::number);
        while let Some(oldest) = self.open_by_segment.first_entry() {
            let number = *oldest.key();
            if *oldest.get() > 0 || current == Some(number) {
                break;
            }
            oldest.remove();
            let path = segment_path(&self.folder, number);
            if let Err(error) = std::fs::remove_file(&path) {
                // The next start reads the segment again, finds its flights settled, and tries again to remove it.
                tracing::warn!(path = %path.display(), %error, "flight journal segment not removed; retrying at the next start");
            }
        }
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Journal")
            .field("folder", &state.folder)
            .field("open_flights", &state.segment_of_open.len())
            .field("segments", &state.open_by_segment.len())
            .finish()
    }
}

#[cfg(test)]
mod tests;
