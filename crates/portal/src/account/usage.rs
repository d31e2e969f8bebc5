//! Usage of an account, with its ceilings.

use postroad_app::accounts::AccountUsage;

use crate::shown::count;

pub(crate) struct UsageRow {
    pub(crate) what: &'static str,
    pub(crate) used: u64,
    /// `None` without a ceiling.
    pub(crate) most: Option<u64>,
}

impl UsageRow {
    fn of(what: &'static str, used: usize, most: Option<u32>) -> Self {
        Self { what, used: used as u64, most: most.map(u64::from) }
    }

    pub(crate) fn used(&self) -> String {
        count(self.used)
    }

    pub(crate) fn ceiling(&self) -> String {
        self.most.map_or_else(|| "no limit".to_owned(), count)
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.most.is_some_and(|most| self.used >= most)
    }

    /// Share from which the bar is shown as high.
    pub(crate) fn high(&self) -> u64 {
        self.most.unwrap_or(0) / 5 * 4
    }
}

pub(crate) fn usage(found: &AccountUsage) -> Vec<UsageRow> {
    let most = &found.ceilings;
    let mut rows = vec![
        UsageRow::of("Servers", found.servers, most.servers),
        UsageRow::of("Domains", found.domains, most.domains),
        UsageRow::of("Webhooks", found.webhooks, most.webhooks),
        UsageRow::of("People and invitations", found.users, most.users),
    ];
    let periods = [
        ("Messages this hour", most.hourly_limit),
        ("Messages today", most.daily_limit),
        ("Messages this month", most.monthly_limit),
    ];
    for ((what, most), used) in periods.into_iter().zip(found.messages) {
        // Messages are counted only where a limit is set.
        let used = used.and_then(|used| u64::try_from(used).ok());
        rows.extend(used.map(|used| UsageRow { what, used, most: most.map(u64::from) }));
    }
    rows
}

pub(super) fn limits(found: &AccountUsage) -> Vec<(&'static str, String)> {
    let most = &found.ceilings;
    let days = |days: u32| if days == 1 { "1 day".to_owned() } else { format!("{days} days") };
    let mut limits = Vec::new();
    limits.extend(most.send_rate.map(|rate| ("Send rate of all servers together", rate.to_string())));
    limits.extend(most.bodies_days.map(|number| ("Content is kept at most", days(number))));
    limits.extend(most.messages_days.map(|number| ("Messages are kept at most", days(number))));
    limits
}
