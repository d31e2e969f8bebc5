//! Audit log of the account: who changed what, when, and from where.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::routing::get;
use postroad_store::{AuditEntry, AuditFilter};
use serde_json::Value;

use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::query::query;
use crate::shown::{When, beginning};
use crate::state::PortalState;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;
/// Longest value that is shown.
const VALUE_BYTES_MAX: usize = 500;

/// A field before and after a change.
struct Difference {
    name: String,
    before: String,
    after: String,
}

struct Row {
    at: When,
    actor: String,
    address: String,
    operation: String,
    subject: String,
    differences: Vec<Difference>,
}

#[derive(Template)]
#[template(path = "audit/list.html")]
struct AuditPage {
    layout: Layout,
    rows: Vec<Row>,
    next: Option<String>,
    operation: String,
}

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new().route("/account/audit", get(show))
}

async fn show(visit: Visit) -> Answer {
    let layout = visit.layout("Audit log", Section::Audit).await?;
    let operation = visit.query.text("operation").to_owned();
    let filter = AuditFilter {
        operation: Some(operation.clone()).filter(|text| !text.is_empty()),
        ..AuditFilter::default()
    };
    let account = Some(visit.person.user.account_id);
    let before = visit.query.number("before");
    let (entries, has_more) = visit.app().list_audit(&visit.by, account, filter, before, PAGE_ROWS).await?;
    let next = entries.last().filter(|_| has_more);
    let next = next.map(|last| query(&[("operation", &operation), ("before", &last.seq.to_string())]));
    page(&AuditPage { layout, rows: entries.into_iter().map(row).collect(), next, operation })
}

fn row(entry: AuditEntry) -> Row {
    let with_id =
        |name: String, id: Option<i64>| id.map_or_else(|| name.clone(), |id| format!("{name} {id}"));
    Row {
        at: When(entry.at),
        actor: with_id(entry.actor.replace('_', " "), entry.actor_id),
        address: entry.address.unwrap_or_default(),
        operation: entry.operation,
        subject: with_id(entry.subject.replace('_', " "), entry.subject_id),
        differences: differences(entry.before.as_ref(), entry.after.as_ref()),
    }
}

/// Fields that differ.
fn differences(before: Option<&Value>, after: Option<&Value>) -> Vec<Difference> {
    let object = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (before, after) = (object(before), object(after));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let text = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => beginning(text, VALUE_BYTES_MAX).to_owned(),
        Some(other) => beginning(&other.to_string(), VALUE_BYTES_MAX).to_owned(),
    };
    let is_different = |name: &&String| before.get(*name) != after.get(*name);
    names
        .into_iter()
        .filter(is_different)
        .map(|name| Difference {
            name: name.clone(),
            before: text(before.get(name)),
            after: text(after.get(name)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_shown() {
        let before = serde_json::json!({ "name": "a", "mode": "live", "version": 1 });
        let after = serde_json::json!({ "name": "b", "mode": "live", "version": 2 });
        let found = differences(Some(&before), Some(&after));
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["name", "version"]);
        assert_eq!((found[0].before.as_str(), found[0].after.as_str()), ("a", "b"));
    }
}
