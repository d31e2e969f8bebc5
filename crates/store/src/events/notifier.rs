//! Notifies readers that wait for new events, or for requests to an inspector. There is one channel for all servers,
//! and a number of channels that servers share by id, so that a reader of one server is rarely woken by another.

use postroad_model::ServerId;
use tokio::sync::watch;

use crate::Store;

/// Number of channels that servers share; one bit each in the mask of `notify_shards`.
const SHARDS: usize = 64;

#[derive(Debug)]
pub(crate) struct EventNotifier {
    all_servers: watch::Sender<u64>,
    shards: Vec<watch::Sender<u64>>,
}

impl Default for EventNotifier {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| watch::Sender::new(0)).collect();
        Self { all_servers: watch::Sender::new(0), shards }
    }
}

impl EventNotifier {
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.all_servers.subscribe()
    }

    pub(crate) fn subscribe_server(&self, server_id: ServerId) -> watch::Receiver<u64> {
        self.shards[shard_of(server_id)].subscribe()
    }

    pub(crate) fn notify(&self, servers: impl IntoIterator<Item = ServerId>) {
        let mask = servers.into_iter().fold(0_u64, |mask, server_id| mask | 1 << shard_of(server_id));
        self.notify_shards(mask);
    }

    /// Notifies the readers of all servers; for rare events whose servers only the transaction knew.
    pub(crate) fn notify_all(&self) {
        self.notify_shards(u64::MAX);
    }

    /// Notifies the shards whose bits are set in `mask`.
    fn notify_shards(&self, mask: u64) {
        for (shard, channel) in self.shards.iter().enumerate() {
            if mask & 1 << shard != 0 {
                channel.send_modify(|count| *count += 1);
            }
        }
        self.all_servers.send_modify(|count| *count += 1);
    }
}

/// Ids increase by one, so neighbours use different shards.
fn shard_of(server_id: ServerId) -> usize {
    server_id.0.rem_euclid(SHARDS as i64) as usize
}

impl Store {
    /// Changes whenever this process has appended events. Events of other nodes are not included.
    pub fn event_notices(&self) -> watch::Receiver<u64> {
        self.notifier.subscribe()
    }

    /// Changes whenever this process has appended events of the server; sometimes also for another server's events.
    pub fn server_event_notices(&self, server_id: ServerId) -> watch::Receiver<u64> {
        self.notifier.subscribe_server(server_id)
    }
}
