//! The SPF record of a domain, evaluated as receivers do for each of our addresses (RFC 7208).

mod cost;
mod evaluate;
mod hints;
mod macros;
mod mechanism;
mod merge;
mod record;
#[cfg(test)]
mod rfc_examples;
mod suggest;

use postroad_model::DomainName;

use super::absence::{dns_error, missing, no_answer};
use super::answers::{Answer, Unasked, View};
use super::expected::ExpectedRecord;
use super::record::{RecordCheck, RecordStatus, RecordType};
use super::service::Service;
use super::text::shown_all;
use cost::cost;
use evaluate::{LOOKUPS_MAX, PermError, Published, Sender, SpfResult, evaluate, published};
use record::{SpfRecord, is_spf};
use suggest::suggest;

/// A suggestion is made of no more records than this.
const RECORDS_MERGED_MAX: usize = 5;

pub(super) fn judge(
    view: &View<'_>,
    service: &Service,
    record: &ExpectedRecord,
    domain: &DomainName,
) -> Result<RecordCheck, Unasked> {
    let answer = view.ask(&record.name, RecordType::Txt)?;
    if let Answer::Failed(reason) = answer {
        return no_answer(view, record, domain, reason);
    }
    if service.sources.is_empty() {
        let hint = format!(
            "This service does not know which addresses it sends from, so SPF cannot be judged. Its operator gives {} an \
             address (A, AAAA) or adds addresses to a pool.",
            service.host
        );
        return Ok(record.judged(RecordStatus::Pending, Vec::new(), Some(hint)));
    }
    let texts: Vec<&[u8]> = answer.texts().filter(|text| is_spf(text)).collect();
    let found = shown_all(texts.iter().copied());
    // Further ones change no verdict, only the suggestion.
    let records: Vec<SpfRecord> = texts
        .iter()
        .take(RECORDS_MERGED_MAX)
        .map(|text| SpfRecord::parse(&String::from_utf8_lossy(text)))
        .collect();
    match records.as_slice() {
        [] => judge_none(view, service, record, domain, answer),
        [one] => judge_one(view, service, record, one, texts[0], found),
        several => {
            let value = suggest(view, service, &record.name, several)?;
            let count = hints::number(texts.len());
            let hint = format!("You have {count} SPF records; keep this one: {value}");
            Ok(RecordCheck { value, ..record.judged(RecordStatus::Multiple, found, Some(hint)) })
        }
    }
}

/// Whether the name has a record of its own that allows all our addresses, and not everybody's.
pub(super) fn allows_all(view: &View<'_>, service: &Service, name: &str) -> Result<bool, Unasked> {
    let Published::One(record) = published(view.ask(name, RecordType::Txt)?) else { return Ok(false) };
    let summary = Summary::of(view, service, name, &record)?;
    let is_passed = matches!(summary, Summary::Passed { allows_everybody: None });
    Ok(is_passed && !service.sources.is_empty())
}

/// The results for all our addresses together.
enum Summary {
    /// With the term that allows everybody, if one does.
    Passed {
        allows_everybody: Option<String>,
    },
    /// Addresses that are not allowed.
    Refused(Vec<String>),
    Broken(PermError),
    Unknown(String),
}

impl Summary {
    fn of(view: &View<'_>, service: &Service, domain: &str, record: &SpfRecord) -> Result<Self, Unasked> {
        let mut allows_everybody = record.plus_all().map(|term| term.text.clone());
        let mut refused = Vec::new();
        // A missing answer for one address ends nothing: those for the others are asked for together with it.
        let mut is_complete = Ok(());
        for source in &service.sources {
            let sender = Sender { address: source.address, helo: source.helo.as_str(), domain };
            let result = match evaluate(view, sender, record) {
                Ok(result) => result,
                Err(unasked) => {
                    is_complete = Err(unasked);
                    continue;
                }
            };
            match result {
                SpfResult::Pass { term, allows_everybody: true } => allows_everybody = Some(term),
                SpfResult::Pass { .. } => {}
                SpfResult::NotAllowed | SpfResult::NoRecord => refused.push(source.address.to_string()),
                SpfResult::TempError(reason) => return Ok(Self::Unknown(reason)),
                SpfResult::PermError(error) => return Ok(Self::Broken(error)),
            }
        }
        is_complete?;
        Ok(if refused.is_empty() { Self::Passed { allows_everybody } } else { Self::Refused(refused) })
    }
}

fn judge_one(
    view: &View<'_>,
    service: &Service,
    record: &ExpectedRecord,
    published: &SpfRecord,
    text: &[u8],
    found: Vec<String>,
) -> Result<RecordCheck, Unasked> {
    let domain = record.name.as_str();
    // First, because it asks for all includes at once.
    let cost = cost(view, first_sender(service, domain), published);
    let summary = Summary::of(view, service, domain, published)?;
    if let Summary::Unknown(reason) = summary {
        return Ok(RecordCheck { found, ..dns_error(record, domain, &reason) });
    }
    let cost = cost?;
    let suggestion = suggest(view, service, domain, std::slice::from_ref(published))?;
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
            let value = String::from_utf8_lossy(text).into_owned();
            return Ok(RecordCheck { value, ..record.judged(RecordStatus::Verified, found, hint) });
        }
        Summary::Refused(addresses) => {
            (RecordStatus::Mismatch, Some(hints::refused(&addresses, &suggestion)))
        }
        Summary::Broken(error) => {
            (RecordStatus::Mismatch, Some(hints::broken(domain, &error, &cost, &suggestion)))
        }
        Summary::Unknown(_) => unreachable!("returned above"),
    };
    Ok(RecordCheck { value: suggestion, ..record.judged(status, found, hint) })
}

/// Without an SPF record, or with something that only looks like one.
fn judge_none(
    view: &View<'_>,
    service: &Service,
    record: &ExpectedRecord,
    domain: &DomainName,
    answer: &Answer,
) -> Result<RecordCheck, Unasked> {
    let near_misses: Vec<&[u8]> = answer.texts().filter(|text| looks_like_spf(text)).collect();
    let Some(near_miss) = near_misses.first() else {
        let is_ours = |answer: &Answer| answer.texts().any(is_spf);
        return missing(view, record, domain, Vec::new(), is_ours);
    };
    let repaired = String::from_utf8_lossy(near_miss).replace(['"', '\\'], "");
    let repaired = repaired.trim();
    let value = if is_spf(repaired.as_bytes()) {
        suggest(view, service, &record.name, &[SpfRecord::parse(repaired)])?
    } else {
        record.value.clone()
    };
    let hint = format!(
        "This TXT record looks like SPF, but does not begin with v=spf1 and a space, so receivers do not see it. Replace \
         it by: {value}"
    );
    let found = shown_all(near_misses.into_iter());
    Ok(RecordCheck { value, ..record.judged(RecordStatus::Mismatch, found, Some(hint)) })
}

/// Typing errors in the first word.
fn looks_like_spf(text: &[u8]) -> bool {
    let start: String = String::from_utf8_lossy(&text[..text.len().min(24)]).to_ascii_lowercase();
    let start: String = start.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\\')).collect();
    ["v=spf", "v:spf", "vspf", "spf1", "spf=", "v-spf", "v=sfp"].iter().any(|known| start.starts_with(known))
}

/// Whom costs are counted for; macros rarely differ.
fn first_sender<'a>(service: &'a Service, domain: &'a str) -> Sender<'a> {
    let source = &service.sources[0];
    Sender { address: source.address, helo: source.helo.as_str(), domain }
}
