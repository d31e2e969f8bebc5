//! Settings of a server that its own key may read and change. Changes by the account use the same checks.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{Change, DomainName, SendRate, ServerId, ServerMode};
use postroad_store::{AuditSubject, Ceiling, Server, ServerChange, ServerUpdateResult, SetBy, StoreError};

use crate::access::Operation;
use crate::accounts::AccountRefusal;
use crate::{App, Caller, FieldProblem, Refusal, Retention, names};

const EXCLUDED_HOSTS_MAX: usize = 100;
/// Longest retention in days: a hundred years.
const RETENTION_DAYS_MAX: u64 = 36_500;
const DAY_SECS: u64 = 24 * 3_600;

/// Requested changes, not checked yet; `None` and `Change::Keep` keep a setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerChangeRequest {
    pub name: Option<String>,
    pub mode: Option<String>,
    pub send_rate: Change<String>,
    pub hourly_limit: Change<i64>,
    pub track_opens: Option<bool>,
    pub track_clicks: Option<bool>,
    pub track_excluded_hosts: Option<Vec<String>>,
    pub bodies_days: Change<i64>,
    pub messages_days: Change<i64>,
}

#[boxed_futures]
impl App {
    pub async fn find_server_of_key(&self, id: ServerId) -> Result<Server, Refusal> {
        let found = self.inner.store.find_server(id).await?;
        let found = found.ok_or_else(|| Refusal::Internal(format!("there is no server {id}")))?;
        Ok(self.with_installation_ceilings(found))
    }

    /// Adds the installation's retention as a ceiling.
    fn with_installation_ceilings(&self, mut server: Server) -> Server {
        let Retention { bodies, messages, .. } = &self.inner.retention;
        let lower = |ceiling: Option<u32>, kept: Option<Duration>| {
            let days = kept.and_then(|kept| u32::try_from(kept.as_secs() / DAY_SECS).ok());
            ceiling.into_iter().chain(days).min()
        };
        server.ceilings.bodies_days = lower(server.ceilings.bodies_days, *bodies);
        server.ceilings.messages_days = lower(server.ceilings.messages_days, *messages);
        server
    }

    /// Applies all changes, or none if any is invalid or above a ceiling. Changes take effect at once on this node, and
    /// within seconds on other nodes.
    pub async fn update_server_of_key(
        &self,
        caller: &Caller,
        if_version: Option<i64>,
        request: ServerChangeRequest,
    ) -> Result<Server, AccountRefusal> {
        let id = caller.server_id;
        let change = check(request, &self.inner.retention).map_err(Refusal::Validation)?;
        let by = caller.requester();
        let store = self.audited_store(&by, Operation::ServerUpdate, AuditSubject::Server(id));
        let changed = store.update_server(id, if_version, change).await;
        self.forget_setup();
        match changed {
            Ok(ServerUpdateResult::Done(server)) => Ok(self.with_installation_ceilings(*server)),
            Ok(ServerUpdateResult::OtherVersion(version)) => Err(AccountRefusal::OtherVersion(version)),
            Ok(ServerUpdateResult::Exceeds(ceilings)) => {
                Err(Refusal::CeilingExceeded(ceilings.into_iter().map(ceiling_problem).collect()).into())
            }
            Err(StoreError::Conflict) => {
                Err(AccountRefusal::problem("name", "is the name of another server of the account"))
            }
            Err(other) => Err(other.into()),
        }
    }
}

/// Problem of a setting that exceeds a ceiling, with a pointer to its field.
pub(crate) fn ceiling_problem((ceiling, owner): (Ceiling, SetBy)) -> FieldProblem {
    let (field, text) = match ceiling {
        Ceiling::Mode(mode) => ("mode", format!("may only be `{mode}`")),
        Ceiling::SendRate(rate) => ("send_rate", format!("may be at most `{rate}`")),
        Ceiling::HourlyLimit(limit) => ("hourly_limit", format!("may be at most {limit}")),
        Ceiling::BodiesDays(days) => ("retention/bodies_days", format!("may be at most {days}")),
        Ceiling::MessagesDays(days) => ("retention/messages_days", format!("may be at most {days}")),
    };
    let owner = match owner {
        SetBy::Operator => "the operator of the service",
        SetBy::Account => "the account",
    };
    FieldProblem::new(format!("/{field}"), format!("`{field}` {text}: {owner} set this ceiling"))
}

pub(crate) fn check(
    request: ServerChangeRequest,
    installation: &Retention,
) -> Result<ServerChange, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let mut problem = |pointer: &str, message: &str| problems.push(FieldProblem::new(pointer, message));
    if let Some(text) = request.name.as_deref().and_then(names::find_problem) {
        problem("/name", &format!("`name` {text}"));
    }
    let mode = request.mode.as_deref().and_then(ServerMode::parse);
    if request.mode.is_some() && mode.is_none() {
        problem("/mode", "`mode` should be `live` or `development`");
    }
    let send_rate = request.send_rate.and_then(|text| SendRate::parse(&text)).unwrap_or_else(|| {
        problem("/send_rate", "`send_rate` should be a rate such as `10/s`, `100/m` or `1000/h`, or `none`");
        Change::Keep
    });
    let hourly_limit =
        request.hourly_limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or_else(|| {
            problem("/hourly_limit", "`hourly_limit` should be from 0 to 4294967295, or `none`");
            Change::Keep
        });
    let bodies_days = check_days("bodies_days", request.bodies_days, installation.bodies, &mut problem);
    let messages_days =
        check_days("messages_days", request.messages_days, installation.messages, &mut problem);
    let hosts = request.track_excluded_hosts.map(|hosts| check_hosts(&hosts, &mut problem));
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(ServerChange {
        name: request.name.map(|name| name.trim().to_owned()),
        mode,
        send_rate,
        hourly_limit,
        track_opens: request.track_opens,
        track_clicks: request.track_clicks,
        track_excluded_hosts: hosts,
        bodies_days,
        messages_days,
        pool: None,
    })
}

/// Checks a retention period in days: a server may keep its mail for a shorter time than the installation, not longer.
pub(crate) fn check_days(
    name: &str,
    request: Change<i64>,
    period_max: Option<Duration>,
    problem: &mut impl FnMut(&str, &str),
) -> Change<u32> {
    let days_max =
        period_max.map_or(RETENTION_DAYS_MAX, |max| (max.as_secs() / DAY_SECS).min(RETENTION_DAYS_MAX));
    let fits = |days: i64| u32::try_from(days).ok().filter(|days| u64::from(*days) <= days_max);
    request.and_then(fits).unwrap_or_else(|| {
        let message = format!("`retention/{name}` should be from 0 to {days_max}, or `none`");
        problem(&format!("/retention/{name}"), &message);
        Change::Keep
    })
}

fn check_hosts(hosts: &[String], problem: &mut impl FnMut(&str, &str)) -> Vec<String> {
    let pointer = "/tracking/excluded_hosts";
    if hosts.len() > EXCLUDED_HOSTS_MAX {
        problem(pointer, "`tracking/excluded_hosts` should have at most 100 names");
        return Vec::new();
    }
    let mut names: Vec<String> = Vec::new();
    for (at, host) in hosts.iter().enumerate() {
        // `*.example.com` matches every subdomain of `example.com`.
        let (star, name) = match host.trim().strip_prefix("*.") {
            Some(name) => ("*.", name),
            None => ("", host.trim()),
        };
        match DomainName::parse(name).map(|name| format!("{star}{name}")) {
            Ok(name) if names.contains(&name) => {}
            Ok(name) => names.push(name),
            Err(error) => {
                let message = format!("`tracking/excluded_hosts/{at}` is not a host name: {error}");
                problem(&format!("{pointer}/{at}"), &message);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_settings_are_checked_and_the_others_stay() {
        let check = |request| check(request, &Retention::default());
        assert_eq!(check(ServerChangeRequest::default()), Ok(ServerChange::default()));
        let request = ServerChangeRequest {
            name: Some(" shop ".into()),
            mode: Some("development".into()),
            send_rate: Change::Set("10/s".into()),
            hourly_limit: Change::Clear,
            bodies_days: Change::Set(0),
            messages_days: Change::Set(90),
            track_excluded_hosts: Some(vec![
                "WWW.Bücher.example".into(),
                "www.xn--bcher-kva.example".into(),
                "*.Example.com".into(),
            ]),
            ..ServerChangeRequest::default()
        };
        let change = check(request).unwrap();
        assert_eq!((change.name.as_deref(), change.mode), (Some("shop"), Some(ServerMode::Development)));
        assert_eq!(change.send_rate, Change::Set(SendRate::parse("10/s").unwrap()));
        assert_eq!(change.hourly_limit, Change::Clear);
        assert_eq!((change.bodies_days, change.messages_days), (Change::Set(0), Change::Set(90)));
        assert_eq!(
            change.track_excluded_hosts,
            Some(vec!["www.xn--bcher-kva.example".to_owned(), "*.example.com".to_owned()])
        );
        assert_eq!(change.track_opens, None);
    }

    #[test]
    fn all_problems_are_reported_together() {
        let request = ServerChangeRequest {
            name: Some("a/b".into()),
            mode: Some("test".into()),
            send_rate: Change::Set("0/s".into()),
            hourly_limit: Change::Set(-1),
            bodies_days: Change::Set(31),
            messages_days: Change::Set(-1),
            track_excluded_hosts: Some(vec!["example.com".into(), "https://x".into()]),
            ..ServerChangeRequest::default()
        };
        let problems = check(request, &Retention::default()).unwrap_err();
        let pointers: Vec<String> = problems.into_iter().map(|p| p.pointer).collect();
        let expected = [
            "/name",
            "/mode",
            "/send_rate",
            "/hourly_limit",
            "/retention/bodies_days",
            "/retention/messages_days",
            "/tracking/excluded_hosts/1",
        ];
        assert_eq!(pointers, expected);
    }
}
