//! DNS records of a domain as rows.

use postroad_app::domains::RecordView;
use postroad_app::domains::check::{Purpose, RecordStatus};

use crate::shown::When;

pub(super) struct RecordRow {
    pub(super) purpose: &'static str,
    pub(super) why: &'static str,
    pub(super) record_type: &'static str,
    pub(super) name: String,
    pub(super) value: String,
    pub(super) is_required: bool,
    pub(super) status: &'static str,
    pub(super) tone: &'static str,
    pub(super) found: Vec<String>,
    pub(super) hint: Option<String>,
    pub(super) since: Option<When>,
}

pub(super) fn record_row(record: RecordView) -> RecordRow {
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
