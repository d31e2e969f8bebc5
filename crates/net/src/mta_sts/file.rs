//! MTA-STS policies on disk, one line each, so that a policy survives a restart even if somebody breaks its domain's
//! DNS.
//!
//! New policies are appended; the last line of a domain counts. The file is rewritten when it is opened and when it
//! has grown too large. If writing fails, the error is logged, policies are kept in memory, and all of them are
//! written a while later.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use postroad_model::{DomainName, Timestamp};

use super::policy::{Mode, Policy};

/// Largest file; ten thousand policies of the usual size take 2 MB.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Pause before writing is tried again after an error.
const RETRY_AFTER: Duration = Duration::from_mins(1);
/// Value of `retry_at` if no retry is planned.
const NEVER: i64 = i64::MAX;

/// Policy as it was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredPolicy {
    pub(super) domain: DomainName,
    pub(super) id: String,
    pub(super) policy: Policy,
    pub(super) fetched_at: Timestamp,
}

#[derive(Debug)]
pub(super) struct PolicyFile {
    path: PathBuf,
    /// File to append to, and its size. `None` after an error.
    open: Mutex<Option<(File, u64)>>,
    /// Time of the next try after an error, in microseconds.
    retry_at: AtomicI64,
}

impl PolicyFile {
    /// Opens the file; also returns its policies, the newest last.
    pub(super) fn open(path: &Path, policies_max: usize) -> (Self, Vec<StoredPolicy>) {
        let known = match read(path, policies_max) {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(
                    path = %path.display(), %error,
                    "stored MTA-STS policies cannot be read; the file is left as it is, and a restart forgets those fetched from now on"
                );
                let without_file =
                    Self { path: path.to_owned(), open: Mutex::new(None), retry_at: AtomicI64::new(NEVER) };
                return (without_file, Vec::new());
            }
        };
        let open = rewrite(path, &known);
        if let Err(error) = &open {
            tracing::warn!(
                path = %path.display(), %error,
                "MTA-STS policies cannot be stored; until this is repaired a restart forgets those fetched from now on"
            );
        }
        let retry_at = AtomicI64::new(if open.is_ok() { NEVER } else { i64::MIN });
        (Self { path: path.to_owned(), open: Mutex::new(open.ok()), retry_at }, known)
    }

    /// Appends a policy; `all` returns everything known if the file must be rewritten.
    pub(super) fn add(&self, stored: &StoredPolicy, now: Timestamp, all: impl FnOnce() -> Vec<StoredPolicy>) {
        let mut open = self.open.lock();
        let Some((file, bytes)) = open.as_mut() else { return };
        let line = line_of(stored);
        let written = if *bytes + line.len() as u64 > FILE_BYTES_MAX {
            rewrite(&self.path, &all()).map(|file| *open = Some(file))
        } else {
            *bytes += line.len() as u64;
            file.write_all(line.as_bytes()).and_then(|()| file.sync_data())
        };
        if let Err(error) = written {
            tracing::warn!(
                path = %self.path.display(), %error,
                "an MTA-STS policy could not be stored; writing is tried again every minute"
            );
            *open = None;
            self.retry_at.store(now.plus(RETRY_AFTER).as_micros(), Ordering::Release);
        }
    }

    /// Whether it is time to write the policies that are not in the file because of an error.
    pub(super) fn is_retry_due(&self, now: Timestamp) -> bool {
        let retry_at = self.retry_at.load(Ordering::Acquire);
        // The clock may have been set back.
        let is_far = retry_at > now.plus(RETRY_AFTER).as_micros();
        retry_at != NEVER && (retry_at <= now.as_micros() || is_far)
    }

    /// Writes all policies after an error.
    pub(super) fn retry(&self, now: Timestamp, all: impl FnOnce() -> Vec<StoredPolicy>) {
        let mut open = self.open.lock();
        // Another thread may have written them meanwhile.
        if !self.is_retry_due(now) {
            return;
        }
        match rewrite(&self.path, &all()) {
            Ok(file) => {
                *open = Some(file);
                self.retry_at.store(NEVER, Ordering::Release);
                tracing::info!(path = %self.path.display(), "MTA-STS policies are stored again");
            }
            Err(error) => {
                self.retry_at.store(now.plus(RETRY_AFTER).as_micros(), Ordering::Release);
                tracing::debug!(path = %self.path.display(), %error, "MTA-STS policies still cannot be stored");
            }
        }
    }
}

/// Reads the file; a missing one is empty. Skips damaged lines, such as a last line cut by a crash.
fn read(path: &Path, policies_max: usize) -> io::Result<Vec<StoredPolicy>> {
    let mut text = Vec::new();
    match File::open(path) {
        Ok(file) => drop(file.take(FILE_BYTES_MAX).read_to_end(&mut text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let text = String::from_utf8_lossy(&text);
    let mut newest: HashMap<DomainName, (usize, StoredPolicy)> = HashMap::new();
    for (number, stored) in text.lines().filter_map(parse_line).enumerate() {
        newest.insert(stored.domain.clone(), (number, stored));
    }
    let mut known: Vec<(usize, StoredPolicy)> = newest.into_values().collect();
    known.sort_by_key(|(number, _)| *number);
    let excess = known.len().saturating_sub(policies_max);
    Ok(known.into_iter().skip(excess).map(|(_, stored)| stored).collect())
}

/// Replaces the file. Writes a second file first, so that a crash leaves one of the two complete.
fn rewrite(path: &Path, known: &[StoredPolicy]) -> io::Result<(File, u64)> {
    let new_path = path.with_extension("new");
    let lines: Vec<String> = known.iter().map(line_of).collect();
    // Keeps the newest policies if they do not all fit, and leaves half of the space for later ones.
    let mut bytes = 0;
    let fits = |line: &&String| {
        bytes += line.len() as u64;
        bytes <= FILE_BYTES_MAX / 2
    };
    let line_count = lines.iter().rev().take_while(fits).count();
    let text = lines[lines.len() - line_count..].concat();
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&new_path)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    std::fs::rename(&new_path, path)?;
    Ok((File::options().append(true).open(path)?, text.len() as u64))
}

/// A policy as a line. Fields have no white space: ids are letters and digits, hosts are names.
fn line_of(stored: &StoredPolicy) -> String {
    let StoredPolicy { domain, id, policy, fetched_at } = stored;
    let mode = match policy.mode {
        Mode::None => "none",
        Mode::Testing => "testing",
        Mode::Enforce => "enforce",
    };
    let mut line = format!("v1 {domain} {id} {} {mode} {}", fetched_at.as_micros(), policy.max_age.as_secs());
    // A name with white space is not a host.
    for host in policy.mx.iter().filter(|host| !host.contains(char::is_whitespace)) {
        line.push(' ');
        line.push_str(host);
    }
    line.push_str(" .\n");
    line
}

fn parse_line(line: &str) -> Option<StoredPolicy> {
    // The final dot distinguishes a complete line from a cut one.
    let mut words = line.strip_prefix("v1 ")?.strip_suffix(" .")?.split(' ');
    let domain = DomainName::parse(words.next()?).ok()?;
    let id = words.next()?.to_owned();
    let fetched_at = Timestamp::from_micros(words.next()?.parse().ok()?);
    let mode = match words.next()? {
        "none" => Mode::None,
        "testing" => Mode::Testing,
        "enforce" => Mode::Enforce,
        _ => return None,
    };
    let max_age = Duration::from_secs(words.next()?.parse().ok()?);
    let mx: Vec<String> = words.map(str::to_owned).collect();
    Some(StoredPolicy { domain, id, policy: Policy { mode, mx, max_age }, fetched_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_794_700_800_000_000);

    fn stored(domain: &str, id: &str) -> StoredPolicy {
        let mx = vec!["mx.example.com".to_owned(), "*.example.net".to_owned()];
        StoredPolicy {
            domain: DomainName::parse(domain).unwrap(),
            id: id.to_owned(),
            policy: Policy { mode: Mode::Enforce, mx, max_age: Duration::from_hours(24) },
            fetched_at: START,
        }
    }

    #[test]
    fn the_last_line_of_a_domain_counts_and_damaged_lines_do_not() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("policies");
        let (file, known) = PolicyFile::open(&path, 10);
        assert!(known.is_empty());
        for one in [stored("a.example", "1"), stored("b.example", "1"), stored("a.example", "2")] {
            file.add(&one, START, Vec::new);
        }
        drop(file);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("v1 c.example 1 1794700800000000 enforce 86400 mx.exam");
        std::fs::write(&path, text).unwrap();
        let (_, known) = PolicyFile::open(&path, 10);
        assert_eq!(known, [stored("b.example", "1"), stored("a.example", "2")]);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2, "rewritten");
        let (_, known) = PolicyFile::open(&path, 1);
        assert_eq!(known, [stored("a.example", "2")], "the newest stay");
    }

    #[test]
    fn a_policy_file_that_cannot_be_written_is_no_failure_for_callers() {
        let (file, known) = PolicyFile::open(Path::new("/nowhere/at/all"), 10);
        assert!(known.is_empty());
        file.add(&stored("a.example", "1"), START, Vec::new);
    }

    #[test]
    fn after_an_error_the_file_is_written_a_minute_later() {
        let folder = tempfile::TempDir::new().unwrap();
        let missing = folder.path().join("missing");
        let path = missing.join("policies");
        let (file, _) = PolicyFile::open(&path, 10);
        let all = || vec![stored("a.example", "1"), stored("b.example", "1")];
        assert!(file.is_retry_due(START));
        file.retry(START, all);
        assert!(!file.is_retry_due(START.plus(Duration::from_secs(59))), "it failed again");
        assert!(file.is_retry_due(START.minus(Duration::from_hours(1))), "the clock was set back");
        std::fs::create_dir(&missing).unwrap();
        let later = START.plus(RETRY_AFTER);
        assert!(file.is_retry_due(later));
        file.retry(later, all);
        assert!(!file.is_retry_due(later.plus(RETRY_AFTER)));
        file.add(&stored("c.example", "1"), later, Vec::new);
        let (_, known) = PolicyFile::open(&path, 10);
        assert_eq!(known, [stored("a.example", "1"), stored("b.example", "1"), stored("c.example", "1")]);
    }

    #[test]
    fn a_failed_append_is_repaired_by_a_later_rewrite() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("policies");
        let (file, _) = PolicyFile::open(&path, 10);
        // Every write to this device fails: no space left.
        let full = File::options().write(true).open("/dev/full").unwrap();
        *file.open.lock() = Some((full, 0));
        file.add(&stored("a.example", "1"), START, Vec::new);
        assert!(!file.is_retry_due(START) && file.is_retry_due(START.plus(RETRY_AFTER)));
        file.retry(START.plus(RETRY_AFTER), || vec![stored("a.example", "1")]);
        let (_, known) = PolicyFile::open(&path, 10);
        assert_eq!(known, [stored("a.example", "1")]);
    }
}
