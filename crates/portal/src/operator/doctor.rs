//! Check-up of the installation: store, queue, flight journal, and its own DNS records.

use std::time::Duration;

use askama::Template;
use postroad_app::domains::check::{RecordCheck, RecordStatus};

use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::shown::duration;
use crate::visit::Visit;

/// A message that is due leaves within seconds; after this long something keeps it back.
const LAG_MAX: Duration = Duration::from_mins(5);

struct Finding {
    is_good: bool,
    what: &'static str,
    text: String,
}

struct RecordRow {
    record_type: &'static str,
    name: String,
    value: String,
    is_required: bool,
    status: &'static str,
    tone: &'static str,
    found: Vec<String>,
    hint: Option<String>,
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
    let (host, records) = visit.app().check_installation_records(&visit.by).await?;
    let layout = visit.layout("Check-up", Section::Operator).await?;
    let findings = findings(&visit).await;
    page(&DoctorPage { layout, findings, host, records: records.into_iter().map(record_row).collect() })
}

async fn findings(visit: &Visit) -> Vec<Finding> {
    let written = visit.app().check_store().await;
    let mut findings = vec![Finding {
        is_good: written.is_ok(),
        what: "Database",
        text: match written {
            Ok(()) => "It takes writes.".to_owned(),
            Err(error) => format!("It does not take writes: {error}. Look at its disk and its log."),
        },
    }];
    match visit.state.queue.health(visit.app().now()).await {
        Ok(health) => {
            let is_in_time = health.lag <= LAG_MAX;
            let lag = duration(i64::try_from(health.lag.as_micros()).unwrap_or(i64::MAX));
            findings.push(Finding {
                is_good: is_in_time,
                what: "Queue",
                text: if is_in_time {
                    format!("Messages leave in time: the oldest that is due waits {lag}.")
                } else {
                    format!(
                        "A message has been due for {lag}. The delivery page says what is kept back and why."
                    )
                },
            });
            findings.push(Finding {
                is_good: health.problems.is_empty(),
                what: "Delivery",
                text: if health.problems.is_empty() {
                    "Outcomes can be stored, and the flight journal takes marks.".to_owned()
                } else {
                    format!("{}.", health.problems.join("; "))
                },
            });
        }
        Err(error) => findings.push(Finding { is_good: false, what: "Queue", text: error.to_string() }),
    }
    let bounce_port = visit.state.smtp().and_then(|smtp| smtp.bounce_port);
    findings.push(Finding {
        is_good: bounce_port.is_some(),
        what: "Bounce listener",
        text: match bounce_port {
            Some(port) => format!("It takes bounces, complaints and reports at port {port}."),
            None => "It is off: bounces, complaints and reports do not come in. Set `smtp.bounce_listen`, and publish the MX record below.".to_owned(),
        },
    });
    findings
}

fn record_row(check: RecordCheck) -> RecordRow {
    let (status, tone) = match check.status {
        RecordStatus::Pending => ("Not checked", "calm"),
        RecordStatus::Verified => ("In place", "good"),
        RecordStatus::Missing => ("Missing", if check.required { "bad" } else { "off" }),
        RecordStatus::Mismatch => ("Different", "bad"),
        RecordStatus::Multiple => ("Several found", "bad"),
        RecordStatus::DnsError => ("DNS did not answer", "warn"),
    };
    RecordRow {
        record_type: check.record_type.as_str(),
        name: check.name,
        value: check.value,
        is_required: check.required,
        status,
        tone,
        found: check.found,
        hint: check.hint,
    }
}
