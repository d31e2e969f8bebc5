//! Health of a server: figures compared with their limits, and problems with a remedy for each.

use std::time::Duration;

use postroad_app::CERTIFICATE_WARNING_TIME;
use postroad_app::access::Operation;
use postroad_app::analytics::{Metric, SummaryQuery};
use postroad_app::domains::{DomainSelection, DomainState, DomainView, LinkHostCheck};
use postroad_app::ip_pools::{PoolFilter, WarmUpState};
use postroad_model::{GateScope, Timestamp};
use postroad_store::{Server, ServerQueue};

use crate::analytics::{BOUNCE_RATE_MAX, COMPLAINT_RATE_MAX, JUDGED_MESSAGES_MIN};
use crate::display::{count, elapsed, percent};
use crate::operator::certificate_troubles;
use crate::problem::Problem;
use crate::sentence::Sentence;
use crate::visit::Visit;

const DAY: Duration = Duration::from_hours(24);
/// A message that has been due for this long is reported; normally it leaves within seconds.
const WAIT_MAX: Duration = Duration::from_mins(15);
/// A webhook that has been failing for this long is reported; failed posts are repeated automatically.
const FAILING_MIN: Duration = Duration::from_mins(1);
/// Maximum number of domains with wrong records that are named; a link leads to the others.
const FAILING_DOMAINS_MAX: usize = 5;
/// Maximum number of webhooks, and of domains, that are examined for problems.
const EXAMINED_MAX: usize = 200;
const POOLS_MAX: usize = 50;

pub(super) struct Figure {
    pub(super) label: String,
    pub(super) value: String,
    pub(super) note: String,
    /// CSS class: `bad` if the value is beyond its limit.
    pub(super) tone: &'static str,
    /// Page with the details.
    pub(super) path: String,
}

pub(super) struct Trouble {
    pub(super) text: Sentence,
    /// Remedy, as the text of a link.
    pub(super) action: &'static str,
    pub(super) path: String,
}

pub(super) struct Health {
    pub(super) figures: Vec<Figure>,
    pub(super) troubles: Vec<Trouble>,
    /// Sentences about addresses that warm up.
    pub(super) warm_ups: Vec<String>,
}

pub(super) async fn read(visit: &Visit, server: &Server) -> Result<Health, Problem> {
    let id = server.id.0;
    let mut health = Health { figures: Vec::new(), troubles: Vec::new(), warm_ups: Vec::new() };
    health.add_rates(visit, id).await?;
    health.add_queue(visit, id).await?;
    health.add_domains(visit, id).await?;
    health.add_webhooks(visit, id).await?;
    health.add_warm_ups(visit, server).await?;
    health.add_certificates(visit).await?;
    Ok(health)
}

/// Figures of a server for the list of servers, and the number of its problems.
#[derive(Default)]
pub(super) struct HealthSummary {
    pub(super) figures: Vec<Figure>,
    pub(super) problems: usize,
}

/// Like `read`, but without warm-ups, certificates and link hosts, because a list shows many servers.
pub(super) async fn read_summary(visit: &Visit, id: i64) -> Result<HealthSummary, Problem> {
    let mut health = Health { figures: Vec::new(), troubles: Vec::new(), warm_ups: Vec::new() };
    health.add_rates(visit, id).await?;
    health.add_queue(visit, id).await?;
    health.add_failing_domains(visit, id).await?;
    health.add_webhooks(visit, id).await?;
    Ok(HealthSummary { figures: health.figures, problems: health.troubles.len() })
}

impl Health {
    fn add_trouble(&mut self, text: String, action: &'static str, path: String) {
        self.troubles.push(Trouble { text: Sentence(text), action, path });
    }

    async fn add_rates(&mut self, visit: &Visit, id: i64) -> Result<(), Problem> {
        let caller = visit.caller(id, Operation::AnalyticsSummary).await?;
        let to = visit.app().now();
        let query = SummaryQuery {
            from: Some(to.minus(DAY)),
            to: Some(to),
            filters: Vec::new(),
            include_bots: false,
        };
        let summary = visit.app().analytics_summary(&caller, &query).await?;
        let (figures, rates) = (&summary.figures, summary.figures.rates());
        let is_judged = figures.count(Metric::Accepted) >= JUDGED_MESSAGES_MIN;
        let is_over = |rate: Option<f64>, max: f64| is_judged && rate.is_some_and(|rate| rate > max);
        let analytics = format!("/servers/{id}/analytics");
        let messages = |query: &str| format!("/servers/{id}/messages{query}");
        let figure = |label: &str, value: String, note: String, is_bad: bool, path: String| Figure {
            label: label.to_owned(),
            value,
            note,
            tone: if is_bad { "bad" } else { "" },
            path,
        };
        let counted = |metric| count(figures.count(metric));
        let (has_many_bounces, has_many_complaints) =
            (is_over(rates.bounce, BOUNCE_RATE_MAX), is_over(rates.complaint, COMPLAINT_RATE_MAX));
        self.figures.extend([
            figure("Accepted", counted(Metric::Accepted), String::new(), false, messages("")),
            figure(
                "Delivered",
                counted(Metric::Sent),
                percent(rates.delivery),
                false,
                messages("?status=Sent"),
            ),
            figure(
                "Bounce rate",
                percent(rates.bounce),
                "keep below 4\u{a0}%".to_owned(),
                has_many_bounces,
                format!("{analytics}?by=bounce_class"),
            ),
            figure(
                "Complaint rate",
                percent(rates.complaint),
                "keep below 0.08\u{a0}%".to_owned(),
                has_many_complaints,
                format!("/servers/{id}/suppressions?reason=complaint"),
            ),
            figure("Held", counted(Metric::Held), String::new(), false, messages("?tab=held")),
        ]);
        if has_many_bounces {
            self.add_trouble(
                format!("{} of the last day's mail bounced; receivers begin to distrust a sender above 4 %. Remove addresses that were bought, guessed or are old.", percent(rates.bounce)),
                "See the reasons",
                format!("{analytics}?by=bounce_class"),
            );
        }
        if has_many_complaints {
            self.add_trouble(
                format!("{} of the last day's recipients complained; Gmail and Yahoo ask for less than 0.1 %, and may refuse mail from 0.3 %. Send only to people who expect it, with an unsubscribe link.", percent(rates.complaint)),
                "See who complained",
                format!("/servers/{id}/suppressions?reason=complaint"),
            );
        }
        Ok(())
    }

    async fn add_queue(&mut self, visit: &Visit, id: i64) -> Result<(), Problem> {
        let caller = visit.caller(id, Operation::QueueList).await?;
        let (app, now) = (visit.app(), visit.app().now());
        let path = format!("/servers/{id}/queue");
        let totals: ServerQueue = app.count_queue_as(&caller).await?;
        let overdue_since = totals.oldest_due_at.filter(|at| now.since(*at) > WAIT_MAX);
        let more = if totals.has_more { "> " } else { "" };
        self.figures.push(Figure {
            label: "Waiting".to_owned(),
            value: format!("{more}{}", count(totals.total)),
            note: totals.oldest_due_at.map(|at| format!("longest {}", elapsed(at, now))).unwrap_or_default(),
            tone: if overdue_since.is_some() { "bad" } else { "" },
            path: path.clone(),
        });
        if let Some(at) = overdue_since {
            self.add_trouble(
                format!("A message has been due for {}.", elapsed(at, now)),
                "See why it waits",
                path.clone(),
            );
        }
        for gate in app.list_gates_as(&caller).await? {
            let effect = match &gate.scope {
                GateScope::Server(_) => "Sending is stopped or slowed by a gate".to_owned(),
                GateScope::Everything => "The operator has stopped or slowed all sending".to_owned(),
                GateScope::Domain(domain) => format!("Mail to {domain} is stopped or slowed"),
                GateScope::Provider(name) => format!("Mail to the provider {name} is stopped or slowed"),
                GateScope::Pool(name) => {
                    format!("Mail from the pool {name}, which this server uses, is stopped or slowed")
                }
                GateScope::Lane { pool, domain } => {
                    format!("Mail from the pool {pool} to {domain} is stopped or slowed")
                }
                // Gates of single addresses are not listed for a server.
                GateScope::Path { .. } | GateScope::SourceProvider { .. } => continue,
            };
            self.add_trouble(format!("{effect}: {}", gate.reason), "Open the queue", path.clone());
        }
        Ok(())
    }

    async fn add_domains(&mut self, visit: &Visit, id: i64) -> Result<(), Problem> {
        self.add_failing_domains(visit, id).await?;
        let caller = visit.caller(id, Operation::DomainsList).await?;
        let (domains, _) = visit.app().list_domains(&caller, None, EXAMINED_MAX).await?;
        let now = visit.app().now();
        for view in &domains {
            self.add_link_host(id, view, now);
        }
        Ok(())
    }

    async fn add_failing_domains(&mut self, visit: &Visit, id: i64) -> Result<(), Problem> {
        let caller = visit.caller(id, Operation::DomainsList).await?;
        let (app, now) = (visit.app(), visit.app().now());
        let failing = DomainSelection { state: Some(DomainState::Failing), ..DomainSelection::default() };
        let (found, more) = app
            .search_domains_as(&caller.requester(), (&caller).into(), &failing, None, FAILING_DOMAINS_MAX)
            .await?;
        for domain in found.iter().map(|view| &view.domain) {
            let (name, since) = (&domain.name, domain.failing_since.unwrap_or(now));
            self.add_trouble(
                format!("The DNS records of {name} have been wrong for {}. Mail from it will be refused or land in spam.", elapsed(since, now)),
                "See the records",
                format!("/servers/{id}/domains/{name}"),
            );
        }
        if more.is_some() {
            let list = format!("/servers/{id}/domains?state={}", DomainState::Failing.as_str());
            self.add_trouble("The DNS records of more domains are wrong.".to_owned(), "See them all", list);
        }
        Ok(())
    }

    /// Adds problems of the domain's own tracking host.
    fn add_link_host(&mut self, id: i64, view: &DomainView, now: Timestamp) {
        let name = &view.domain.name;
        let host = view.records.iter().find_map(|record| record.link_host.as_ref());
        let Some(LinkHostCheck { problem, certificate_expires_at }) = host else { return };
        let path = format!("/servers/{id}/domains/{name}");
        if let Some(problem) = problem {
            let text = format!("Links in mail from {name} do not lead to its own host: {problem}.");
            self.add_trouble(text, "See the records", path);
        } else if let Some(at) = certificate_expires_at.filter(|at| *at <= now.plus(CERTIFICATE_WARNING_TIME))
        {
            let text = format!(
                "The certificate of track.{name} expires at {}; browsers refuse links in your mail from then on. Whoever runs \
                 this service has to renew it.",
                at.to_rfc3339()
            );
            self.add_trouble(text, "See the records", path);
        }
    }

    /// Adds problems of the certificates of the installation's listeners, which only the operator can renew.
    async fn add_certificates(&mut self, visit: &Visit) -> Result<(), Problem> {
        if visit.person.user.operator {
            for text in certificate_troubles(visit).await? {
                self.add_trouble(text, "See the nodes", "/operator/nodes".to_owned());
            }
        }
        Ok(())
    }

    async fn add_webhooks(&mut self, visit: &Visit, id: i64) -> Result<(), Problem> {
        let caller = visit.caller(id, Operation::WebhooksList).await?;
        let (webhooks, _) = visit.app().list_webhooks(&caller, None, None, EXAMINED_MAX).await?;
        let now = visit.app().now();
        for webhook in webhooks {
            let path = format!("/servers/{id}/webhooks/{}", webhook.id);
            if let Some(reason) = webhook.disabled_reason.filter(|_| !webhook.enabled) {
                self.add_trouble(
                    format!("The webhook {} was switched off: {reason}", webhook.url),
                    "Open it",
                    path,
                );
            } else if let Some(since) = webhook.failing_since.filter(|at| now.since(*at) > FAILING_MIN) {
                self.add_trouble(
                    format!(
                        "The webhook {} has been failing for {}; events wait.",
                        webhook.url,
                        elapsed(since, now)
                    ),
                    "See its attempts",
                    path,
                );
            }
        }
        Ok(())
    }

    /// Adds warm-ups in the pool that the server sends from.
    async fn add_warm_ups(&mut self, visit: &Visit, server: &Server) -> Result<(), Problem> {
        let account = Some(server.account_id);
        let filter = PoolFilter { account, ..PoolFilter::default() };
        let (pools, _) = visit.app().list_ip_pools(&visit.requester, filter, None, POOLS_MAX).await?;
        let used = pools.iter().filter(|view| match server.pool_id {
            Some(own) => view.pool.id == own,
            None => view.pool.shared,
        });
        for address in used.flat_map(|view| &view.addresses) {
            let (source, day) = (&address.source, address.warm_up_day.unwrap_or(1));
            match address.warm_up {
                WarmUpState::Running => {
                    self.warm_ups.push(format!("{} is on day {day} of its warm-up", source.address));
                }
                WarmUpState::Paused => {
                    let reason = source.warmup_paused_reason.as_deref().unwrap_or("by hand");
                    self.add_trouble(
                        format!("The warm-up of {} is paused on day {day}: {reason}", source.address),
                        "Open IP pools",
                        "/account/pools".to_owned(),
                    );
                }
                WarmUpState::None | WarmUpState::Done => {}
            }
        }
        Ok(())
    }
}
