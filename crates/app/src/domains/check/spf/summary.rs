//! Combines the results of an SPF record for all our addresses.

use super::evaluate::{PermError, PublishedSpf, Sender, SpfResult, evaluate, parse_published};
use super::record::SpfRecord;
use crate::domains::check::answers::{AnswersView, NotAskedYet};
use crate::domains::check::record::RecordType;
use crate::domains::check::service::{SendingAddress, Service};

/// Number of addresses of each family that are checked as a sample if each address needs other DNS questions
/// (`%{i}`, `ptr`).
const SAMPLE_PER_FAMILY: usize = 8;

pub(super) enum Summary {
    /// All our addresses are allowed; with the term that allows everybody, if there is one.
    Passed {
        allows_everybody: Option<String>,
    },
    /// Our addresses that are not allowed.
    Refused(Vec<String>),
    Broken(PermError),
    /// A DNS question had no answer, for this reason.
    Unknown(String),
}

impl Summary {
    pub(super) fn of(
        view: &AnswersView<'_>,
        service: &Service,
        domain: &str,
        record: &SpfRecord,
    ) -> Result<Self, NotAskedYet> {
        Self::with_trust(view, service, domain, record, None)
    }

    /// Like `of`, but assumes that the record of the `trusted` name allows exactly our addresses.
    pub(super) fn with_trust(
        view: &AnswersView<'_>,
        service: &Service,
        domain: &str,
        record: &SpfRecord,
        trusted: Option<&str>,
    ) -> Result<Self, NotAskedYet> {
        let mut allows_everybody = record.plus_all().map(|term| term.text.clone());
        let mut refused = Vec::new();
        // Continue after a missing answer, so that the questions for all addresses are asked together.
        let mut answered = Ok(());
        for (source, is_in_sample) in mark_sample(&service.sources) {
            let sender = Sender { address: source.address, helo: source.helo.as_str(), domain, trusted };
            let source_view = view.fresh();
            let evaluated = evaluate(&source_view, sender, record);
            let result = match evaluated.result {
                Ok(result) => result,
                // Not evaluated for this address: the addresses in the sample are representative.
                Err(NotAskedYet) if evaluated.differs_by_sender && !is_in_sample => continue,
                Err(unasked) => {
                    view.add_unanswered(source_view.into_unanswered());
                    answered = Err(unasked);
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
        answered?;
        Ok(if refused.is_empty() { Self::Passed { allows_everybody } } else { Self::Refused(refused) })
    }
}

/// Every source, with whether it is in the sample; the sample is spread evenly over each address family.
fn mark_sample(sources: &[SendingAddress]) -> impl Iterator<Item = (&SendingAddress, bool)> {
    let count_of = |is_v4| sources.iter().filter(|source| source.address.is_ipv4() == is_v4).count();
    let counts = [count_of(false), count_of(true)];
    let mut seen = [0, 0];
    sources.iter().map(move |source| {
        let family = usize::from(source.address.is_ipv4());
        let number = seen[family];
        seen[family] += 1;
        // The sample has the first address of each of `SAMPLE_PER_FAMILY` equal parts.
        let part = |number: usize| number * SAMPLE_PER_FAMILY / counts[family];
        (source, number == 0 || counts[family] <= SAMPLE_PER_FAMILY || part(number) != part(number - 1))
    })
}

/// Whether the record of one of our own names allows our addresses.
pub(in super::super) enum OwnRecordVerdict {
    /// The record allows all our addresses, but not everybody's.
    Correct,
    /// The record misses some of our addresses, allows everybody, or is invalid. Or there are several records, or our
    /// addresses are not known.
    Incorrect,
    NoRecord,
    Unknown(String),
}

pub(in super::super) fn judge_own_record(
    view: &AnswersView<'_>,
    service: &Service,
    name: &str,
) -> Result<OwnRecordVerdict, NotAskedYet> {
    let record = match parse_published(view.ask(name, RecordType::Txt)?) {
        PublishedSpf::One(record) => record,
        PublishedSpf::None => return Ok(OwnRecordVerdict::NoRecord),
        PublishedSpf::Several => return Ok(OwnRecordVerdict::Incorrect),
        PublishedSpf::Failed(reason) => return Ok(OwnRecordVerdict::Unknown(reason)),
    };
    if service.sources.is_empty() {
        return Ok(OwnRecordVerdict::Incorrect);
    }
    Ok(match Summary::of(view, service, name, &record)? {
        Summary::Passed { allows_everybody: None } => OwnRecordVerdict::Correct,
        Summary::Passed { .. } | Summary::Refused(_) | Summary::Broken(_) => OwnRecordVerdict::Incorrect,
        Summary::Unknown(reason) => OwnRecordVerdict::Unknown(reason),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_sample_is_spread_over_each_family() {
        let source = |address: String| SendingAddress {
            address: address.parse().unwrap(),
            helo: postroad_model::DomainName::parse("post.example").unwrap(),
        };
        let v4 = (0..100).map(|number| source(format!("192.0.2.{number}")));
        let v6 = (0..3).map(|number| source(format!("2001:db8::{number}")));
        let sources: Vec<SendingAddress> = v4.chain(v6).collect();
        let sample: Vec<String> = mark_sample(&sources)
            .filter(|(_, is_in_sample)| *is_in_sample)
            .map(|(source, _)| source.address.to_string())
            .collect();
        let expected = "192.0.2.0 192.0.2.13 192.0.2.25 192.0.2.38 192.0.2.50 192.0.2.63 192.0.2.75 192.0.2.88 \
                        2001:db8:: 2001:db8::1 2001:db8::2";
        assert_eq!(sample.join(" "), expected);
    }
}
