//! Check-up of the installation: database, queue, delivery, certificates, bounce listener, and its own DNS records.

use std::time::Duration;

use askama::Template;
use postroad_app::domains::RecordView;
use postroad_app::domains::check::zone_fragment;
use postroad_delivery::queue_admin::Health;

use super::TABS;
use super::nodes::certificate_troubles;
use crate::answer::{Answer, download, page};
use crate::display::{count, counted, duration, elapsed};
use crate::domains::{RecordRow, record_row};
use crate::layout::{Layout, Section};
use crate::sentence::Sentence;
use crate::visit::Visit;

/// A message that has been due for this long is reported; normally it leaves within seconds.
const LAG_MAX: Duration = Duration::from_mins(5);

const BOUNCES_OFF: &str = "It is off: bounces, complaints and reports do not come in. Set `smtp.bounce_listen`, and publish the \
                           MX record below.";

struct Finding {
    is_good: bool,
    part: &'static str,
    text: Sentence,
}

#[derive(Template)]
#[template(path = "operator/doctor.html")]
struct DoctorPage {
    layout: Layout,
    findings: Vec<Finding>,
    host: String,
    records: Vec<RecordRow>,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let (host, records) = visit.app().check_installation_records(&visit.requester).await?;
    let layout = visit.layout("Check-up", Section::Operator).await?;
    let findings = findings(&visit).await;
    let row = |check| record_row(RecordView { check, since: None, link_host: None });
    let records = records.into_iter().map(row).collect();
    page(&DoctorPage { layout, findings, host, records })
}

/// The records of the installation as a fragment of a zone file.
pub(super) async fn zone(visit: Visit) -> Answer {
    let (host, records) = visit.app().check_installation_records(&visit.requester).await?;
    Ok(download("text/plain; charset=utf-8", &format!("{host}.zone"), zone_fragment(&records)))
}

async fn findings(visit: &Visit) -> Vec<Finding> {
    let mut findings = vec![match visit.app().check_store().await {
        Ok(()) => finding(true, "Database", "It takes writes."),
        Err(error) => finding(
            false,
            "Database",
            format!("It does not take writes: {error}. Look at its disk and its log."),
        ),
    }];
    match visit.state.queue.health(visit.app().now()).await {
        Ok(health) => findings.extend(of_delivery(&health)),
        Err(error) => findings.push(finding(false, "Queue", error.to_string())),
    }
    findings.push(match certificate_troubles(visit).await {
        Ok(troubles) if troubles.is_empty() => {
            finding(true, "Certificates", "Those of the nodes' listeners are good for two weeks or more.")
        }
        Ok(troubles) => finding(false, "Certificates", troubles.join(" ")),
        Err(_) => finding(false, "Certificates", "The nodes cannot be listed: the database does not answer."),
    });
    findings.push(match visit.state.smtp().and_then(|smtp| smtp.bounce_port) {
        Some(port) => {
            let text = format!("It takes bounces, complaints and reports at port {port}.");
            finding(true, "Bounce listener", format!("{text} {}", returned_mail(visit)))
        }
        None => finding(false, "Bounce listener", BOUNCES_OFF),
    });
    findings
}

/// Sentence about the mail that came to this node's bounce listener.
fn returned_mail(visit: &Visit) -> String {
    let counts = visit.app().return_counts();
    let Some(last_at) = counts.last_at else {
        return "Nothing came to this node since it started.".to_owned();
    };
    format!(
        "Since it started, this node took {}, refused {} (about no message or domain of this installation, or \
         unreadable) and put {} off; the last came {} ago.",
        counted(counts.taken, "mail"),
        count(counts.refused),
        count(counts.put_off),
        elapsed(last_at, visit.app().now())
    )
}

fn of_delivery(health: &Health) -> [Finding; 2] {
    let is_in_time = health.lag <= LAG_MAX;
    let lag = duration(i64::try_from(health.lag.as_micros()).unwrap_or(i64::MAX));
    let of_queue = if is_in_time {
        format!("Messages leave in time: the oldest that is due waits {lag}.")
    } else {
        format!("A message has been due for {lag}. The delivery page says what is kept back and why.")
    };
    let of_outcomes = if health.problems.is_empty() {
        "Outcomes can be stored, and the flight journal takes marks.".to_owned()
    } else {
        format!("{}.", health.problems.join("; "))
    };
    [finding(is_in_time, "Queue", of_queue), finding(health.problems.is_empty(), "Delivery", of_outcomes)]
}

fn finding(is_good: bool, part: &'static str, text: impl Into<String>) -> Finding {
    Finding { is_good, part, text: Sentence(text.into()) }
}
