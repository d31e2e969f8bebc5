//! The form with a server's settings.

use askama::Template;
use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_model::ServerMode;
use postroad_store::Ceilings;

use crate::answer::{Answer, page_with_status};
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::servers::{PoolChoice, list_pool_choices};
use crate::visit::Visit;

/// Ceilings for the server's keys, as fields of the form; empty for none.
struct CeilingFields {
    is_development: bool,
    send_rate: String,
    hourly_limit: String,
    bodies_days: String,
    messages_days: String,
}

impl CeilingFields {
    fn of(ceilings: &Ceilings) -> Self {
        let number = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
        Self {
            is_development: ceilings.mode == Some(ServerMode::Development),
            send_rate: ceilings.send_rate.map(|rate| rate.to_string()).unwrap_or_default(),
            hourly_limit: number(ceilings.hourly_limit),
            bodies_days: number(ceilings.bodies_days),
            messages_days: number(ceilings.messages_days),
        }
    }
}

#[derive(Template)]
#[template(path = "settings/show.html")]
struct SettingsPage {
    layout: Layout,
    server: i64,
    name: String,
    /// Incremented by every change, so that a form does not undo somebody else's change.
    version: i64,
    is_live: bool,
    suspended: Option<String>,
    send_rate: String,
    hourly_limit: String,
    tracks_opens: bool,
    tracks_clicks: bool,
    excluded_hosts: String,
    bodies_days: String,
    messages_days: String,
    /// Highest values that the operator and the account allow, in words.
    ceilings: Vec<String>,
    /// Ceilings that the person can change: the operator's, or the account's.
    own_ceilings: CeilingFields,
    pools: Vec<PoolChoice>,
    created_at: When,
    problem: Option<String>,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    page_of(&visit, server, StatusCode::OK, None).await
}

pub(super) async fn page_of(
    visit: &Visit,
    server: i64,
    status: StatusCode,
    problem: Option<String>,
) -> Answer {
    let caller = visit.caller(server, Operation::ServerGet).await?;
    let (_, layout) = visit.server_layout(server, "Settings", Section::Settings).await?;
    let record = visit.app().find_server_of_key(caller.server_id).await?;
    let number = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
    let ceilings = &record.ceilings;
    let mut ceiling_texts = Vec::new();
    ceiling_texts.extend(ceilings.mode.map(|mode| format!("mode {mode}")));
    ceiling_texts.extend(ceilings.send_rate.map(|rate| format!("send rate {rate}")));
    ceiling_texts.extend(ceilings.hourly_limit.map(|limit| format!("{limit} messages an hour")));
    ceiling_texts.extend(ceilings.bodies_days.map(|days| format!("content kept {days} days")));
    ceiling_texts.extend(ceilings.messages_days.map(|days| format!("messages kept {days} days")));
    let pools = list_pool_choices(visit, record.account_id, record.pool_id).await?;
    let by_setter = &record.ceilings_by_setter;
    let own = if visit.requester.actor.is_operator() { &by_setter.operator } else { &by_setter.account };
    let own_ceilings = CeilingFields::of(own);
    page_with_status(
        status,
        &SettingsPage {
            layout,
            server,
            version: record.version,
            is_live: record.mode == ServerMode::Live,
            send_rate: record.send_rate.map(|rate| rate.to_string()).unwrap_or_default(),
            hourly_limit: number(record.hourly_limit),
            tracks_opens: record.tracking.opens,
            tracks_clicks: record.tracking.clicks,
            excluded_hosts: record.tracking.excluded_hosts.join("\n"),
            bodies_days: number(record.retention.bodies_days),
            messages_days: number(record.retention.messages_days),
            ceilings: ceiling_texts,
            own_ceilings,
            pools,
            created_at: When(record.created_at),
            suspended: record.suspended_reason,
            name: record.name,
            problem,
        },
    )
}
