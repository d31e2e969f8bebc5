//! The operator's first page: queue and delivery of the installation, gates, estimates about receivers, limits of
//! providers, and maintenance.

use askama::Template;
use postroad_delivery::queue_admin::{PathTotals, Provider};
use postroad_store::{Backlog, PacingNote};

use super::TABS;
use super::nodes::troubles_of;
use crate::answer::{Answer, page};
use crate::display::{When, count, elapsed};
use crate::gates::GateRow;
use crate::layout::{Layout, Section};
use crate::sentence::Sentence;
use crate::visit::Visit;

/// Maximum number of paths on the page: blocked paths, then paths with the most waiting messages.
const PATHS_MAX: usize = 100;
/// Maximum number of servers with waiting messages on the page.
const BACKLOGS_MAX: usize = 20;
/// Maximum number of waiting messages that are counted; beyond it the page shows `>` before the number.
const COUNTED_MAX: usize = 20_000;

struct Figure {
    value: String,
    label: String,
}

struct PathRow {
    source: String,
    site: String,
    provider: String,
    connections: u32,
    waiting: String,
    blocked: Option<Sentence>,
    learned: Option<Sentence>,
}

struct BacklogRow {
    account_id: i64,
    account: String,
    server_id: i64,
    server: String,
    waiting: String,
    first_due_at: Option<When>,
}

struct NoteRow {
    source: String,
    site: String,
    limit: String,
    reason: String,
    at: When,
}

/// Limits that sending to a provider starts with, for one source address.
struct LimitRow {
    name: String,
    hosts: String,
    connections: u32,
    connections_per_minute: String,
    messages_per_connection: u32,
    messages_per_minute: String,
    /// Where the numbers come from.
    basis: String,
}

#[derive(Template)]
#[template(path = "operator/show.html")]
struct OperatorPage {
    layout: Layout,
    figures: Vec<Figure>,
    /// The node whose connections are shown.
    this_node: String,
    problems: Vec<Sentence>,
    domains: Vec<(String, String)>,
    backlogs: Vec<BacklogRow>,
    gates: Vec<GateRow>,
    paths: Vec<PathRow>,
    notes: Vec<NoteRow>,
    limits: Vec<LimitRow>,
    is_in_maintenance: bool,
}

pub(super) async fn show(visit: Visit) -> Answer {
    // This call checks the permission, so it comes before all other reads.
    let installation = visit.app().installation_status(&visit.requester).await?;
    let gates = visit.app().list_all_gates(&visit.requester).await?;
    let layout = visit.layout("Delivery", Section::Operator).await?;
    let now = visit.app().now();
    let overview = visit.state.queue.overview(COUNTED_MAX).await?;
    let health = visit.state.queue.health(now).await?;
    let engine = overview.engine.unwrap_or_default();
    let at_least = |number| format!("{}{}", if overview.stored.has_more { "> " } else { "" }, count(number));
    let figure = |value: String, label: &str| Figure { value, label: label.to_owned() };
    let this_node = match installation.nodes.as_slice() {
        [] | [_] => "this node".to_owned(),
        several => several.iter().find(|node| node.is_this).map_or_else(
            || "this node".to_owned(),
            |node| format!("node {}, which shows this page", node.number),
        ),
    };
    let figures = vec![
        figure(at_least(overview.stored.total), "waiting messages"),
        figure(at_least(overview.stored.due), "due now"),
        figure(
            if health.lag.is_zero() { "–".to_owned() } else { elapsed(now.minus(health.lag), now) },
            "longest wait of one that is due",
        ),
        figure(count(overview.in_flight as u64), &format!("being sent by {this_node}")),
        figure(count(u64::from(engine.connections)), &format!("connections of {this_node}")),
        figure(count(installation.nodes.iter().filter(|node| node.is_live).count() as u64), "nodes"),
        figure(installation.version.to_owned(), "version"),
    ];
    let mut problems = health.problems;
    problems.extend(troubles_of(&installation.nodes, now));
    if installation.is_in_maintenance {
        problems.push(
            "Maintenance mode is on: the API refuses all calls, and the SMTP relay takes no mail. End it at the end of this page."
                .to_owned(),
        );
    }
    let backlogs = visit.state.queue.backlogs(BACKLOGS_MAX).await?;
    let domains = overview.stored.by_domain.iter();
    page(&OperatorPage {
        layout,
        figures,
        this_node,
        problems: problems.into_iter().map(Sentence).collect(),
        domains: domains.map(|(domain, number)| (domain.to_string(), count(*number))).collect(),
        backlogs: backlogs.into_iter().map(backlog_row).collect(),
        gates: gates.into_iter().map(|gate| GateRow::of(gate, None)).collect(),
        paths: paths(engine.paths),
        is_in_maintenance: installation.is_in_maintenance,
        notes: installation.pacing_notes.into_iter().map(note_row).collect(),
        limits: visit.state.queue.provider_limits().map(limit_row).collect(),
    })
}

fn paths(mut found: Vec<PathTotals>) -> Vec<PathRow> {
    found.sort_by_key(|path| (path.blocked.is_none(), std::cmp::Reverse(path.waiting)));
    let row = |path: PathTotals| PathRow {
        source: path.source,
        site: path.site,
        provider: path.provider,
        connections: path.connections,
        waiting: count(path.waiting as u64),
        blocked: path.blocked.map(Sentence),
        learned: path.learned.map(Sentence),
    };
    found.into_iter().take(PATHS_MAX).map(row).collect()
}

fn backlog_row(backlog: Backlog) -> BacklogRow {
    let has_more = backlog.waiting >= Backlog::COUNTED_MAX;
    BacklogRow {
        account_id: backlog.account_id.0,
        account: backlog.account_name,
        server_id: backlog.server_id.0,
        server: backlog.server_name,
        waiting: format!("{}{}", count(backlog.waiting), if has_more { " or more" } else { "" }),
        first_due_at: backlog.first_due_at.map(When),
    }
}

fn note_row(note: PacingNote) -> NoteRow {
    let mut limits = Vec::new();
    limits.extend(note.per_minute.map(|number| format!("{number} messages a minute")));
    limits.extend(note.connections.map(|number| format!("{number} connections")));
    limits.extend(note.greylist_secs.map(|seconds| format!("greylisting for {seconds} s")));
    NoteRow {
        source: if note.source.is_unspecified() { "any".to_owned() } else { note.source.to_string() },
        site: note.site,
        limit: limits.join(", "),
        reason: note.reason,
        at: When(note.learned_at),
    }
}

fn limit_row(provider: &Provider) -> LimitRow {
    let or_none = |number: Option<String>| number.unwrap_or_else(|| "–".to_owned());
    LimitRow {
        name: if provider.is_default() { "all others".to_owned() } else { provider.name.clone() },
        hosts: provider.mx_suffixes.join(", "),
        connections: provider.connections_max,
        connections_per_minute: or_none(provider.connections_per_minute.map(|number| number.to_string())),
        messages_per_connection: provider.messages_per_connection_max,
        messages_per_minute: or_none(provider.messages_per_minute.map(|number| number.to_string())),
        basis: provider.basis.replace('\n', " "),
    }
}
