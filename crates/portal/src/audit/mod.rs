//! Audit log of the account: who changed what, when, and from where.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::routing::get;
use postroad_app::accounts::{ActorName, NamedAuditEntry, SubjectName};
use postroad_store::{AuditEntry, AuditFilter};
use serde_json::Value;

use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::query::query;
use crate::sentence::Sentence;
use crate::shown::{When, beginning};
use crate::state::PortalState;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;
/// Longest value that is shown.
const VALUE_BYTES_MAX: usize = 500;

/// A field before and after a change.
struct Difference {
    name: String,
    before: Sentence,
    after: Sentence,
}

struct Row {
    at: When,
    actor: String,
    address: String,
    operation: String,
    /// Kind of the thing, in words.
    kind: String,
    name: String,
    /// Its page, if it has one and still exists.
    path: Option<String>,
    /// Name and page of the server that it belongs to.
    server: Option<(String, String)>,
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
    let (entries, has_more) =
        visit.app().list_named_audit(&visit.by, account, filter, before, PAGE_ROWS).await?;
    let next = entries.last().filter(|_| has_more);
    let next = next.map(|last| query(&[("operation", &operation), ("before", &last.entry.seq.to_string())]));
    page(&AuditPage { layout, rows: entries.into_iter().map(row).collect(), next, operation })
}

fn row(named: NamedAuditEntry) -> Row {
    let NamedAuditEntry { entry, actor, subject } = named;
    let path = subject_path(&entry, &subject).filter(|_| subject.exists);
    let is_server = entry.subject == "server";
    Row {
        at: When(entry.at),
        actor: actor_words(actor),
        address: entry.address.unwrap_or_default(),
        operation: entry.operation,
        kind: kind_words(&entry.subject),
        name: subject.name,
        path,
        server: subject.server.filter(|_| !is_server).map(|(id, name)| (name, format!("/servers/{id}"))),
        differences: differences(entry.before.as_ref(), entry.after.as_ref()),
    }
}

fn actor_words(actor: ActorName) -> String {
    let key =
        |name: &str| if name.is_empty() { "a key without a name".to_owned() } else { format!("key {name}") };
    match actor {
        ActorName::CommandLine => "operator on host".to_owned(),
        ActorName::Operator => "operator".to_owned(),
        ActorName::OperatorKey(name) => format!("operator, {}", key(&name)),
        ActorName::Person { name, email } if name.is_empty() => email,
        ActorName::Person { name, email } => format!("{name} ({email})"),
        ActorName::FormerPerson { email: Some(email) } => format!("{email}, removed since"),
        ActorName::FormerPerson { email: None } => "somebody who was removed since".to_owned(),
        ActorName::AccountKey(name) => format!("account {}", key(&name)),
        ActorName::ServerKey { name, server: Some(server) } => format!("{} of {server}", key(&name)),
        ActorName::ServerKey { name, server: None } => key(&name),
        ActorName::FormerKey => "a key that is gone".to_owned(),
    }
}

fn kind_words(kind: &str) -> String {
    match kind {
        "credential" => "key".to_owned(),
        "ip_pool" => "IP pool".to_owned(),
        "user" => "person".to_owned(),
        other => other.replace('_', " "),
    }
}

/// The page of a thing, or the list that it is on.
fn subject_path(entry: &AuditEntry, subject: &SubjectName) -> Option<String> {
    let of_account = match entry.subject.as_str() {
        "account" => "/account",
        "account_key" => "/account/keys",
        "user" | "invitation" => "/account/people",
        "ip_pool" | "address" => "/account/pools",
        _ => "",
    };
    if !of_account.is_empty() {
        return Some(of_account.to_owned());
    }
    let (server, _) = subject.server.as_ref()?;
    let name = &subject.name;
    let page = match (entry.subject.as_str(), entry.subject_id) {
        ("server", _) => String::new(),
        ("credential", _) => "/keys".to_owned(),
        ("domain" | "domain_link", _) => format!("/domains/{name}"),
        ("webhook", Some(id)) => format!("/webhooks/{id}"),
        ("template", Some(id)) => format!("/templates/{id}"),
        ("suppressions", _) => "/suppressions".to_owned(),
        ("messages", _) => "/messages".to_owned(),
        ("gate", _) => "/queue".to_owned(),
        _ => return None,
    };
    Some(format!("/servers/{server}{page}"))
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
            before: Sentence(text(before.get(name))),
            after: Sentence(text(after.get(name))),
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
        assert_eq!((found[0].before.0.as_str(), found[0].after.0.as_str()), ("a", "b"));
    }

    #[test]
    fn people_and_keys_have_names() {
        let person =
            |name: &str| ActorName::Person { name: name.to_owned(), email: "anna@shop.example".to_owned() };
        assert_eq!(actor_words(person("Anna Berg")), "Anna Berg (anna@shop.example)");
        assert_eq!(actor_words(person("")), "anna@shop.example");
        let key = |server: Option<&str>| ActorName::ServerKey {
            name: "deploy".to_owned(),
            server: server.map(ToOwned::to_owned),
        };
        assert_eq!(
            (actor_words(key(Some("live"))), actor_words(key(None))),
            ("key deploy of live".into(), "key deploy".into())
        );
        assert_eq!(actor_words(ActorName::CommandLine), "operator on host");
    }
}
