//! One address: its messages day by day, with bounces and complaints.

use std::collections::BTreeMap;
use std::net::IpAddr;

use askama::Template;
use postroad_app::ip_pools::{AddressView, PoolFilter, PoolView};
use postroad_model::Timestamp;
use postroad_store::{SourceCounts, SourceDay};

use super::list::{AddressRow, address_row};
use crate::answer::{Answer, page};
use crate::chart::{Bar, Part, bars};
use crate::display::{count, percent};
use crate::layout::{Layout, Section};
use crate::problem::Problem;
use crate::query::query;
use crate::visit::Visit;

/// Maximum number of days in the chart: the newest ones.
const DAYS_MAX: usize = 60;
/// Maximum number of rows that are read, one for each day and provider: the newest ones.
const HISTORY_MAX: usize = 10_000;
const PARTS: [Part; 3] = [
    Part { class: "c1", name: "without bounce or complaint" },
    Part { class: "c2", name: "bounced" },
    Part { class: "c3", name: "complaints" },
];

struct ProviderRow {
    name: String,
    /// Link to the page about this provider only.
    link: String,
    sent: String,
    bounce: String,
    complaint: String,
}

#[derive(Template)]
#[template(path = "pools/address.html")]
struct AddressPage {
    layout: Layout,
    pool: String,
    row: AddressRow,
    /// Receiver groups and the messages sent to each today, for a warm-up. A dash replaces counts that the person may
    /// not see.
    today: Vec<(String, String)>,
    is_operator: bool,
    chart: Option<String>,
    /// The provider that the chart is about; `None` for all.
    provider: Option<String>,
    parts: &'static [Part],
    providers: Vec<ProviderRow>,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let address: IpAddr = visit.query.text("address").parse().map_err(|_| Problem::NotFound)?;
    let (days, _) = visit.app().pool_address_history(&visit.requester, address, None, HISTORY_MAX).await?;
    // All pools: `list_ip_pools` adds 1 to the limit.
    let (pools, _) =
        visit.app().list_ip_pools(&visit.requester, PoolFilter::default(), None, usize::MAX - 1).await?;
    let (pool, view) = find(&pools, address.to_canonical()).ok_or(Problem::NotFound)?;
    let layout = visit.layout(&address.to_string(), Section::Pools).await?;
    let provider = visit.query.filled("provider").map(ToOwned::to_owned);
    let shown = of_provider(&days, provider.as_deref());
    page(&AddressPage {
        layout,
        pool: pool.pool.name.clone(),
        row: address_row(&visit, view),
        today: today(view),
        is_operator: visit.person.user.operator,
        chart: (!shown.is_empty()).then(|| chart(&shown)),
        provider,
        parts: &PARTS,
        providers: providers(address, &days),
    })
}

/// The address, with its pool.
fn find(pools: &[PoolView], address: IpAddr) -> Option<(&PoolView, &AddressView)> {
    pools
        .iter()
        .find_map(|pool| Some((pool, pool.addresses.iter().find(|one| one.source.address == address)?)))
}

/// Messages of today by receiver group. The group `others` is always listed, so that the table of a new address is not
/// empty.
fn today(view: &AddressView) -> Vec<(String, String)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::from([("", 0)]);
    for (provider, counts) in &view.source.today_by_provider {
        *sums.entry(provider).or_default() += counts.sent;
    }
    let sent = |number| if view.shows_counts { count(number) } else { "–".to_owned() };
    sums.into_iter().map(|(name, number)| (provider_words(name).to_owned(), sent(number))).collect()
}

fn chart(days: &[&SourceDay]) -> String {
    let mut by_day: BTreeMap<Timestamp, SourceCounts> = BTreeMap::new();
    for day in days {
        add(by_day.entry(day.day).or_default(), day.counts);
    }
    let skipped = by_day.len().saturating_sub(DAYS_MAX);
    let day_bars: Vec<Bar> = by_day
        .iter()
        .skip(skipped)
        .map(|(day, counts)| Bar {
            label: day.to_rfc3339_millis().get(5..10).unwrap_or_default().to_owned(),
            values: vec![
                counts.sent.saturating_sub(counts.bounced + counts.complained),
                counts.bounced,
                counts.complained,
            ],
        })
        .collect();
    bars(&PARTS, &day_bars, "Messages a day; the table below has them by provider")
}

/// Days of a provider; without a provider, all days.
fn of_provider<'a>(days: &'a [SourceDay], provider: Option<&str>) -> Vec<&'a SourceDay> {
    let is_shown =
        |day: &&SourceDay| provider.is_none_or(|provider| provider_words(&day.provider) == provider);
    days.iter().filter(is_shown).collect()
}

fn provider_words(name: &str) -> &str {
    if name.is_empty() { "others" } else { name }
}

fn providers(address: IpAddr, days: &[SourceDay]) -> Vec<ProviderRow> {
    let mut sums: BTreeMap<&str, SourceCounts> = BTreeMap::new();
    for day in days {
        add(sums.entry(&day.provider).or_default(), day.counts);
    }
    let share = |part: u64, whole: u64| percent((whole > 0).then(|| part as f64 / whole as f64));
    sums.into_iter()
        .map(|(name, counts)| ProviderRow {
            name: provider_words(name).to_owned(),
            link: query(&[("address", &address.to_string()), ("provider", provider_words(name))]),
            sent: count(counts.sent),
            bounce: share(counts.bounced, counts.sent),
            complaint: share(counts.complained, counts.sent),
        })
        .collect()
}

fn add(sum: &mut SourceCounts, counts: SourceCounts) {
    sum.sent += counts.sent;
    sum.bounced += counts.bounced;
    sum.complained += counts.complained;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_one_provider_are_chosen_by_its_name() {
        let day = |provider: &str, sent| SourceDay {
            day: Timestamp::from_micros(0),
            provider: provider.to_owned(),
            counts: SourceCounts { sent, ..SourceCounts::default() },
        };
        let days = [day("google", 3), day("", 1)];
        let sent = |provider| of_provider(&days, provider).iter().map(|day| day.counts.sent).sum::<u64>();
        assert_eq!((sent(None), sent(Some("google")), sent(Some("others")), sent(Some("x"))), (4, 3, 1, 0));
        let rows = providers("192.0.2.1".parse().unwrap(), &days);
        assert_eq!(rows[0].link, "?address=192.0.2.1&provider=others");
    }
}
