//! Explains why a record is missing or has no answer: an unregistered domain, a name that contains the domain twice, a
//! wildcard that answers instead, a CNAME loop, or a DNS failure.

use postroad_model::DomainName;
use postroad_net::dns::organisational_domain;

use super::answers::{Answer, AnswersView, NotAskedYet, TOO_MANY_QUESTIONS};
use super::chain::{Chain, follow_aliases};
use super::expected::ExpectedRecord;
use super::record::{Purpose, RecordCheck, RecordStatus, RecordType};

/// Label of a name that exists only if a wildcard answers for it.
const PROBE_LABEL: &str = "postroad-wildcard-check";

/// The verdict on a record that the DNS says does not exist. `is_ours` recognises the record at a name that contains
/// the domain twice.
pub(super) fn judge_missing(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    domain: &DomainName,
    found: Vec<String>,
    is_ours: impl Fn(&Answer) -> bool,
) -> Result<RecordCheck, NotAskedYet> {
    let registered = organisational_domain(domain);
    let hint = if *view.ask(registered, RecordType::Ns)? == Answer::NoSuchName {
        format!(
            "{registered} does not exist in the DNS: it is not registered, or has no name servers. Check the spelling \
             and the registration."
        )
    } else if is_ours(view.ask(&format!("{}.{domain}", record.name), record.record_type)?) {
        format!(
            "The name has the domain twice: your DNS panel appends it. Enter {} as the name.",
            label_in(&record.name, domain)
        )
    } else {
        let record_type = record.record_type.as_str();
        format!("There is no such record yet. Add this {record_type} record at {}.", record.name)
    };
    Ok(record.with_verdict(RecordStatus::Missing, found, Some(hint)))
}

/// The verdict when the DNS gave no answer: `dns_error`, unless a CNAME loop is the cause.
pub(super) fn judge_unanswered(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    domain: &DomainName,
    reason: &str,
) -> Result<RecordCheck, NotAskedYet> {
    if let Chain::Loop(names) = follow_aliases(view, &record.name)? {
        let hint = format!(
            "{} leads into a CNAME loop, or through too many CNAMEs. Remove that CNAME.",
            record.name
        );
        return Ok(record.with_verdict(RecordStatus::Mismatch, names, Some(hint)));
    }
    Ok(dns_error_check(record, domain.as_str(), reason))
}

/// The status `dns_error` with a hint that names the reason.
pub(super) fn dns_error_check(record: &ExpectedRecord, domain: &str, reason: &str) -> RecordCheck {
    let hint = if reason == TOO_MANY_QUESTIONS {
        "To judge this record, this service would have to ask more DNS questions than its limit allows. This is \
         not a verdict. Fewer `include` and `mx` terms in the SPF record mean fewer questions."
            .to_owned()
    } else {
        format!(
            "The DNS did not answer ({reason}). This is not a verdict; the check is repeated. If this persists, tell the operator of \
             the name servers of {domain}."
        )
    };
    let check = record.with_verdict(RecordStatus::DnsError, Vec::new(), Some(hint));
    // Suggest no SPF record: one may exist and only be unreachable, and replacing it would break the customer's other
    // mail.
    let value = if record.purpose == Purpose::Spf { String::new() } else { check.value };
    RecordCheck { value, ..check }
}

/// Whether an answer probably comes from a wildcard of the domain: a name that nobody uses gets the same answer.
pub(super) fn is_wildcard(
    view: &AnswersView<'_>,
    domain: &DomainName,
    record_type: RecordType,
    answer: &Answer,
) -> Result<bool, NotAskedYet> {
    Ok(view.ask(&format!("{PROBE_LABEL}.{domain}"), record_type)?.has_same_records(answer))
}

/// Hint on a record in whose place a wildcard answers.
pub(super) fn wildcard_hint(record: &ExpectedRecord, domain: &DomainName) -> String {
    let (name, record_type) = (&record.name, record.record_type.as_str());
    format!(
        "A wildcard record (*.{domain}) answers for {name}. Add a {record_type} record at {name} itself; it takes \
         precedence over the wildcard."
    )
}

/// The label to enter into a DNS panel that appends the domain.
fn label_in<'a>(name: &'a str, domain: &DomainName) -> &'a str {
    name.strip_suffix(domain.as_str()).and_then(|label| label.strip_suffix('.')).unwrap_or("@")
}
