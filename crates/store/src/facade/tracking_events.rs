//! What tracking finds out.

use postroad_model::{DomainName, ServerId};

use crate::records::{NewTrackingEvent, TrackingEventKind};
use crate::verbs::tracking_events;
use crate::{Engine, Result, Store};

impl Store {
    /// Marks messages and appends events, all of them or none; who unsubscribed is suppressed, also if the message is
    /// gone, except at the simulator's domain. Keep it to a few hundred at a time.
    pub async fn record_tracking_events(
        &self,
        new: Vec<NewTrackingEvent>,
        simulator_domain: DomainName,
    ) -> Result<()> {
        let servers: Vec<ServerId> = new.iter().map(|hit| hit.server_id).collect();
        let left = new.iter().filter(|hit| matches!(hit.kind, TrackingEventKind::Unsubscribe { .. }));
        let left: Vec<ServerId> = left.map(|hit| hit.server_id).collect();
        match &*self.engine {
            Engine::Sqlite { .. } => {
                self.write_with_ids(move |sql, ids| {
                    Box::pin(async move { tracking_events::record(sql, &ids, new, &simulator_domain).await })
                })
                .await?;
            }
            Engine::Postgres(engine) => engine.record_tracking_events(new, &simulator_domain).await?,
        }
        self.last_suppressed.note(left, self.clock.now());
        self.bells.ring(servers);
        Ok(())
    }
}
