//! DNS answers, and a view of them that records which questions have no answer yet.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use postroad_net::dns::RecordData;

use super::record::RecordType;

/// Reason in `Answer::Failed` for questions beyond the limit of a check.
pub(super) const TOO_MANY_QUESTIONS: &str = "the check needs more DNS questions than it may ask";

pub(super) type Question = (String, RecordType);

/// The outcome of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Records; at least one.
    Records(Vec<RecordData>),
    /// NXDOMAIN.
    NoSuchName,
    /// The name exists, but has no record of the type.
    NoData,
    /// No answer, with the reason.
    Failed(String),
}

/// The DNS answer to each question of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DnsAnswers {
    answers: HashMap<Question, Answer>,
}

impl DnsAnswers {
    pub fn insert(&mut self, name: &str, record_type: RecordType, answer: Answer) {
        self.answers.insert(question(name, record_type), answer);
    }

    pub fn len(&self) -> usize {
        self.answers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

/// The answer to this question is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotAskedYet;

/// The known answers for one round of judging. Collects the questions that have no answer yet.
#[derive(Debug)]
pub(super) struct AnswersView<'a> {
    answers: &'a DnsAnswers,
    unanswered: RefCell<BTreeSet<Question>>,
}

impl<'a> AnswersView<'a> {
    pub(super) fn new(answers: &'a DnsAnswers) -> Self {
        Self { answers, unanswered: RefCell::default() }
    }

    /// The known answer to a question. Records the question if it has no answer yet.
    pub(super) fn ask(&self, name: &str, record_type: RecordType) -> Result<&'a Answer, NotAskedYet> {
        let question = question(name, record_type);
        self.answers.answers.get(&question).ok_or_else(|| {
            self.unanswered.borrow_mut().insert(question);
            NotAskedYet
        })
    }

    /// Requests an answer in advance, so that several questions are asked together instead of one after the other.
    pub(super) fn prefetch(&self, name: &str, record_type: RecordType) {
        // Either the answer is known, or the question is now recorded as unanswered.
        let _ = self.ask(name, record_type);
    }

    /// A view of the same answers, with no unanswered questions recorded yet.
    pub(super) fn fresh(&self) -> Self {
        Self::new(self.answers)
    }

    /// Adds the questions for which another view of the same answers had no answer.
    pub(super) fn add_unanswered(&self, unanswered: BTreeSet<Question>) {
        self.unanswered.borrow_mut().extend(unanswered);
    }

    pub(super) fn into_unanswered(self) -> BTreeSet<Question> {
        self.unanswered.into_inner()
    }

    /// The A and AAAA records of a name. `Addresses::Failed` if a question failed and no address was found.
    pub(super) fn addresses(&self, name: &str) -> Result<Addresses<'a>, NotAskedYet> {
        self.prefetch(name, RecordType::Aaaa);
        let answers = [self.ask(name, RecordType::A)?, self.ask(name, RecordType::Aaaa)?];
        let found: Vec<IpAddr> = answers.iter().flat_map(|answer| answer.addresses()).collect();
        if !found.is_empty() {
            return Ok(Addresses::Found(found));
        }
        Ok(self.address_failure(name)?.map_or(Addresses::None, Addresses::Failed))
    }

    /// Why some addresses of a name may be unknown, even if others were found.
    pub(super) fn address_failure(&self, name: &str) -> Result<Option<&'a str>, NotAskedYet> {
        let answers = [self.ask(name, RecordType::A)?, self.ask(name, RecordType::Aaaa)?];
        Ok(answers.into_iter().find_map(|answer| match answer {
            Answer::Failed(reason) => Some(reason.as_str()),
            _ => None,
        }))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Addresses<'a> {
    Found(Vec<IpAddr>),
    None,
    Failed(&'a str),
}

impl Answer {
    pub(super) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.records().iter().filter_map(|record| match record {
            RecordData::Text(text) => Some(text.as_slice()),
            _ => None,
        })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.records().iter().filter_map(|record| match record {
            RecordData::Name(name) => Some(name.as_str()),
            _ => None,
        })
    }

    pub(super) fn mail_hosts(&self) -> impl Iterator<Item = (u16, &str)> {
        self.records().iter().filter_map(|record| match record {
            RecordData::Mx { preference, host } => Some((*preference, host.as_str())),
            _ => None,
        })
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.records().iter().filter_map(|record| match record {
            RecordData::Address(address) => Some(*address),
            _ => None,
        })
    }

    /// Whether both answers have records, and the same ones in any order: name servers rotate their answers.
    pub(super) fn has_same_records(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.records(), other.records());
        !ours.is_empty() && ours.len() == theirs.len() && ours.iter().all(|record| theirs.contains(record))
    }

    /// Whether the DNS says that no such record exists.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::NoSuchName | Self::NoData)
    }

    fn records(&self) -> &[RecordData] {
        match self {
            Self::Records(records) => records,
            Self::NoSuchName | Self::NoData | Self::Failed(_) => &[],
        }
    }
}

/// A question, its name in lower case and without a dot at the end: the DNS compares names without regard to case.
fn question(name: &str, record_type: RecordType) -> Question {
    (name.trim_end_matches('.').to_ascii_lowercase(), record_type)
}
