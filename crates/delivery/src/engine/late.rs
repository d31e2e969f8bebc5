//! Records messages that waited long without being offered to a host: as delayed, or as failed if they are too old.
//! This is a separate task, so that a slow store delays only these records.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::EngineShared;
use crate::attempt::Ending;
use crate::schedule::LateMessage;

const ROUND_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of messages recorded in one round.
const ROUND_MESSAGES_MAX: usize = 500;
/// Maximum number of concurrent writes; the store combines them into transactions.
const WRITES_MAX: usize = 32;
/// A message that waits for a limit of our own is due again after at most this time, because the limit may be lifted.
const OWN_LIMIT_PAUSE_MAX: Duration = Duration::from_secs(20);
/// Minimum time until a recorded message is due again.
const PAUSE_MIN: Duration = Duration::from_secs(5);

/// Runs as long as the engine does.
pub(crate) async fn run_late_records(shared: Arc<EngineShared>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(ROUND_INTERVAL) => {}
            () = shared.stopped() => return,
        }
        record_late_messages(&shared).await;
    }
}

async fn record_late_messages(shared: &Arc<EngineShared>) {
    let mut writes = JoinSet::new();
    let after = shared.settings.delay_notice_after;
    for late in shared.with(|schedule, now| schedule.take_late(ROUND_MESSAGES_MAX, after, now)) {
        if shared.is_stopping() {
            shared.release_entries(vec![late.entry]).await;
            continue;
        }
        if writes.len() >= WRITES_MAX {
            writes.join_next().await;
        }
        let shared = Arc::clone(shared);
        writes.spawn(async move { shared.record_late(late).await });
    }
    while writes.join_next().await.is_some() {}
}

impl EngineShared {
    async fn record_late(self: &Arc<Self>, late: LateMessage) {
        let now = self.clock.now();
        let is_ours = late.block.cause.is_ours();
        let pause_max = if is_ours { OWN_LIMIT_PAUSE_MAX } else { Duration::MAX };
        let until = late.block.until.map_or(Duration::ZERO, |until| until.since(now));
        let retry_after = until.clamp(PAUSE_MIN, pause_max);
        let ending = Ending::Waited {
            cause: late.block.cause.to_string(),
            class: late.block.cause.bounce_class(),
            is_ours,
        };
        self.record_unsent(&late.lane, late.entry, ending, Some(retry_after)).await;
    }
}
