//! The SPF record of a domain, evaluated as receivers do for each of our addresses (RFC 7208).

mod cost;
mod evaluate;
mod hints;
mod macros;
mod mechanism;
mod merge;
mod near_miss;
mod record;
mod repair;
#[cfg(test)]
mod rfc_examples;
mod suggest;
mod summary;

use postroad_model::DomainName;
use postroad_net::dns::TEXT_BYTES_MAX;

use super::absence::{dns_error_check, judge_unanswered};
use super::answers::{Answer, AnswersView, NotAskedYet};
use super::expected::ExpectedRecord;
use super::record::{RecordCheck, RecordStatus, RecordType};
use super::service::Service;
use super::text::display_texts;
use cost::cost;
use evaluate::{LOOKUPS_MAX, Sender, is_truncated};
use record::{SpfRecord, is_spf};
use suggest::suggest;
use summary::Summary;
pub(super) use summary::{OwnRecordVerdict, judge_own_record};

/// Maximum number of SPF records that are merged into a suggestion; for more, none is made.
const RECORDS_MERGED_MAX: usize = 5;

pub(super) fn judge(
    view: &AnswersView<'_>,
    service: &Service,
    record: &ExpectedRecord,
    domain: &DomainName,
) -> Result<RecordCheck, NotAskedYet> {
    let answer = view.ask(&record.name, RecordType::Txt)?;
    if let Answer::Failed(reason) = answer {
        return judge_unanswered(view, record, domain, reason);
    }
    let texts: Vec<&[u8]> = answer.texts().filter(|text| is_spf(text)).collect();
    let found = display_texts(texts.iter().copied());
    if let Some((status, hint)) = find_judging_obstacle(service, &texts) {
        return Ok(RecordCheck { value: String::new(), ..record.with_verdict(status, found, Some(hint)) });
    }
    if texts.len() > RECORDS_MERGED_MAX {
        let hint = format!(
            "You have {} SPF records, so receivers ignore all of them. Make them one, with {} before its end.",
            texts.len(),
            service.spf_terms().join(" ")
        );
        let check = record.with_verdict(RecordStatus::Multiple, found, Some(hint));
        return Ok(RecordCheck { value: String::new(), ..check });
    }
    let records: Vec<SpfRecord> =
        texts.iter().map(|text| SpfRecord::parse(&String::from_utf8_lossy(text))).collect();
    match records.as_slice() {
        [] => near_miss::judge(view, service, record, domain, answer),
        [one] => judge_one(view, service, record, one, texts[0], found),
        several => {
            let suggestion = suggest(view, service, &record.name, several)?;
            let hint = hints::several_records(texts.len(), &suggestion);
            let check = record.with_verdict(RecordStatus::Multiple, found, Some(hint));
            Ok(RecordCheck { value: suggestion.text, ..check })
        }
    }
}

/// Status and hint if no verdict and no suggestion is possible.
fn find_judging_obstacle(service: &Service, texts: &[&[u8]]) -> Option<(RecordStatus, String)> {
    if let Some(reason) = &service.unknown_reason {
        let hint = format!(
            "This service could not find out which addresses it sends from ({reason}). This is not a verdict; the check is repeated. \
             There is nothing for you to change."
        );
        return Some((RecordStatus::DnsError, hint));
    }
    if service.sources.is_empty() {
        let name = service.private_sources.first().map_or(&service.host, |source| &source.helo);
        let hint = format!(
            "This service does not know which addresses it sends from, so SPF cannot be judged. Its operator has to \
             give {name} a public address (A, AAAA) or add addresses to a pool."
        );
        return Some((RecordStatus::Pending, hint));
    }
    if texts.iter().any(|text| is_truncated(text)) {
        let hint = format!(
            "Your SPF record is too long to be judged here: less than {TEXT_BYTES_MAX} bytes are read. Shorten it, for example \
             with networks in place of single addresses."
        );
        return Some((RecordStatus::Pending, hint));
    }
    None
}

fn judge_one(
    view: &AnswersView<'_>,
    service: &Service,
    record: &ExpectedRecord,
    published: &SpfRecord,
    text: &[u8],
    found: Vec<String>,
) -> Result<RecordCheck, NotAskedYet> {
    let domain = record.name.as_str();
    // Counted first, because the count requests the answers about all includes at once.
    let cost = cost(view, first_sender(service, domain), published);
    let summary = Summary::of(view, service, domain, published)?;
    let value = || String::from_utf8_lossy(text).into_owned();
    let has_fault = !matches!(summary, Summary::Passed { allows_everybody: None } | Summary::Unknown(_));
    if has_fault && !service.is_spf_name_usable {
        let spf_name = service.spf_name();
        let without_our_fault = Summary::with_trust(view, service, domain, published, Some(&spf_name))?;
        if matches!(without_our_fault, Summary::Passed { allows_everybody: None }) {
            let hint = hints::service_record_at_fault(&spf_name);
            let check = record.with_verdict(RecordStatus::Verified, found, Some(hint));
            return Ok(RecordCheck { value: value(), ..check });
        }
    }
    let suggestion = suggest(view, service, domain, std::slice::from_ref(published))?;
    if let Summary::Unknown(reason) = summary {
        let check = dns_error_check(record, domain, &reason);
        return Ok(RecordCheck { value: suggestion.text, found, ..check });
    }
    let cost = cost?;
    let (status, hint) = match summary {
        Summary::Passed { allows_everybody: Some(term) } => {
            (RecordStatus::Verified, Some(hints::allows_everybody(domain, &term, &suggestion)))
        }
        Summary::Passed { allows_everybody: None } => {
            let hint = (cost.lookups > LOOKUPS_MAX).then(|| {
                format!(
                    "{} Mail from this service passes, other mail may not.",
                    hints::too_many_lookups(&cost)
                )
            });
            return Ok(RecordCheck {
                value: value(),
                ..record.with_verdict(RecordStatus::Verified, found, hint)
            });
        }
        Summary::Refused(addresses) => {
            (RecordStatus::Mismatch, Some(hints::refused_addresses(&addresses, &suggestion)))
        }
        Summary::Broken(error) => {
            (RecordStatus::Mismatch, Some(hints::broken_record(domain, &error, &cost, &suggestion)))
        }
        Summary::Unknown(_) => unreachable!("returned above"),
    };
    Ok(RecordCheck { value: suggestion.text, ..record.with_verdict(status, found, hint) })
}

/// The sender for whom lookups are counted. The number of lookups differs between senders only with macros.
fn first_sender<'a>(service: &'a Service, domain: &'a str) -> Sender<'a> {
    let source = &service.sources[0];
    Sender { address: source.address, helo: source.helo.as_str(), domain, trusted: None }
}
