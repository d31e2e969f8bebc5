//! Figures of an account's servers side by side.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, ServerId, Timestamp};
use postroad_store::{Grain, ServerFilter};

use super::figures::Figures;
use super::plan::counter_ranges;
use super::summary::{check_length, whole_spans};
use crate::App;
use crate::access::{Operation, Subject, permit};
use crate::accounts::{AccountRefusal, Requester};

/// A server's figures.
#[derive(Debug, Clone)]
pub struct ServerFigures {
    pub id: ServerId,
    pub name: String,
    pub figures: Figures,
}

#[boxed_futures]
impl App {
    /// Figures since `from` of the first servers of an account, and whether it has more servers. Unlike
    /// `analytics_summary`, this call does not count new events first. Servers whose figures the requester may not see
    /// are left out.
    pub async fn figures_by_server(
        &self,
        by: &Requester,
        account_id: AccountId,
        from: Timestamp,
        servers_max: usize,
    ) -> Result<(Vec<ServerFigures>, bool), AccountRefusal> {
        let filter = ServerFilter { account_id: Some(account_id), ..ServerFilter::default() };
        let (mut servers, has_more) = self.list_servers_as(by, filter, None, servers_max).await?;
        servers.retain(|server| {
            let subject = Subject::Server { id: server.id, account_id: server.account_id };
            permit(&by.actor, Operation::AnalyticsSummary, subject).is_ok()
        });
        // If the period begins just now, the range is still one quarter of an hour.
        let to = self.inner.clock.now().max(from.plus(Duration::from_micros(1)));
        let borders = whole_spans(Grain::Quarter, from, to);
        check_length(borders)?;
        let ranges = counter_ranges(&borders).into_iter();
        let ranges = ranges.map(|range| (range.grain, range.from, range.to)).collect();
        let ids = servers.iter().map(|server| server.id).collect();
        let mut sums = self.inner.store.sum_totals(ids, ranges).await?;
        let include_bots = false;
        let mut figures_of = |id| Figures::of(sums.remove(&id).unwrap_or_default(), include_bots);
        let found = servers.into_iter().map(|server| ServerFigures {
            id: server.id,
            figures: figures_of(server.id),
            name: server.name,
        });
        Ok((found.collect(), has_more))
    }
}
