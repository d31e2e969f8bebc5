//! TXT records that look like SPF records but do not begin like one.

use postroad_model::DomainName;
use postroad_net::dns::TEXT_BYTES_MAX;

use super::record::{SpfRecord, is_spf};
use super::repair::strip_any_version;
use super::suggest::suggest;
use super::{RECORDS_MERGED_MAX, hints};
use crate::domains::check::absence::judge_missing;
use crate::domains::check::answers::{Answer, AnswersView, NotAskedYet};
use crate::domains::check::expected::ExpectedRecord;
use crate::domains::check::record::{RecordCheck, RecordStatus};
use crate::domains::check::service::Service;
use crate::domains::check::text::display_texts;

/// Judges a name that has no TXT record beginning with `v=spf1`.
pub(super) fn judge(
    view: &AnswersView<'_>,
    service: &Service,
    record: &ExpectedRecord,
    domain: &DomainName,
    answer: &Answer,
) -> Result<RecordCheck, NotAskedYet> {
    let is_near_miss = |text: &&[u8]| strip_any_version(&String::from_utf8_lossy(text)).is_some();
    let texts: Vec<&[u8]> = answer.texts().filter(is_near_miss).collect();
    if texts.is_empty() {
        let is_ours = |answer: &Answer| answer.texts().any(is_spf);
        return judge_missing(view, record, domain, Vec::new(), is_ours);
    }
    let found = display_texts(texts.iter().copied());
    let start = "This TXT record looks like SPF, but does not begin with v=spf1 and a space, so receivers do not see it.";
    if texts.len() > RECORDS_MERGED_MAX || texts.iter().any(|text| text.len() >= TEXT_BYTES_MAX) {
        let hint = format!("{start} Correct it, and add {} before its end.", service.spf_terms().join(" "));
        let check = record.with_verdict(RecordStatus::Mismatch, found, Some(hint));
        return Ok(RecordCheck { value: String::new(), ..check });
    }
    let rests = texts.iter().filter_map(|text| strip_any_version(&String::from_utf8_lossy(text)));
    let records: Vec<SpfRecord> = rests.map(|rest| SpfRecord::parse(&format!("v=spf1 {rest}"))).collect();
    let suggestion = suggest(view, service, &record.name, &records)?;
    let hint = format!("{start} {}", hints::offer("Replace it by", &suggestion));
    let check = record.with_verdict(RecordStatus::Mismatch, found, Some(hint));
    Ok(RecordCheck { value: suggestion.text, ..check })
}
