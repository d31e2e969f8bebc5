//! One domain: the records to publish, what the DNS has instead, and the keys that sign.

use askama::Template;
use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_app::domains::check::{Purpose, RecordStatus};
use postroad_app::domains::{DomainView, RecordView};
use postroad_store::{KeyAlgorithm, KeyState, VerifiedBy};

use crate::answer::{Answer, download, page};
use crate::layout::{Layout, Section};
use crate::shown::When;
use crate::visit::Visit;

struct RecordRow {
    purpose: &'static str,
    why: &'static str,
    record_type: &'static str,
    name: String,
    value: String,
    is_required: bool,
    status: &'static str,
    tone: &'static str,
    found: Vec<String>,
    hint: Option<String>,
    since: Option<When>,
}

struct KeyRow {
    selector: String,
    algorithm: &'static str,
    state: &'static str,
    tone: &'static str,
    created_at: When,
}

#[derive(Template)]
#[template(path = "domains/one.html")]
struct DomainPage {
    layout: Layout,
    server: i64,
    name: String,
    is_verified: bool,
    is_by_operator: bool,
    failing_since: Option<When>,
    is_of_account: bool,
    checked_at: Option<When>,
    next_check_at: When,
    return_path: String,
    tracking_host: String,
    records: Vec<RecordRow>,
    keys: Vec<KeyRow>,
}

pub(super) async fn show(Path((server, name)): Path<(i64, String)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::DomainsGet).await?;
    let view = visit.app().find_domain(&caller, &name).await?;
    let (_, layout) = visit.server_layout(server, view.domain.name.as_str(), Section::Domains).await?;
    page(&domain_page(layout, server, view))
}

pub(super) async fn zone(Path((server, name)): Path<(i64, String)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::DomainsZone).await?;
    let view = visit.app().find_domain(&caller, &name).await?;
    Ok(download("text/plain; charset=utf-8", &format!("{}.zone", view.domain.name), view.zone()))
}

fn domain_page(layout: Layout, server: i64, view: DomainView) -> DomainPage {
    let DomainView { domain, records, return_path, tracking_host } = view;
    let key = |key: &postroad_store::DomainKey| {
        let (state, tone) = match key.state {
            KeyState::Pending => ("Waiting for its record", "warn"),
            KeyState::Active => ("Signs", "good"),
            KeyState::Retiring => ("Retiring", "off"),
        };
        let algorithm = match key.algorithm {
            KeyAlgorithm::Rsa => "RSA",
            KeyAlgorithm::Ed25519 => "Ed25519",
        };
        KeyRow { selector: key.selector.clone(), algorithm, state, tone, created_at: When(key.created_at) }
    };
    DomainPage {
        layout,
        server,
        name: domain.name.to_string(),
        is_verified: domain.verified_by.is_some(),
        is_by_operator: domain.verified_by == Some(VerifiedBy::Operator),
        failing_since: domain.failing_since.map(When),
        is_of_account: domain.server_id.is_none(),
        checked_at: domain.checked_at.map(When),
        next_check_at: When(domain.next_check_at),
        return_path,
        tracking_host,
        records: records.into_iter().map(record_row).collect(),
        keys: domain.keys.iter().map(key).collect(),
    }
}

fn record_row(record: RecordView) -> RecordRow {
    let check = record.check;
    let (status, tone) = match check.status {
        RecordStatus::Pending => ("Not checked yet", "calm"),
        RecordStatus::Verified => ("Verified", "good"),
        RecordStatus::Missing => ("Missing", if check.required { "bad" } else { "off" }),
        RecordStatus::Mismatch => ("Different", "bad"),
        RecordStatus::Multiple => ("Several found", "bad"),
        RecordStatus::DnsError => ("DNS did not answer", "warn"),
    };
    let (purpose, why) = purpose(check.purpose);
    RecordRow {
        purpose,
        why,
        record_type: check.record_type.as_str(),
        name: check.name,
        value: check.value,
        is_required: check.required,
        status,
        tone,
        found: check.found,
        hint: check.hint,
        since: record.since.map(When),
    }
}

fn purpose(purpose: Purpose) -> (&'static str, &'static str) {
    match purpose {
        Purpose::Spf => ("SPF", "lets this service send for the domain"),
        Purpose::Dkim => ("DKIM", "the key that signs your mail, and the proof that the domain is yours"),
        Purpose::Dmarc => ("DMARC", "what receivers do with mail that fails both"),
        Purpose::ReturnPath => ("Return path", "bounces come to your own name"),
        Purpose::Tracking => ("Tracking", "links in tracked mail have your own name"),
        _ => ("Record", ""),
    }
}
