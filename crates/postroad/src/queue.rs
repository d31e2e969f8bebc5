//! Executes `postroad queue …` in the running service, which knows why a message waits. Without a running service, the
//! command executes it itself on the store.

use anyhow::{Context, bail};
use postroad_app::App;
use postroad_delivery::QueueAdmin;
use postroad_delivery::queue_admin::{Reader, WaitingMessage};
use postroad_model::{Clock, GateAction, GateScope, MessageId, Status, SystemClock, Timestamp};
use postroad_store::{CancelResult, Gate, NewGate, QueueEntry, QueueFilter, RetryResult, SetBy};
use serde_json::{Value, json};

use crate::cli::QueueCommand;

pub(crate) async fn execute(
    app: &App,
    queue_admin: &QueueAdmin,
    command: QueueCommand,
) -> anyhow::Result<Value> {
    let now = SystemClock.now();
    match command {
        QueueCommand::List { server, domain, limit } => {
            let server_id = match server {
                Some(server) => Some(app.find_server_id(&server).await?),
                None => None,
            };
            let domain = domain.map(|name| postroad_model::DomainName::parse(&name)).transpose()?;
            let entries = queue_admin.list(QueueFilter { server_id, domain }, None, limit).await?;
            Ok(entries.iter().map(entry_json).collect())
        }
        QueueCommand::Show { id } => match queue_admin.find(MessageId(id), Reader::Operator, now).await? {
            Some(waiting) => Ok(waiting_json(waiting)),
            None => not_queued_json(queue_admin, id).await,
        },
        QueueCommand::Stats => stats(queue_admin).await,
        QueueCommand::Retry { ids } => change_each(app, queue_admin, ids, MessageChange::Retry).await,
        QueueCommand::Cancel { ids } => change_each(app, queue_admin, ids, MessageChange::Cancel).await,
        QueueCommand::Suspend { scope, reason, for_, slow } => {
            let scope = parse_scope(app, &scope).await?;
            check_pool(app, &scope).await?;
            let action = match slow {
                Some(per_minute) => GateAction::Slow { per_minute },
                None => GateAction::Suspend,
            };
            let ends_at = for_.map(|duration| now.plus(duration));
            let new = NewGate { scope: scope.clone(), action, reason, automatic: false, ends_at };
            app.suspend_scope(new).await?;
            queue_admin.refresh().await?;
            let gates = queue_admin.gates().await?;
            let created = gates.iter().find(|gate| gate.scope == scope && !gate.automatic);
            created.map(gate_json).context("the gate was lifted at once by somebody else")
        }
        QueueCommand::Resume { scope } => {
            let parsed = parse_scope(app, &scope).await?;
            let had_gate = app.resume_scope(parsed).await?;
            queue_admin.refresh().await?;
            if !had_gate {
                bail!("nothing is suspended or slowed at `{scope}`; `postroad queue stats` shows what is");
            }
            Ok(json!({ "resumed": scope }))
        }
    }
}

/// A queued message and why it waits: the engine's reason, the last failure with the other host's reply, and the
/// gates that apply.
fn waiting_json(waiting: WaitingMessage) -> Value {
    let WaitingMessage { entry, why, last_failure, gates } = waiting;
    let mut value = entry_json(&entry);
    value["why"] = json!(why);
    if let Some(failure) = last_failure {
        value["last_failure"] = json!({
            "at": failure.at.to_rfc3339(),
            "status": failure.status,
            "details": failure.details,
            "server_said": failure.output,
            "mx": failure.mx,
            "code": failure.code,
            "enhanced_code": failure.enhanced_code,
            "bounce_class": failure.bounce_class,
        });
    }
    value["gates"] = gates.iter().map(gate_json).collect();
    value
}

async fn not_queued_json(queue_admin: &QueueAdmin, id: i64) -> anyhow::Result<Value> {
    match queue_admin.locate(MessageId(id)).await? {
        Some(server) => {
            let last = queue_admin.last_delivery(server, MessageId(id)).await?;
            let why = match &last {
                Some(last) if last.status == Status::Held => {
                    format!(
                        "It is held: {}. `postroad queue retry {id}` releases it, unless a suppression or limit still applies.",
                        last.details
                    )
                }
                Some(last) => format!("It is not in the queue: it is {}. {}", last.status, last.details),
                None => "It is not in the queue, and nothing was recorded about its delivery.".to_owned(),
            };
            Ok(json!({
                "id": id,
                "queued": false,
                "status": last.as_ref().map(|last| last.status),
                "why": why,
                "server_said": last.map(|last| last.output).filter(|words| !words.is_empty()),
            }))
        }
        None => bail!("there is no message {id}"),
    }
}

/// Change that a command makes to each of its messages.
#[derive(Debug, Clone, Copy)]
enum MessageChange {
    Retry,
    Cancel,
}

/// Changes messages one after the other. Returns one result for each; `done` says whether the message was changed. If
/// the store fails, the remaining messages are not tried and the results so far are kept; a failure for the first
/// message is returned as an error.
async fn change_each(
    app: &App,
    queue_admin: &QueueAdmin,
    ids: Vec<i64>,
    change: MessageChange,
) -> anyhow::Result<Value> {
    let mut results: Vec<Value> = Vec::new();
    let mut has_failed = false;
    for id in ids {
        if has_failed {
            results.push(unchanged_json(id, "not tried"));
            continue;
        }
        let changed = match change {
            MessageChange::Retry => retry(app, queue_admin, id).await,
            MessageChange::Cancel => cancel(app, queue_admin, id).await,
        };
        match changed {
            Ok(result) => results.push(result),
            Err(error) if results.is_empty() => return Err(error),
            Err(error) => {
                has_failed = true;
                results.push(unchanged_json(id, &format!("failed: {error:#}")));
            }
        }
    }
    Ok(results.into())
}

fn unchanged_json(id: i64, result: &str) -> Value {
    json!({ "id": id, "result": result, "done": false })
}

async fn retry(app: &App, queue_admin: &QueueAdmin, id: i64) -> anyhow::Result<Value> {
    let retried = match queue_admin.locate(MessageId(id)).await? {
        Some(server) => Some(app.retry_waiting(server, MessageId(id)).await?),
        None => None,
    };
    let done = matches!(retried, Some(RetryResult::Now | RetryResult::Released));
    let result = match retried {
        None => "unknown".to_owned(),
        Some(RetryResult::Now) => "due now".to_owned(),
        Some(RetryResult::Released) => "released".to_owned(),
        Some(RetryResult::Suppressed { reason, since }) => format!(
            "not retried: its recipient is suppressed ({reason} since {since}) and it would be held again; \
             remove the suppression first"
        ),
        Some(RetryResult::OverHourlyLimit { limit }) => {
            format!("still held: the server's limit of {limit} messages an hour is reached")
        }
        Some(RetryResult::DevelopmentOnly) => "still held: its server is a development server".to_owned(),
        Some(RetryResult::OverAccountLimit { limit, period }) => {
            format!(
                "still held: the account's limit of {limit} messages {} is reached",
                period.with_article()
            )
        }
        Some(RetryResult::TooLate) => "being sent right now".to_owned(),
        Some(RetryResult::NotWaiting) => NOT_WAITING.to_owned(),
    };
    Ok(json!({ "id": id, "result": result, "done": done }))
}

const NOT_WAITING: &str = "not waiting: it is delivered, failed or cancelled";

async fn cancel(app: &App, queue_admin: &QueueAdmin, id: i64) -> anyhow::Result<Value> {
    let cancelled = match queue_admin.locate(MessageId(id)).await? {
        Some(server) => Some(app.cancel_waiting(server, MessageId(id)).await?),
        None => None,
    };
    Ok(match cancelled {
        None => unchanged_json(id, "unknown"),
        Some(CancelResult::Done(status)) => {
            json!({ "id": id, "result": "cancelled", "status": status, "done": true })
        }
        Some(CancelResult::TooLate) => unchanged_json(id, "too late: it is being sent right now"),
        Some(CancelResult::NotWaiting) => unchanged_json(id, NOT_WAITING),
    })
}

async fn stats(queue_admin: &QueueAdmin) -> anyhow::Result<Value> {
    let overview = queue_admin.overview(usize::MAX).await?;
    let domains: Vec<Value> = overview
        .stored
        .by_domain
        .iter()
        .map(|(domain, count)| json!({ "domain": domain, "messages": count }))
        .collect();
    Ok(json!({
        "queued": overview.stored.total,
        "due": overview.stored.due,
        "later": overview.stored.scheduled,
        "oldest_due_at": overview.stored.oldest_due_at.map(Timestamp::to_rfc3339),
        "in_flight": overview.in_flight,
        "domains": domains,
        "gates": overview.gates.iter().map(gate_json).collect::<Vec<_>>(),
        "engine": overview.engine,
    }))
}

fn entry_json(entry: &QueueEntry) -> Value {
    json!({
        "id": entry.message_id,
        "server": entry.server_name,
        "to": entry.rcpt_to,
        "domain": entry.domain,
        "status": entry.status,
        "attempts": entry.attempts,
        "next_attempt": entry.due_at.to_rfc3339(),
        "expires_at": entry.expires_at.map(Timestamp::to_rfc3339),
        "accepted_at": entry.created_at.to_rfc3339(),
    })
}

fn gate_json(gate: &Gate) -> Value {
    json!({
        "scope": gate.scope.to_string(),
        "action": match gate.action {
            GateAction::Suspend => "suspend".to_owned(),
            GateAction::Slow { per_minute } => format!("slow to {per_minute}/m"),
        },
        "reason": gate.reason,
        "by": match gate.set_by {
            _ if gate.automatic => "postroad",
            SetBy::Operator => "operator",
            SetBy::Account => "account",
        },
        "since": gate.created_at.to_rfc3339(),
        "until": gate.ends_at.map(Timestamp::to_rfc3339),
    })
}

/// Parses a scope; accepts names of servers instead of ids.
async fn parse_scope(app: &App, text: &str) -> anyhow::Result<GateScope> {
    if let Some(server) = text.strip_prefix("server:") {
        return Ok(GateScope::Server(app.find_server_id(server).await?));
    }
    GateScope::parse(text).with_context(|| {
        format!(
            "`{text}` is not a scope: use everything, pool:NAME, server:NAME, domain:NAME, lane:POOL/DOMAIN, \
             provider:NAME, path:SOURCE/SITE or source-provider:SOURCE/PROVIDER"
        )
    })
}

/// Refuses a gate on a pool that does not exist, because it would have no effect. `default` is the pool of an
/// installation without pools.
async fn check_pool(app: &App, scope: &GateScope) -> anyhow::Result<()> {
    let (GateScope::Pool(name) | GateScope::Lane { pool: name, .. }) = scope else { return Ok(()) };
    let mut names = app.list_pool_names().await?;
    if names.is_empty() {
        names.push("default".to_owned());
    }
    if !names.contains(name) {
        bail!("there is no pool `{name}`; the pools are: {}", names.join(", "));
    }
    Ok(())
}
