//! Audit entries as rows: names of people and objects, links, and the fields that differ.

use postroad_app::accounts::{ActorName, NamedAuditEntry, SubjectName};
use postroad_store::AuditEntry;
use serde_json::Value;

use crate::display::When;
use crate::sentence::Sentence;
use crate::text_budget::TextBudget;

/// Longer values are cut; the export has them in full.
const VALUE_BYTES_MAX: usize = 500;
/// Longer names are cut.
const NAME_BYTES_MAX: usize = 300;
/// Maximum number of fields shown for one entry.
const FIELDS_MAX: usize = 40;

/// A field before and after a change.
pub(super) struct Difference {
    pub(super) name: String,
    pub(super) before: Sentence,
    pub(super) after: Sentence,
}

pub(super) struct Row {
    pub(super) at: When,
    pub(super) actor: String,
    /// Kind and id of the person or key, unless the reader may not know who it was.
    pub(super) one_actor: Option<(String, String)>,
    pub(super) address: String,
    pub(super) operation: String,
    /// Kind of the object, in words.
    pub(super) kind: String,
    pub(super) name: String,
    /// Page of the object, if the object has one and still exists.
    pub(super) path: Option<String>,
    /// Name and page of the server that the object belongs to.
    pub(super) server: Option<(String, String)>,
    pub(super) differences: Vec<Difference>,
}

/// An entry as a row. `is_own` is false for the log of another account or of the installation: then the account,
/// people, account keys and pools in the entry have no link.
pub(super) fn row(named: NamedAuditEntry, is_own: bool, budget: &mut TextBudget) -> Row {
    let NamedAuditEntry { entry, actor, subject } = named;
    let path = subject_path(&entry, &subject, is_own).filter(|_| subject.exists);
    let is_known = !matches!(actor, ActorName::Operator | ActorName::CommandLine);
    let one_actor = entry.actor_id.filter(|_| is_known).map(|id| (entry.actor.clone(), id.to_string()));
    let is_server = entry.subject == "server";
    Row {
        at: When(entry.at),
        actor: budget.cut(&actor_words(actor), NAME_BYTES_MAX),
        one_actor,
        address: entry.address.unwrap_or_default(),
        operation: entry.operation,
        kind: kind_words(&entry.subject),
        name: budget.cut(&subject.name, NAME_BYTES_MAX),
        path,
        server: subject
            .server
            .filter(|_| !is_server)
            .map(|(id, name)| (budget.cut(&name, NAME_BYTES_MAX), format!("/servers/{id}"))),
        differences: differences(entry.before.as_ref(), entry.after.as_ref(), budget),
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

pub(super) fn kind_words(kind: &str) -> String {
    match kind {
        "credential" => "key".to_owned(),
        "ip_pool" => "IP pool".to_owned(),
        "user" => "person".to_owned(),
        other => other.replace('_', " "),
    }
}

/// Page of an object, or of the list that contains it.
fn subject_path(entry: &AuditEntry, subject: &SubjectName, is_own: bool) -> Option<String> {
    let of_account = match entry.subject.as_str() {
        "account" => "/account",
        "account_key" => "/account/keys",
        "user" | "invitation" => "/account/people",
        "ip_pool" | "address" => "/account/pools",
        _ => "",
    };
    if !of_account.is_empty() {
        return is_own.then(|| of_account.to_owned());
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
fn differences(before: Option<&Value>, after: Option<&Value>, budget: &mut TextBudget) -> Vec<Difference> {
    let object = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (before, after) = (object(before), object(after));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut text = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => budget.cut(text, VALUE_BYTES_MAX),
        Some(other) => budget.cut(&other.to_string(), VALUE_BYTES_MAX),
    };
    let is_different = |name: &&String| before.get(*name) != after.get(*name);
    names
        .into_iter()
        .filter(is_different)
        .take(FIELDS_MAX)
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
    fn only_fields_that_differ_are_shown() {
        let before = serde_json::json!({ "name": "a", "mode": "live", "version": 1 });
        let after = serde_json::json!({ "name": "b", "mode": "live", "version": 2 });
        let found = differences(Some(&before), Some(&after), &mut TextBudget::default());
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["name", "version"]);
        assert_eq!((found[0].before.0.as_str(), found[0].after.0.as_str()), ("a", "b"));
    }

    #[test]
    fn actors_are_shown_by_name() {
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
