//! Standstills that refusals of a single server's mail caused. They end when another server has mail for the receiver:
//! nothing shows that its mail would be refused too.

use std::sync::Arc;

use postroad_model::{ServerId, Timestamp};

use super::Schedule;
use crate::pacing::Standstill;
use crate::route::Route;

impl Schedule {
    /// Ends the standstill of the path's site or provider if only one server's mail was refused, and another server's
    /// mail waits for the path. Returns whether a standstill ended. The evidence is kept: if the other server's mail is
    /// refused too, everything stops again.
    pub(super) fn end_standstills_of_one_server(
        &mut self,
        path_id: usize,
        route: &Route,
        now: Timestamp,
    ) -> bool {
        let path = &self.paths[path_id];
        let waiting = &self.queues[path.queue].waiting;
        let others_wait = |server: ServerId| waiting.count() > waiting.count_of(server);
        let is_over = |standstill: &Standstill| standstill.only_server().is_some_and(others_wait);
        let mut has_ended = false;
        let source_site = &mut self.source_sites[path.source_site];
        if is_over(&source_site.standstill) {
            has_ended |= source_site.standstill.end();
            source_site.rate.begin_slowly(now);
        }
        let key = (path.source, Arc::clone(&route.provider));
        if let Some(source_provider) = self.source_providers.get_mut(&key)
            && is_over(&source_provider.standstill)
        {
            has_ended |= source_provider.standstill.end();
        }
        has_ended
    }
}
