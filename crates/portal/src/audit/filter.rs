//! Filters of the audit log: operation, kind and id of the object (its subject), kind and id of the actor, days.

use postroad_app::access::Operation;
use postroad_app::analytics::Zone;
use postroad_store::{AuditFilter, HiddenActors};

use super::row::kind_words;
use crate::days::DayRange;
use crate::fields::Fields;
use crate::problem::Problem;
use crate::query::query;

/// Kinds of actors: value and label.
const ACTORS: [(&str, &str); 5] = [
    ("user", "People"),
    ("server_key", "Keys of servers"),
    ("account_key", "Account keys"),
    ("operator_key", "Operator keys"),
    ("command_line", "Command line"),
];

/// Kinds of objects.
const SUBJECTS: [&str; 16] = [
    "account",
    "account_key",
    "address",
    "credential",
    "domain",
    "domain_link",
    "gate",
    "invitation",
    "ip_pool",
    "messages",
    "server",
    "setting",
    "suppressions",
    "template",
    "user",
    "webhook",
];

/// An entry of a selection list.
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) label: String,
    pub(super) is_chosen: bool,
}

/// The filters of a query.
pub(super) struct Filters {
    pub(super) operation: String,
    pub(super) actor: String,
    /// Id of one actor of the kind `actor`, such as a person or a key; empty for any.
    pub(super) actor_id: String,
    pub(super) subject: String,
    pub(super) subject_id: String,
    pub(super) days: DayRange,
}

impl Filters {
    pub(super) fn read(fields: &Fields, zone: &Zone) -> Result<Self, Problem> {
        let text = |name: &str| fields.text(name).to_owned();
        let subject_id = text("subject_id");
        if !subject_id.is_empty() && subject_id.parse::<i64>().is_err() {
            return Err(Problem::Invalid(format!("“{subject_id}” should be the id of a thing, a number.")));
        }
        let mut actor_id = text("actor_id");
        if text("actor").is_empty() || actor_id.parse::<i64>().is_err() {
            actor_id.clear();
        }
        let days = DayRange::read(fields, zone);
        Ok(Self {
            operation: text("operation"),
            actor: text("actor"),
            actor_id,
            subject: text("subject"),
            subject_id,
            days,
        })
    }

    pub(super) fn is_set(&self) -> bool {
        !self.operation.is_empty() || !self.actor.is_empty() || self.has_rare_filters()
    }

    /// Whether the section *Thing and days* has a value, so it is shown open.
    pub(super) fn has_rare_filters(&self) -> bool {
        !self.subject.is_empty() || !self.subject_id.is_empty() || self.days.is_open()
    }

    pub(super) fn selection(&self) -> AuditFilter {
        let filled = |text: &str| Some(text).filter(|text| !text.is_empty()).map(ToOwned::to_owned);
        AuditFilter {
            operation: filled(&self.operation),
            subject: filled(&self.subject),
            subject_id: self.subject_id.parse().ok(),
            actor: filled(&self.actor),
            actor_id: self.actor_id.parse().ok(),
            hidden_actors: HiddenActors::default(),
            since: self.days.from(),
            until: self.days.to(),
        }
    }

    /// Query of the list with the entries of one person or key, within the same days.
    pub(super) fn query_of_actor(&self, actor: &str, id: &str) -> String {
        query(&[("actor", actor), ("actor_id", id), ("since", &self.days.since), ("until", &self.days.until)])
    }

    /// Query of the list with the same filters, but for any actor.
    pub(super) fn query_of_anybody(&self) -> String {
        query(&[
            ("operation", &self.operation),
            ("subject", &self.subject),
            ("subject_id", &self.subject_id),
            ("since", &self.days.since),
            ("until", &self.days.until),
        ])
    }

    /// Query of the list with the same filters. If `before` is not empty, only for entries older than that entry.
    pub(super) fn query(&self, before: &str) -> String {
        query(&[
            ("operation", &self.operation),
            ("actor", &self.actor),
            ("actor_id", &self.actor_id),
            ("subject", &self.subject),
            ("subject_id", &self.subject_id),
            ("since", &self.days.since),
            ("until", &self.days.until),
            ("before", before),
        ])
    }

    pub(super) fn actors(&self) -> Vec<Choice> {
        let choice = |(value, label): (&'static str, &str)| Choice {
            value,
            label: label.to_owned(),
            is_chosen: value == self.actor,
        };
        ACTORS.map(choice).into()
    }

    pub(super) fn subjects(&self) -> Vec<Choice> {
        let choice = |value: &'static str| Choice {
            value,
            label: kind_words(value),
            is_chosen: value == self.subject,
        };
        SUBJECTS.map(choice).into()
    }
}

/// Operations to choose from: all except those that only read.
pub(super) fn operations() -> Vec<&'static str> {
    Operation::ALL.iter().filter(|operation| !operation.is_read()).map(|operation| operation.name()).collect()
}
