//! Messages of this month, by server.

use postroad_app::analytics::{Metric, ServerFigures};

use crate::days;
use crate::display::count;
use crate::problem::Problem;
use crate::visit::Visit;

/// Maximum number of servers whose messages are shown.
const SERVERS_MAX: usize = 20;

pub(super) struct ServerRow {
    pub(super) id: i64,
    pub(super) name: String,
    accepted: u64,
    delivered: u64,
}

impl ServerRow {
    pub(super) fn accepted(&self) -> String {
        count(self.accepted)
    }

    pub(super) fn delivered(&self) -> String {
        count(self.delivered)
    }
}

pub(super) struct MessagesOfMonth {
    pub(super) rows: Vec<ServerRow>,
    /// Whether the account has servers beyond the first `SERVERS_MAX`.
    pub(super) has_more: bool,
}

impl MessagesOfMonth {
    /// Reads the counters of analytics: the account's own counts exist only for periods that have a limit.
    pub(super) async fn read(visit: &Visit) -> Result<Self, Problem> {
        let now = visit.app().now();
        let first_day = format!("{}-01", &days::day_of(now)[.."2027-01".len()]);
        let from = days::begin(&first_day).unwrap_or(now);
        let account_id = visit.person.user.account_id;
        let (found, has_more) =
            visit.app().figures_by_server(&visit.requester, account_id, from, SERVERS_MAX).await?;
        let row = |server: ServerFigures| ServerRow {
            id: server.id.0,
            accepted: server.figures.count(Metric::Accepted),
            delivered: server.figures.count(Metric::Sent),
            name: server.name,
        };
        Ok(Self { rows: found.into_iter().map(row).collect(), has_more })
    }

    /// Accepted and delivered messages of all servers on the page together.
    pub(super) fn totals(&self) -> (String, String) {
        let sum = |value: fn(&ServerRow) -> u64| count(self.rows.iter().map(value).sum());
        (sum(|row| row.accepted), sum(|row| row.delivered))
    }
}
