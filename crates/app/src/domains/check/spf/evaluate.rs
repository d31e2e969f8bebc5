//! Evaluates an SPF record for one address as a receiver does: `check_host()` of RFC 7208 4, over known answers instead
//! of a resolver. Unlike a receiver, the evaluation reports the term that allows the address or is faulty.

use std::cell::Cell;
use std::net::IpAddr;

use postroad_net::dns::TEXT_BYTES_MAX;

use super::record::{Qualifier, SpfRecord, Term, TermKind, is_spf};
use crate::domains::check::answers::{Answer, AnswersView, NotAskedYet};
use crate::domains::check::record::RecordType;

/// Maximum number of DNS lookups of an SPF record (RFC 7208 4.6.4).
pub(in super::super) const LOOKUPS_MAX: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum SpfResult {
    /// The address is allowed; with the matching term of the outermost record.
    Pass {
        term: String,
        allows_everybody: bool,
    },
    /// The matching term does not allow the address, or no term matched.
    NotAllowed,
    /// The name has no SPF record.
    NoRecord,
    /// A DNS question had no answer.
    TempError(String),
    PermError(PermError),
}

/// A permanent error: receivers ignore the whole record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct PermError {
    pub(in super::super) reason: PermErrorReason,
    /// The term of the outermost record that leads to the error.
    pub(in super::super) term: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum PermErrorReason {
    TooManyLookups,
    /// Terms whose look-ups found no records.
    TooManyVoidLookups(Vec<String>),
    InvalidTerm {
        domain: String,
        term: String,
    },
    /// An include or redirect of a name without an SPF record.
    NoRecord {
        target: String,
    },
    SeveralRecords {
        target: String,
    },
    TooManyMailHosts {
        domain: String,
    },
    Loop {
        target: String,
    },
}

/// The sender for which a record is evaluated.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Sender<'a> {
    pub(in super::super) address: IpAddr,
    pub(in super::super) helo: &'a str,
    pub(in super::super) domain: &'a str,
    /// A name whose SPF record is assumed to allow the sender.
    pub(in super::super) trusted: Option<&'a str>,
}

/// The SPF record of a name, if it has exactly one.
pub(in super::super) enum PublishedSpf {
    One(SpfRecord),
    None,
    Several,
    Failed(String),
}

/// Whether the SPF record may be longer than the part that was read.
pub(super) fn is_truncated(text: &[u8]) -> bool {
    text.len() >= TEXT_BYTES_MAX && is_spf(text)
}

/// Parses the SPF record among the TXT records of a name.
pub(in super::super) fn parse_published(answer: &Answer) -> PublishedSpf {
    if let Answer::Failed(reason) = answer {
        return PublishedSpf::Failed(reason.clone());
    }
    if answer.texts().any(is_truncated) {
        return PublishedSpf::Failed(format!("SPF records of {TEXT_BYTES_MAX} bytes and more are not read"));
    }
    let mut texts = answer.texts().filter(|text| is_spf(text));
    match (texts.next(), texts.next()) {
        (None, _) => PublishedSpf::None,
        (Some(text), None) => PublishedSpf::One(SpfRecord::parse(&String::from_utf8_lossy(text))),
        (Some(_), Some(_)) => PublishedSpf::Several,
    }
}

pub(in super::super) struct EvaluationResult {
    pub(in super::super) result: Result<SpfResult, NotAskedYet>,
    /// Whether the evaluation needed a DNS name that depends on the sender's address or HELO name.
    pub(in super::super) differs_by_sender: bool,
}

/// The result of a record that is, or would be, published at the sender's domain.
pub(in super::super) fn evaluate(
    view: &AnswersView<'_>,
    sender: Sender<'_>,
    record: &SpfRecord,
) -> EvaluationResult {
    let mut evaluation = Evaluation {
        view,
        sender,
        lookups: 0,
        voids: Vec::new(),
        names: Vec::new(),
        differs_by_sender: Cell::new(false),
    };
    let result = evaluation.evaluate_record(sender.domain, record);
    EvaluationResult { result, differs_by_sender: evaluation.differs_by_sender.get() }
}

pub(super) struct Evaluation<'a> {
    pub(super) view: &'a AnswersView<'a>,
    pub(super) sender: Sender<'a>,
    pub(super) lookups: usize,
    /// Terms whose look-ups found no records.
    pub(super) voids: Vec<String>,
    /// Names of the records being evaluated, the outermost first.
    names: Vec<String>,
    pub(super) differs_by_sender: Cell<bool>,
}

/// Result of one term: match, no match, or an error that ends the evaluation.
pub(super) enum TermResult {
    Match { allows_everybody: bool },
    NoMatch,
    TempError(String),
    PermError(PermErrorReason),
}

impl Evaluation<'_> {
    fn evaluate_record(&mut self, domain: &str, record: &SpfRecord) -> Result<SpfResult, NotAskedYet> {
        self.names.push(domain.to_ascii_lowercase());
        let result = self.evaluate_terms(domain, record);
        self.names.pop();
        result
    }

    fn evaluate_terms(&mut self, domain: &str, record: &SpfRecord) -> Result<SpfResult, NotAskedYet> {
        // RFC 7208 4.6: a syntax error anywhere in the record comes before any match.
        if let Some(Term { text, .. }) = record.invalid_term() {
            let reason = PermErrorReason::InvalidTerm { domain: domain.to_owned(), term: text.clone() };
            return Ok(SpfResult::PermError(PermError { reason, term: text.clone() }));
        }
        for term in &record.terms {
            let TermKind::Directive { qualifier, mechanism } = &term.kind else { continue };
            match self.match_mechanism(domain, term, mechanism)? {
                TermResult::Match { allows_everybody } => {
                    return Ok(match qualifier {
                        Qualifier::Pass => SpfResult::Pass { term: term.text.clone(), allows_everybody },
                        Qualifier::Fail | Qualifier::SoftFail | Qualifier::Neutral => SpfResult::NotAllowed,
                    });
                }
                TermResult::NoMatch => {}
                TermResult::TempError(reason) => return Ok(SpfResult::TempError(reason)),
                TermResult::PermError(reason) => {
                    return Ok(SpfResult::PermError(PermError { reason, term: term.text.clone() }));
                }
            }
        }
        let Some((term, target)) = record.redirect() else { return Ok(SpfResult::NotAllowed) };
        let perm_error = |reason| SpfResult::PermError(PermError { reason, term: term.text.clone() });
        if let Some(reason) = self.count_lookup() {
            return Ok(perm_error(reason));
        }
        let target = self.expand(domain, target)?;
        Ok(match self.evaluate_name(&target)? {
            SpfResult::Pass { allows_everybody, .. } => {
                SpfResult::Pass { term: term.text.clone(), allows_everybody }
            }
            SpfResult::NoRecord => perm_error(PermErrorReason::NoRecord { target }),
            SpfResult::PermError(error) => perm_error(error.reason),
            result @ (SpfResult::NotAllowed | SpfResult::TempError(_)) => result,
        })
    }

    /// The result of another name's record.
    pub(super) fn evaluate_name(&mut self, name: &str) -> Result<SpfResult, NotAskedYet> {
        let perm_error = |reason| SpfResult::PermError(PermError { reason, term: String::new() });
        if self.names.iter().any(|outer| outer.eq_ignore_ascii_case(name)) {
            return Ok(perm_error(PermErrorReason::Loop { target: name.to_owned() }));
        }
        if self.sender.trusted.is_some_and(|trusted| trusted.eq_ignore_ascii_case(name)) {
            return Ok(SpfResult::Pass { term: String::new(), allows_everybody: false });
        }
        match parse_published(self.view.ask(name, RecordType::Txt)?) {
            PublishedSpf::One(record) => self.evaluate_record(name, &record),
            PublishedSpf::None => Ok(SpfResult::NoRecord),
            PublishedSpf::Several => {
                Ok(perm_error(PermErrorReason::SeveralRecords { target: name.to_owned() }))
            }
            PublishedSpf::Failed(reason) => Ok(SpfResult::TempError(reason)),
        }
    }
}
