//! DNS records of a domain, or of the installation, as rows.

use postroad_app::domains::RecordView;
use postroad_app::domains::check::{Purpose, RecordStatus};

use crate::display::When;

pub(crate) struct RecordRow {
    pub(crate) purpose: &'static str,
    pub(crate) why: &'static str,
    pub(crate) record_type: &'static str,
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) is_required: bool,
    pub(crate) status: &'static str,
    /// Class with the colour of the status.
    pub(crate) tone: &'static str,
    pub(crate) found: Vec<String>,
    pub(crate) hint: Option<String>,
    pub(crate) since: Option<When>,
    /// When the TLS certificate of the tracking host expires.
    pub(crate) certificate_until: Option<When>,
}

pub(crate) fn record_row(record: RecordView) -> RecordRow {
    let check = record.check;
    let (status, tone) = match check.status {
        RecordStatus::Pending => ("No verdict yet", "calm"),
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
        certificate_until: record.link_host.and_then(|host| host.certificate_expires_at).map(When),
    }
}

fn purpose(purpose: Purpose) -> (&'static str, &'static str) {
    match purpose {
        Purpose::Spf => ("SPF", "lets this service send for the domain"),
        Purpose::Dkim => ("DKIM", "the key that signs your mail, and the proof that the domain is yours"),
        Purpose::Dmarc => ("DMARC", "what receivers do with mail that fails both SPF and DKIM"),
        Purpose::ReturnPath => ("Return path", "bounces come to your own name"),
        Purpose::Tracking => ("Tracking", "links in tracked mail have your own name"),
        Purpose::Host => ("Host", "the address behind a name of this service"),
        Purpose::ReverseDns => ("Reverse DNS", "the name of a sending address; its hoster sets it"),
        Purpose::Bounces => ("Bounces", "the mail server that takes bounces, complaints and reports"),
        Purpose::DmarcReports => ("DMARC reports", "lets other domains have their reports sent here"),
        Purpose::TlsReports => ("TLS reports", "where senders report failed encryption"),
        Purpose::MtaSts => ("MTA-STS", "asks servers that send bounces to use TLS"),
    }
}
