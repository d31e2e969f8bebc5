//! Turns DNS answers into verdicts, by the rule of each expected record.

use super::absence::dns_error_check;
use super::answers::{AnswersView, DnsAnswers};
use super::expected::{ExpectedRecords, Rule};
use super::record::RecordCheck;
use super::service::Service;
use super::versioned_text::{self, RecordMatcher};
use super::{alias, dkim, dmarc, hosts, spf};

/// The verdict on every expected record, in the order of `expected`. Pure: the same answers give the same verdicts.
pub fn judge(expected: &ExpectedRecords, answers: &DnsAnswers) -> Vec<RecordCheck> {
    judge_all(expected, &AnswersView::new(answers))
}

/// Judges every record as far as the answers allow; `view` collects the questions that have no answer yet.
pub(super) fn judge_all(expected: &ExpectedRecords, view: &AnswersView<'_>) -> Vec<RecordCheck> {
    let judged = expected.records.iter().map(|record| {
        let check = match &record.rule {
            Rule::Spf { domain } => spf::judge(view, &expected.service, record, domain),
            Rule::DkimKey { domain, public_spki_der } => {
                dkim::judge(view, expected, record, domain, public_spki_der)
            }
            Rule::Dmarc { domain } => dmarc::judge(view, record, domain),
            Rule::Alias { domain, target } => alias::judge(view, record, domain, target),
            Rule::SpfByAddresses { domain } => {
                let service = Service { is_spf_name_usable: false, ..expected.service.clone() };
                spf::judge(view, &service, record, domain)
            }
            Rule::AnyAddress { domain } => hosts::judge_address(view, record, domain, None),
            Rule::Address { domain, address } => hosts::judge_address(view, record, domain, Some(*address)),
            Rule::Pointer { address, helo } => hosts::judge_pointer(view, record, *address, helo),
            Rule::MailHost { host } => hosts::judge_mail_host(view, record, host),
            Rule::LeadsTo { target } => hosts::judge_leads_to(view, record, target),
            Rule::VersionedText { domain, queried_name, version, needed_tag, missing_hint } => {
                let wanted = RecordMatcher { queried_name, version, needed_tag: *needed_tag, missing_hint };
                versioned_text::judge(view, record, domain, &wanted)
            }
        };
        check.unwrap_or_else(|_| dns_error_check(record, &record.name, "not asked"))
    });
    judged.collect()
}
