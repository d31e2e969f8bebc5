//! Gates as rows, and the form to set one.

use std::time::Duration;

use postroad_app::queue::GateRequest;
use postroad_model::{GateAction, GateScope, ServerId};
use postroad_store::{Gate, SetBy};

use crate::display::When;
use crate::fields::Fields;

pub(crate) struct GateRow {
    /// Scope as commands and forms name it.
    pub(crate) scope: String,
    /// Scope as text for people.
    pub(crate) scope_words: String,
    pub(crate) action: String,
    pub(crate) reason: String,
    /// Who set the gate.
    pub(crate) set_by: &'static str,
    pub(crate) since: When,
    pub(crate) until: Option<When>,
}

impl GateRow {
    /// A gate as a row; `server` is the server that the page is about.
    pub(crate) fn of(gate: Gate, server: Option<ServerId>) -> Self {
        Self {
            scope_words: scope_words(&gate.scope, server),
            scope: gate.scope.as_text(),
            action: match gate.action {
                GateAction::Suspend => "Stopped".to_owned(),
                GateAction::Slow { per_minute } => format!("{per_minute} a minute"),
            },
            reason: gate.reason,
            set_by: match (gate.automatic, gate.set_by) {
                (true, _) => "Postroad",
                (false, SetBy::Operator) => "the operator",
                (false, SetBy::Account) => "an administrator of the account",
            },
            since: When(gate.created_at),
            until: gate.ends_at.map(When),
        }
    }
}

fn scope_words(scope: &GateScope, server: Option<ServerId>) -> String {
    match scope {
        GateScope::Everything => "All mail of this installation".to_owned(),
        GateScope::Server(id) if Some(*id) == server => "All mail of this server".to_owned(),
        GateScope::Server(id) => format!("Server {id}"),
        GateScope::Pool(name) => format!("Mail from the pool {name}"),
        GateScope::Domain(domain) => format!("Mail to {domain}"),
        GateScope::Lane { pool, domain } => format!("Mail from the pool {pool} to {domain}"),
        GateScope::Provider(name) => format!("Mail to the provider {name}"),
        GateScope::Path { source, site } => format!("Mail from {source} to {site}"),
        GateScope::SourceProvider { source, provider } => {
            format!("Mail from {source} to the provider {provider}")
        }
    }
}

/// Reads the fields `reason`, `per_minute` and `hours`; `per_minute` and `hours` may be empty.
pub(crate) fn read_request(fields: &Fields) -> Result<GateRequest, String> {
    let number = |name: &str, label: &str| match fields.filled(name) {
        None => Ok(None),
        Some(text) => {
            text.parse::<u32>().map(Some).map_err(|_| format!("{label} should be a number, or empty."))
        }
    };
    let action = match number("per_minute", "Messages a minute")? {
        Some(per_minute) => GateAction::Slow { per_minute },
        None => GateAction::Suspend,
    };
    let hours = number("hours", "The number of hours")?;
    let time = hours.map(|hours| Duration::from_hours(u64::from(hours)));
    Ok(GateRequest { action, reason: fields.text("reason").to_owned(), time })
}
