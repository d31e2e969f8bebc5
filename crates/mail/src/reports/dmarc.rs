//! DMARC aggregate reports (RFC 7489, appendix C). Elements are found by name and place; unknown ones, which receivers
//! add, are passed over. Entities of a document type are never expanded.

use std::collections::BTreeMap;
use std::net::IpAddr;

use postroad_model::Timestamp;
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;

use super::{DmarcSource, DmarcSummary, NAME_BYTES_MAX, ReportProblem, shorten};

const DEPTH_MAX: usize = 16;
const RECORDS_MAX: usize = 100_000;
/// Sources kept; the totals count all.
const SOURCES_MAX: usize = 200;

#[derive(Default)]
struct Builder {
    organisation: String,
    report_id: String,
    domain: String,
    policy: String,
    begin: i64,
    end: i64,
    record: Record,
    records: usize,
    messages: u64,
    passed: u64,
    quarantined: u64,
    rejected: u64,
    sources: BTreeMap<IpAddr, Counts>,
}

#[derive(Default)]
struct Record {
    source: Option<IpAddr>,
    count: u64,
    disposition: String,
    dkim: bool,
    spf: bool,
}

#[derive(Default)]
struct Counts {
    messages: u64,
    dkim: u64,
    spf: u64,
    failed: u64,
}

/// `None` if the document is something else.
pub(super) fn parse(text: &str) -> Result<Option<DmarcSummary>, ReportProblem> {
    let damaged = ReportProblem::Damaged("the XML breaks off or is wrong");
    let mut reader = Reader::from_str(text);
    let mut path: Vec<String> = Vec::new();
    let mut value = String::new();
    let mut report = Builder::default();
    loop {
        match reader.read_event().map_err(|_| damaged)? {
            Event::Start(element) => {
                let name = shorten(element.local_name().as_ref());
                if path.is_empty() && name != "feedback" {
                    return Ok(None);
                }
                if path.len() >= DEPTH_MAX {
                    return Err(ReportProblem::Damaged("the XML is nested too deep"));
                }
                path.push(name);
                value.clear();
            }
            Event::Text(words) if value.len() < NAME_BYTES_MAX => value.push_str(&words.xml10_content()),
            Event::CData(words) if value.len() < NAME_BYTES_MAX => value.push_str(&words.xml10_content()),
            Event::GeneralRef(entity) if value.len() < NAME_BYTES_MAX => {
                // The five of XML itself and numbers; whatever the document defines stands for nothing.
                match entity.resolve_char_ref().map_err(|_| damaged)? {
                    Some(character) => value.push(character),
                    None => value.push_str(resolve_xml_entity(&entity).unwrap_or_default()),
                }
            }
            Event::End(_) => {
                let names: Vec<&str> = path.iter().skip(1).map(String::as_str).collect();
                report.take(&names, value.trim())?;
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

impl Builder {
    /// One element at its end.
    fn take(&mut self, path: &[&str], value: &str) -> Result<(), ReportProblem> {
        let number = || value.parse().map_err(|_| ReportProblem::Damaged("a number of the report is none"));
        match path {
            ["report_metadata", "org_name"] => self.organisation = shorten(value),
            ["report_metadata", "report_id"] => self.report_id = shorten(value),
            ["report_metadata", "date_range", "begin"] => self.begin = number()?,
            ["report_metadata", "date_range", "end"] => self.end = number()?,
            ["policy_published", "domain"] => self.domain = shorten(value).to_ascii_lowercase(),
            ["policy_published", "p"] => self.policy = shorten(value).to_ascii_lowercase(),
            ["record", "row", "source_ip"] => self.record.source = value.parse().ok(),
            ["record", "row", "count"] => self.record.count = u64::try_from(number()?).unwrap_or(0),
            ["record", "row", "policy_evaluated", "disposition"] => self.record.disposition = shorten(value),
            ["record", "row", "policy_evaluated", "dkim"] => {
                self.record.dkim = value.eq_ignore_ascii_case("pass");
            }
            ["record", "row", "policy_evaluated", "spf"] => {
                self.record.spf = value.eq_ignore_ascii_case("pass");
            }
            ["record"] => self.close_record()?,
            _ => {}
        }
        Ok(())
    }

    fn close_record(&mut self) -> Result<(), ReportProblem> {
        let record = std::mem::take(&mut self.record);
        self.records += 1;
        if self.records > RECORDS_MAX {
            return Err(ReportProblem::Bomb);
        }
        let counted = |is_counted: bool| if is_counted { record.count } else { 0 };
        let add = |total: &mut u64, is_counted: bool| *total = total.saturating_add(counted(is_counted));
        let has_passed = record.dkim || record.spf;
        add(&mut self.messages, true);
        add(&mut self.passed, has_passed);
        add(&mut self.quarantined, record.disposition.eq_ignore_ascii_case("quarantine"));
        add(&mut self.rejected, record.disposition.eq_ignore_ascii_case("reject"));
        if let Some(source) = record.source {
            let counts = self.sources.entry(source).or_default();
            add(&mut counts.messages, true);
            add(&mut counts.dkim, record.dkim);
            add(&mut counts.spf, record.spf);
            add(&mut counts.failed, !has_passed);
        }
        Ok(())
    }

    fn finish(self) -> Result<DmarcSummary, ReportProblem> {
        if self.domain.is_empty() || self.report_id.is_empty() {
            return Err(ReportProblem::Damaged("the report names no domain or has no id"));
        }
        let source = |(address, counts): (IpAddr, Counts)| DmarcSource {
            address,
            messages: counts.messages,
            dkim_passed: counts.dkim,
            spf_passed: counts.spf,
            failed: counts.failed,
        };
        let mut sources: Vec<DmarcSource> = self.sources.into_iter().map(source).collect();
        sources.sort_by_key(|source| std::cmp::Reverse((source.failed, source.messages)));
        sources.truncate(SOURCES_MAX);
        Ok(DmarcSummary {
            organisation: self.organisation,
            report_id: self.report_id,
            domain: self.domain,
            begin: Timestamp::from_micros(self.begin.saturating_mul(1_000_000)),
            end: Timestamp::from_micros(self.end.saturating_mul(1_000_000)),
            policy: self.policy,
            messages: self.messages,
            passed: self.passed,
            quarantined: self.quarantined,
            rejected: self.rejected,
            sources,
        })
    }
}
