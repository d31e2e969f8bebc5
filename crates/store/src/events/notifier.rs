//! Notifies those who wait for new events: one channel for all servers, and some that servers share by id, so that
//! waiting for one server is rarely woken by another.

use postroad_model::ServerId;
use tokio::sync::watch;

use crate::Store;

const SHARED_BELLS: usize = 64;

#[derive(Debug)]
pub(crate) struct Bells {
    all: watch::Sender<u64>,
    of_servers: Vec<watch::Sender<u64>>,
}

impl Default for Bells {
    fn default() -> Self {
        let of_servers = (0..SHARED_BELLS).map(|_| watch::Sender::new(0)).collect();
        Self { all: watch::Sender::new(0), of_servers }
    }
}

impl Bells {
    pub(crate) fn all(&self) -> watch::Receiver<u64> {
        self.all.subscribe()
    }

    pub(crate) fn of(&self, server_id: ServerId) -> watch::Receiver<u64> {
        self.of_servers[place(server_id)].subscribe()
    }

    pub(crate) fn ring(&self, servers: impl IntoIterator<Item = ServerId>) {
        let places = servers.into_iter().fold(0_u64, |places, server_id| places | 1 << place(server_id));
        self.ring_places(places);
    }

    /// For what is rare and about servers that only the transaction knew.
    pub(crate) fn ring_everywhere(&self) {
        self.ring_places(u64::MAX);
    }

    /// One bit for each bell.
    fn ring_places(&self, places: u64) {
        for (place, bell) in self.of_servers.iter().enumerate() {
            if places & 1 << place != 0 {
                bell.send_modify(|count| *count += 1);
            }
        }
        self.all.send_modify(|count| *count += 1);
    }
}

/// Ids count up by one: neighbours have different bells.
fn place(server_id: ServerId) -> usize {
    server_id.0.rem_euclid(SHARED_BELLS as i64) as usize
}

impl Store {
    /// Counts up whenever this process has appended events. Other nodes' are not counted.
    pub fn told(&self) -> watch::Receiver<u64> {
        self.bells.all()
    }

    /// Likewise for one server, and now and then for others too.
    pub fn told_of(&self, server_id: ServerId) -> watch::Receiver<u64> {
        self.bells.of(server_id)
    }
}
