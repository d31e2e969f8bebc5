//! DMARC aggregate reports (RFC 7489, appendix C), parsed as a stream. Elements are found by name and position; unknown
//! ones, which receivers add, are skipped. Entities of a document type are never expanded.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;

use postroad_model::Timestamp;
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;

use super::text::ReportText;
use super::{
    DmarcSender, DmarcSource, DmarcSummary, NAME_BYTES_MAX, ReportProblem, shorten, sort_and_limit_sources,
    unpacking_problem,
};

const DEPTH_MAX: usize = 16;
/// Longest tag, text or comment; the parser keeps each in memory as a whole.
const PIECE_BYTES_MAX: usize = 64 << 10;
const RECORDS_MAX: usize = 100_000;
/// Maximum number of domains of `From` counted individually; further ones are counted together with mail without a
/// named domain.
const SENDERS_MAX: usize = 50;
/// Maximum number of sources counted individually; the totals of each domain include all sources.
const SOURCES_COUNTED_MAX: usize = 10_000;

/// Elements that are read; their position determines their meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Feedback,
    ReportMetadata,
    OrgName,
    ReportId,
    DateRange,
    Begin,
    End,
    PolicyPublished,
    Domain,
    P,
    Record,
    Row,
    SourceIp,
    Count,
    PolicyEvaluated,
    Disposition,
    Dkim,
    Spf,
    Identifiers,
    HeaderFrom,
    Other,
}

impl Tag {
    fn of(name: &str) -> Self {
        match name {
            "feedback" => Self::Feedback,
            "report_metadata" => Self::ReportMetadata,
            "org_name" => Self::OrgName,
            "report_id" => Self::ReportId,
            "date_range" => Self::DateRange,
            "begin" => Self::Begin,
            "end" => Self::End,
            "policy_published" => Self::PolicyPublished,
            "domain" => Self::Domain,
            "p" => Self::P,
            "record" => Self::Record,
            "row" => Self::Row,
            "source_ip" => Self::SourceIp,
            "count" => Self::Count,
            "policy_evaluated" => Self::PolicyEvaluated,
            "disposition" => Self::Disposition,
            "dkim" => Self::Dkim,
            "spf" => Self::Spf,
            "identifiers" => Self::Identifiers,
            "header_from" => Self::HeaderFrom,
            _ => Self::Other,
        }
    }
}

#[derive(Default)]
struct SummaryBuilder {
    organisation: String,
    report_id: String,
    domain: String,
    policy: String,
    begin: i64,
    end: i64,
    record: RecordRow,
    records: usize,
    senders: BTreeMap<String, SenderCounts>,
    sources_counted: usize,
}

#[derive(Default)]
struct SenderCounts {
    messages: u64,
    passed: u64,
    quarantined: u64,
    rejected: u64,
    sources: BTreeMap<IpAddr, SourceCounts>,
}

#[derive(Default)]
struct RecordRow {
    source: Option<IpAddr>,
    header_from: String,
    count: u64,
    disposition: String,
    dkim_passed: bool,
    spf_passed: bool,
}

#[derive(Default)]
struct SourceCounts {
    messages: u64,
    dkim_passed: u64,
    spf_passed: u64,
    failed: u64,
}

/// Parses a report; `None` if the document is not one.
pub(super) fn parse<R: Read>(text: ReportText<'_, R>) -> Result<Option<DmarcSummary>, ReportProblem> {
    let damaged = ReportProblem::Damaged("the XML breaks off or is wrong");
    let mut reader = Reader::from_reader(text);
    let mut piece = Vec::new();
    let mut path: Vec<Tag> = Vec::with_capacity(DEPTH_MAX);
    let mut value = String::new();
    let mut report = SummaryBuilder::default();
    loop {
        piece.clear();
        reader.get_mut().start_piece(PIECE_BYTES_MAX);
        let event = reader.read_event_into(&mut piece).map_err(|error| match error {
            quick_xml::Error::Io(error) => unpacking_problem(&error),
            _ => damaged,
        })?;
        match event {
            Event::Start(element) => {
                let tag = Tag::of(element.local_name().as_ref());
                if path.is_empty() && tag != Tag::Feedback {
                    return Ok(None);
                }
                if path.len() >= DEPTH_MAX {
                    return Err(ReportProblem::Damaged("the XML is nested too deep"));
                }
                path.push(tag);
                value.clear();
            }
            Event::Text(text) if value.len() < NAME_BYTES_MAX => value.push_str(&text.xml10_content()),
            Event::CData(text) if value.len() < NAME_BYTES_MAX => value.push_str(&text.xml10_content()),
            Event::GeneralRef(entity) if value.len() < NAME_BYTES_MAX => {
                // The five entities of XML itself and numbers; entities defined by the document are ignored.
                match entity.resolve_char_ref().map_err(|_| damaged)? {
                    Some(character) => value.push(character),
                    None => value.push_str(resolve_xml_entity(&entity).unwrap_or_default()),
                }
            }
            Event::End(_) => {
                report.end_element(path.get(1..).unwrap_or_default(), value.trim())?;
                path.pop();
                value.clear();
                if path.is_empty() {
                    return report.finish().map(Some);
                }
            }
            Event::Eof => return if path.is_empty() { Ok(None) } else { Err(damaged) },
            _ => {}
        }
    }
}

impl SummaryBuilder {
    /// Handles the end of an element: stores its text, or counts the record that it closes.
    fn end_element(&mut self, path: &[Tag], value: &str) -> Result<(), ReportProblem> {
        use Tag::{
            Begin, Count, DateRange, Disposition, Dkim, Domain, End, HeaderFrom, Identifiers, OrgName, P,
            PolicyEvaluated, PolicyPublished, Record, ReportId, ReportMetadata, Row, SourceIp, Spf,
        };
        let number =
            || value.parse().map_err(|_| ReportProblem::Damaged("a number in the report is invalid"));
        let passes = || value.eq_ignore_ascii_case("pass");
        match path {
            [ReportMetadata, OrgName] => self.organisation = shorten(value),
            [ReportMetadata, ReportId] => self.report_id = shorten(value),
            [ReportMetadata, DateRange, Begin] => self.begin = number()?,
            [ReportMetadata, DateRange, End] => self.end = number()?,
            [PolicyPublished, Domain] => self.domain = shorten(value).to_ascii_lowercase(),
            [PolicyPublished, P] => self.policy = shorten(value).to_ascii_lowercase(),
            [Record, Row, SourceIp] => self.record.source = value.parse().ok(),
            [Record, Row, Count] => self.record.count = u64::try_from(number()?).unwrap_or(0),
            [Record, Row, PolicyEvaluated, Disposition] => self.record.disposition = shorten(value),
            [Record, Row, PolicyEvaluated, Dkim] => self.record.dkim_passed = passes(),
            [Record, Row, PolicyEvaluated, Spf] => self.record.spf_passed = passes(),
            [Record, Identifiers, HeaderFrom] => {
                self.record.header_from = shorten(value).to_ascii_lowercase();
            }
            [Record] => self.close_record()?,
            _ => {}
        }
        Ok(())
    }

    fn close_record(&mut self) -> Result<(), ReportProblem> {
        let record = std::mem::take(&mut self.record);
        self.records += 1;
        if self.records > RECORDS_MAX {
            return Err(ReportProblem::TooLarge);
        }
        let count = record.count;
        let add = |total: &mut u64, is_counted: bool| {
            *total = total.saturating_add(if is_counted { count } else { 0 });
        };
        let has_passed = record.dkim_passed || record.spf_passed;
        let is_full = self.senders.len() >= SENDERS_MAX && !self.senders.contains_key(&record.header_from);
        let name = if is_full { String::new() } else { record.header_from };
        let sender = self.senders.entry(name).or_default();
        add(&mut sender.messages, true);
        add(&mut sender.passed, has_passed);
        add(&mut sender.quarantined, record.disposition.eq_ignore_ascii_case("quarantine"));
        add(&mut sender.rejected, record.disposition.eq_ignore_ascii_case("reject"));
        let Some(source) = record.source else { return Ok(()) };
        if !sender.sources.contains_key(&source) {
            if self.sources_counted >= SOURCES_COUNTED_MAX {
                return Ok(());
            }
            self.sources_counted += 1;
        }
        let counts = sender.sources.entry(source).or_default();
        add(&mut counts.messages, true);
        add(&mut counts.dkim_passed, record.dkim_passed);
        add(&mut counts.spf_passed, record.spf_passed);
        add(&mut counts.failed, !has_passed);
        Ok(())
    }

    fn finish(self) -> Result<DmarcSummary, ReportProblem> {
        if self.domain.is_empty() || self.report_id.is_empty() {
            return Err(ReportProblem::Damaged("the report names no domain or has no id"));
        }
        Ok(DmarcSummary {
            organisation: self.organisation,
            report_id: self.report_id,
            domain: self.domain,
            begin: Timestamp::from_micros(self.begin.saturating_mul(1_000_000)),
            end: Timestamp::from_micros(self.end.saturating_mul(1_000_000)),
            policy: self.policy,
            senders: self.senders.into_iter().map(|(name, counts)| counts.finish(name)).collect(),
        })
    }
}

impl SenderCounts {
    fn finish(self, header_from: String) -> DmarcSender {
        let source = |(address, counts): (IpAddr, SourceCounts)| DmarcSource {
            address,
            messages: counts.messages,
            dkim_passed: counts.dkim_passed,
            spf_passed: counts.spf_passed,
            failed: counts.failed,
        };
        let mut sources: Vec<DmarcSource> = self.sources.into_iter().map(source).collect();
        sort_and_limit_sources(&mut sources);
        DmarcSender {
            header_from,
            messages: self.messages,
            passed: self.passed,
            quarantined: self.quarantined,
            rejected: self.rejected,
            sources,
        }
    }
}
