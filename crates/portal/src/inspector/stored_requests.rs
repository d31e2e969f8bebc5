//! Stored requests, by server.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::{Mutex, MutexGuard};
use postroad_model::{AccountId, ServerId, Timestamp};
use tokio::sync::watch;

/// Maximum number of servers with an inspector. A further one replaces the oldest of the account that has the most.
const INSPECTORS_MAX: usize = 200;
const REQUESTS_MAX: usize = 50;
/// Maximum number of bytes of all requests of one inspector.
const BYTES_MAX: usize = 1 << 20;
const VALID_FOR: Duration = Duration::from_hours(24);
const TOKEN_BYTES: usize = 18;

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Received {
    /// 1, 2, 3 …; set when the request is stored.
    pub(super) number: u64,
    pub(super) at: Timestamp,
    pub(super) method: String,
    pub(super) query: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    /// Whether `body` is only the beginning.
    pub(super) is_cut: bool,
    /// The status of our answer.
    pub(super) status: u16,
}

impl Received {
    fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.body.len() + self.query.len() + headers
    }
}

#[derive(Debug)]
struct Inspector {
    account: AccountId,
    token: String,
    until: Timestamp,
    /// Newest first.
    requests: VecDeque<Arc<Received>>,
    /// Number of requests received so far.
    count: u64,
    /// Counts arrivals and clearings; open pages wait for a new value.
    changed: watch::Sender<u64>,
}

/// Data for a page.
pub(super) struct Snapshot {
    pub(super) token: String,
    pub(super) until: Timestamp,
    pub(super) requests: Vec<Arc<Received>>,
}

#[derive(Debug, Default)]
pub(crate) struct Inspectors(Mutex<HashMap<ServerId, Inspector>>);

impl Inspectors {
    fn lock(&self) -> MutexGuard<'_, HashMap<ServerId, Inspector>> {
        self.0.lock()
    }

    /// The inspector of a server; created if there is none. `None` if no random bytes are available.
    pub(super) fn open(&self, account: AccountId, server: ServerId, now: Timestamp) -> Option<Snapshot> {
        let mut all = self.lock();
        all.retain(|_, inspector| inspector.until > now);
        if !all.contains_key(&server) {
            if all.len() >= INSPECTORS_MAX
                && let Some(id) = find_replaceable(&all)
            {
                all.remove(&id);
            }
            let mut bytes = [0; TOKEN_BYTES];
            aws_lc_rs::rand::fill(&mut bytes).ok()?;
            let inspector = Inspector {
                account,
                token: URL_SAFE_NO_PAD.encode(bytes),
                until: now.plus(VALID_FOR),
                requests: VecDeque::new(),
                count: 0,
                changed: watch::channel(0).0,
            };
            all.insert(server, inspector);
        }
        all.get(&server).map(snapshot)
    }

    pub(super) fn find(&self, server: ServerId, now: Timestamp) -> Option<Snapshot> {
        self.lock().get(&server).filter(|inspector| inspector.until > now).map(snapshot)
    }

    /// Notified when a request arrives and when the requests are cleared.
    pub(super) fn follow(&self, server: ServerId) -> Option<watch::Receiver<u64>> {
        self.lock().get(&server).map(|inspector| inspector.changed.subscribe())
    }

    pub(super) fn clear(&self, server: ServerId) {
        if let Some(inspector) = self.lock().get_mut(&server) {
            inspector.requests.clear();
            inspector.changed.send_modify(|count| *count += 1);
        }
    }

    /// Stores a request to this token; `false` if there is no such inspector.
    pub(super) fn take(&self, token: &str, mut received: Received) -> bool {
        let mut all = self.lock();
        // Compared by hash, so that the time of the comparison reveals nothing about a token.
        let wanted = digest(&SHA256, token.as_bytes());
        let has_token = |inspector: &&mut Inspector| {
            digest(&SHA256, inspector.token.as_bytes()).as_ref() == wanted.as_ref()
        };
        let Some(inspector) = all.values_mut().find(has_token).filter(|found| found.until > received.at)
        else {
            return false;
        };
        inspector.count += 1;
        received.number = inspector.count;
        inspector.requests.push_front(Arc::new(received));
        let is_too_much = |requests: &VecDeque<Arc<Received>>| {
            requests.len() > REQUESTS_MAX
                || requests.len() > 1 && requests.iter().map(|one| one.bytes()).sum::<usize>() > BYTES_MAX
        };
        while is_too_much(&inspector.requests) {
            inspector.requests.pop_back();
        }
        inspector.changed.send_modify(|count| *count += 1);
        true
    }
}

fn snapshot(inspector: &Inspector) -> Snapshot {
    Snapshot {
        token: inspector.token.clone(),
        until: inspector.until,
        requests: inspector.requests.iter().cloned().collect(),
    }
}

/// The oldest inspector of the account that has the most.
fn find_replaceable(all: &HashMap<ServerId, Inspector>) -> Option<ServerId> {
    let mut counts: HashMap<AccountId, usize> = HashMap::new();
    for inspector in all.values() {
        *counts.entry(inspector.account).or_default() += 1;
    }
    let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let own = all.iter().filter(|(_, inspector)| inspector.account == most);
    own.min_by_key(|(_, inspector)| inspector.until).map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(at: Timestamp, body: &str) -> Received {
        Received {
            number: 0,
            at,
            method: "POST".to_owned(),
            query: String::new(),
            headers: Vec::new(),
            body: body.to_owned(),
            is_cut: false,
            status: 200,
        }
    }

    #[test]
    fn requests_are_limited_in_number_size_and_time() {
        let (inspectors, now) = (Inspectors::default(), Timestamp::from_micros(1_000_000));
        let token = inspectors.open(AccountId(1), ServerId(1), now).map(|one| one.token).unwrap_or_default();
        assert!(!inspectors.take("other", received(now, "x")));
        for number in 0..60 {
            assert!(inspectors.take(&token, received(now, &number.to_string())));
        }
        let kept = inspectors.find(ServerId(1), now).map(|one| one.requests).unwrap_or_default();
        assert_eq!((kept.len(), kept[0].number, kept[0].body.as_str()), (50, 60, "59"));
        assert!(inspectors.take(&token, received(now, &"x".repeat(BYTES_MAX))));
        let kept = inspectors.find(ServerId(1), now).map(|one| one.requests).unwrap_or_default();
        assert_eq!(kept.len(), 1, "the large one alone");
        let later = now.plus(VALID_FOR);
        assert!(!inspectors.take(&token, received(later, "x")));
        assert!(inspectors.find(ServerId(1), later).is_none() && inspectors.find(ServerId(2), now).is_none());
        let other =
            inspectors.open(AccountId(1), ServerId(1), later).map(|one| one.token).unwrap_or_default();
        assert_ne!(other, token);
    }

    #[test]
    fn a_new_inspector_replaces_the_oldest() {
        let inspectors = Inspectors::default();
        for id in 0..=INSPECTORS_MAX as i64 {
            let now = Timestamp::from_micros(1_000_000 + id);
            assert!(inspectors.open(AccountId(1), ServerId(id), now).is_some());
        }
        let now = Timestamp::from_micros(2_000_000);
        assert!(inspectors.find(ServerId(0), now).is_none() && inspectors.find(ServerId(1), now).is_some());
        let (other, id) = (AccountId(2), ServerId(1_000));
        assert!(inspectors.open(other, id, Timestamp::from_micros(1)).is_some(), "older than all of them");
        assert!(inspectors.open(AccountId(1), ServerId(1_001), now).is_some());
        assert!(inspectors.find(id, now).is_some(), "an account replaces its own");
    }
}
