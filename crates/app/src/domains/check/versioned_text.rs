//! TXT records that begin with their version: TLS-RPT, MTA-STS, the permission for DMARC reports.

use postroad_model::DomainName;

use super::absence::judge_unanswered;
use super::answers::{Answer, AnswersView, NotAskedYet};
use super::expected::ExpectedRecord;
use super::record::{RecordCheck, RecordStatus, RecordType};
use super::text::display_texts;

/// Tests by which a text is recognised as the wanted record.
pub(super) struct RecordMatcher<'a> {
    /// Name to look up: the record's name or, if that is a wildcard, a name that the wildcard covers.
    pub(super) queried_name: &'a str,
    pub(super) version: &'a str,
    pub(super) needed_tag: Option<&'a str>,
    pub(super) missing_hint: &'a str,
}

pub(super) fn judge(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    domain: &DomainName,
    wanted: &RecordMatcher<'_>,
) -> Result<RecordCheck, NotAskedYet> {
    let answer = view.ask(wanted.queried_name, RecordType::Txt)?;
    if let Answer::Failed(reason) = answer {
        return judge_unanswered(view, record, domain, reason);
    }
    let texts: Vec<&[u8]> = answer.texts().filter(|text| has_version(text, wanted.version)).collect();
    let found = display_texts(answer.texts());
    let (status, hint) = match texts.as_slice() {
        [] if answer.is_absent() => {
            let hint = format!("There is no such record yet. {}", wanted.missing_hint);
            (RecordStatus::Missing, Some(hint))
        }
        [] => {
            let hint =
                format!("The record has to begin with v={}. Replace it by: {}", wanted.version, record.value);
            (RecordStatus::Mismatch, Some(hint))
        }
        [text] if wanted.needed_tag.is_none_or(|tag| has_tag(text, tag)) => (RecordStatus::Verified, None),
        [_] => {
            let tag = wanted.needed_tag.unwrap_or_default();
            (
                RecordStatus::Mismatch,
                Some(format!("The tag {tag}= is missing. Change the record to: {}", record.value)),
            )
        }
        _ => {
            let hint = format!("There are several records where one is allowed. Keep only: {}", record.value);
            (RecordStatus::Multiple, Some(hint))
        }
    };
    Ok(record.with_verdict(status, found, hint))
}

fn has_version(text: &[u8], version: &str) -> bool {
    let text = String::from_utf8_lossy(text);
    let first = text.split(';').next().unwrap_or_default();
    first.split_once('=').is_some_and(|(name, value)| name.trim() == "v" && value.trim() == version)
}

fn has_tag(text: &[u8], wanted: &str) -> bool {
    let text = String::from_utf8_lossy(text);
    let mut tags = text.split(';').filter_map(|tag| tag.split_once('='));
    tags.any(|(name, value)| name.trim() == wanted && !value.trim().is_empty())
}
