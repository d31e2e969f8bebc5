//! List of pools with their addresses.

use askama::Template;
use postroad_app::ip_pools::{AddressView, PoolFilter, PoolView, WarmUpState};
use postroad_model::{AccountId, PoolId};

use crate::answer::{Answer, page};
use crate::display::count;
use crate::layout::{Layout, Section};
use crate::query::query;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;

pub(super) struct AddressRow {
    pub(super) address: String,
    pub(super) helo: String,
    pub(super) weight: u32,
    /// Incremented by every change, so that a form does not undo somebody else's change.
    pub(super) version: i64,
    pub(super) sent: String,
    pub(super) bounced: String,
    pub(super) complained: String,
    pub(super) state: &'static str,
    pub(super) tone: &'static str,
    /// Day of the warm-up and length of its plan.
    pub(super) day: Option<(u32, u32)>,
    /// Messages that the address may send today to each receiver group; `None` for any number.
    pub(super) quota: Option<u32>,
    pub(super) paused_reason: Option<String>,
    /// Possible actions on the warm-up: value and label.
    pub(super) choices: &'static [(&'static str, &'static str)],
}

struct PoolRow {
    id: i64,
    name: String,
    is_shared: bool,
    is_own: bool,
    /// The account that the pool is reserved for; shown to the operator.
    of_account: Option<i64>,
    /// Whether the person's account may change the warm-up of the pool's addresses; the person's role must allow it
    /// too.
    may_warm_up: bool,
    addresses: Vec<AddressRow>,
}

#[derive(Template)]
#[template(path = "pools/list.html")]
struct ListPage {
    layout: Layout,
    pools: Vec<PoolRow>,
    next: Option<String>,
    /// Exact name to search for.
    q: String,
    /// Filter for the shared pool: `yes`, `no` or empty.
    shared: String,
    /// Id of an account, or empty.
    account: String,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let layout = visit.layout("IP pools", Section::Pools).await?;
    let after = visit.query.number("after").map(PoolId);
    let text = |name: &str| visit.query.text(name).to_owned();
    let (q, shared, account) = (text("q"), text("shared"), text("account"));
    let filter = PoolFilter {
        account: visit.query.number("account").map(AccountId),
        name: Some(q.clone()).filter(|name| !name.is_empty()),
        shared: visit.query.yes_or_no("shared"),
    };
    let (found, has_more) = visit.app().list_ip_pools(&visit.requester, filter, after, PAGE_ROWS).await?;
    let next = found.last().filter(|_| has_more).map(|last| {
        let after = last.pool.id.to_string();
        query(&[("q", &q), ("shared", &shared), ("account", &account), ("after", &after)])
    });
    let pools = found.iter().map(|view| pool_row(&visit, view)).collect();
    page(&ListPage { layout, pools, next, q, shared, account })
}

fn pool_row(visit: &Visit, view: &PoolView) -> PoolRow {
    let user = &visit.person.user;
    let is_own = view.pool.account_id == Some(user.account_id);
    PoolRow {
        id: view.pool.id.0,
        name: view.pool.name.clone(),
        is_shared: view.pool.shared,
        is_own,
        of_account: view.pool.account_id.filter(|_| user.operator && !is_own).map(|id| id.0),
        may_warm_up: user.operator || is_own,
        addresses: view.addresses.iter().map(|address| address_row(visit, address)).collect(),
    }
}

pub(super) fn address_row(visit: &Visit, view: &AddressView) -> AddressRow {
    let (source, plan) = (&view.source, &visit.state.warm_up);
    let (state, tone, choices): (_, _, &[(&str, &str)]) = match view.warm_up {
        WarmUpState::None => ("Warm", "good", &[("start", "Start warm-up")]),
        WarmUpState::Done => ("Warm-up done", "good", &[("start", "Start again")]),
        WarmUpState::Running => ("Warming up", "calm", &[("pause", "Pause"), ("end", "Call it warm")]),
        WarmUpState::Paused => ("Paused", "warn", &[("resume", "Resume"), ("end", "Call it warm")]),
    };
    let shown = |number| if view.shows_counts { count(number) } else { "–".to_owned() };
    AddressRow {
        address: source.address.to_string(),
        helo: source.helo.to_string(),
        weight: source.weight,
        version: source.version,
        sent: shown(source.sent_today),
        bounced: shown(source.bounced_today),
        complained: shown(source.complained_today),
        state,
        tone,
        day: view.warm_up_day.map(|day| (day, plan.days())),
        quota: plan.quota(source, visit.app().now()),
        paused_reason: source.warmup_paused_reason.clone(),
        choices,
    }
}
