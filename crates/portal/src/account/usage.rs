//! Usage of an account, with its ceilings.

use postroad_app::accounts::AccountUsage;

use crate::display::count;

pub(crate) struct UsageRow {
    pub(crate) label: &'static str,
    pub(crate) used: u64,
    /// `None` without a ceiling.
    pub(crate) ceiling: Option<u64>,
}

impl UsageRow {
    fn of(label: &'static str, used: usize, ceiling: Option<u32>) -> Self {
        Self { label, used: used as u64, ceiling: ceiling.map(u64::from) }
    }

    pub(crate) fn used(&self) -> String {
        count(self.used)
    }

    pub(crate) fn ceiling_text(&self) -> String {
        self.ceiling.map_or_else(|| "no limit".to_owned(), count)
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.ceiling.is_some_and(|ceiling| self.used >= ceiling)
    }

    /// Value of `high` in `<meter>`: four fifths of the ceiling, but at least 1.
    pub(crate) fn high(&self) -> u64 {
        (self.ceiling.unwrap_or(0) * 4 / 5).max(1)
    }
}

pub(crate) fn usage_rows(found: &AccountUsage) -> Vec<UsageRow> {
    let ceilings = &found.ceilings;
    let mut rows = vec![
        UsageRow::of("Servers", found.servers, ceilings.servers),
        UsageRow::of("Domains", found.domains, ceilings.domains),
        UsageRow::of("Webhooks", found.webhooks, ceilings.webhooks),
        UsageRow::of("People and invitations", found.users, ceilings.users),
    ];
    let periods = [
        ("Messages this hour", ceilings.hourly_limit),
        ("Messages today", ceilings.daily_limit),
        ("Messages this month", ceilings.monthly_limit),
    ];
    for ((label, ceiling), used) in periods.into_iter().zip(found.messages) {
        // Messages are counted only where a limit is set.
        let used = used.and_then(|used| u64::try_from(used).ok());
        rows.extend(used.map(|used| UsageRow { label, used, ceiling: ceiling.map(u64::from) }));
    }
    rows
}

pub(super) fn other_limits(found: &AccountUsage) -> Vec<(&'static str, String)> {
    let ceilings = &found.ceilings;
    let days = |days: u32| if days == 1 { "1 day".to_owned() } else { format!("{days} days") };
    let mut limits = Vec::new();
    limits.extend(ceilings.send_rate.map(|rate| ("Send rate of all servers together", rate.to_string())));
    limits.extend(ceilings.bodies_days.map(|number| ("Content is kept at most", days(number))));
    limits.extend(ceilings.messages_days.map(|number| ("Messages are kept at most", days(number))));
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_is_high_from_four_fifths_of_its_ceiling_on() {
        for (ceiling, high) in [(1, 1), (2, 1), (4, 3), (5, 4), (10, 8), (1_000, 800)] {
            assert_eq!(UsageRow::of("Servers", 0, Some(ceiling)).high(), high, "{ceiling}");
        }
    }
}
