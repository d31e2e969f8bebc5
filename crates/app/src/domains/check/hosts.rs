//! Records of the installation's hosts: addresses, PTR names, mail servers.

use std::net::IpAddr;

use postroad_model::DomainName;

use super::absence::{dns_error_check, judge_missing, judge_unanswered};
use super::answers::{Addresses, Answer, AnswersView, NotAskedYet};
use super::expected::ExpectedRecord;
use super::record::{RecordCheck, RecordStatus, RecordType};
use super::text::{display_names, join_items};

/// Maximum number of PTR names of an address, or of MX hosts of a name, that are looked up.
const NAMES_CHECKED_MAX: usize = 10;

/// Judges whether the name has `address`; with `None`, whether it has any address.
pub(super) fn judge_address(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    domain: &DomainName,
    address: Option<IpAddr>,
) -> Result<RecordCheck, NotAskedYet> {
    let answer = view.ask(&record.name, record.record_type)?;
    let found = display_names(answer.addresses());
    match answer {
        Answer::Failed(reason) => judge_unanswered(view, record, domain, reason),
        Answer::NoSuchName | Answer::NoData => {
            // At a name with the domain twice, any address counts as the misplaced record.
            judge_missing(view, record, domain, found, |doubled| doubled.addresses().next().is_some())
        }
        Answer::Records(_)
            if address.is_none_or(|wanted| answer.addresses().any(|found| found == wanted)) =>
        {
            Ok(record.with_verdict(RecordStatus::Verified, found, None))
        }
        Answer::Records(_) => {
            let (name, value) = (&record.name, &record.value);
            let hint = format!(
                "Mail leaves from {value} and greets as {name}, which has other addresses. Add {value} to them, or greet with \
                 another name."
            );
            Ok(record.with_verdict(RecordStatus::Mismatch, found, Some(hint)))
        }
    }
}

/// Judges whether the address has a PTR name that resolves back to the address. The best such name is the HELO name.
pub(super) fn judge_pointer(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    address: IpAddr,
    helo: &DomainName,
) -> Result<RecordCheck, NotAskedYet> {
    let answer = view.ask(&record.name, RecordType::Ptr)?;
    let names = display_names(answer.names());
    let ptr_request = format!("Ask whoever gave you {address} to set its reverse DNS (PTR) to {helo}.");
    let with_verdict = |status, hint| Ok(record.with_verdict(status, names.clone(), hint));
    match answer {
        Answer::Failed(reason) => return Ok(dns_error_check(record, &record.name, reason)),
        Answer::NoSuchName | Answer::NoData => return with_verdict(RecordStatus::Missing, Some(ptr_request)),
        Answer::Records(_) => {}
    }
    let mut confirmed: Vec<&str> = Vec::new();
    let mut failure = None;
    for name in answer.names().take(NAMES_CHECKED_MAX) {
        match view.addresses(name)? {
            Addresses::Found(addresses) if addresses.contains(&address) => confirmed.push(name),
            _ => failure = failure.or(view.address_failure(name)?),
        }
    }
    match (confirmed.as_slice(), failure) {
        (names, _) if names.contains(&helo.as_str()) => with_verdict(RecordStatus::Verified, None),
        ([name, ..], _) => {
            let hint = format!(
                "{address} is named {name} and greets as {helo}. That works; receivers like it better when both are the same."
            );
            with_verdict(RecordStatus::Verified, Some(hint))
        }
        ([], Some(reason)) => Ok(dns_error_check(record, &record.name, reason)),
        ([], None) => {
            let hint = format!(
                "{address} is named {}, but no such name has this address. {ptr_request}",
                join_items(&names)
            );
            with_verdict(RecordStatus::Mismatch, Some(hint))
        }
    }
}

/// Judges whether an MX of the name is `host`, or a host that shares an address with `host`.
pub(super) fn judge_mail_host(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    host: &DomainName,
) -> Result<RecordCheck, NotAskedYet> {
    let answer = view.ask(&record.name, RecordType::Mx)?;
    let found = display_names(answer.mail_hosts().map(|(preference, name)| format!("{preference} {name}")));
    match answer {
        Answer::Failed(reason) => return judge_unanswered(view, record, host, reason),
        Answer::NoSuchName | Answer::NoData => {
            // At a name with the domain twice, any MX record counts as the misplaced record.
            return judge_missing(view, record, host, found, |doubled| doubled.mail_hosts().next().is_some());
        }
        Answer::Records(_) => {}
    }
    let names: Vec<&str> = answer.mail_hosts().map(|(_, name)| name).take(NAMES_CHECKED_MAX).collect();
    if names.contains(&host.as_str()) {
        return Ok(record.with_verdict(RecordStatus::Verified, found, None));
    }
    let ours = view.addresses(host.as_str())?;
    let mut failure = view.address_failure(host.as_str())?;
    for name in names {
        if let (Addresses::Found(theirs), Addresses::Found(ours)) = (view.addresses(name)?, &ours)
            && theirs.iter().any(|address| ours.contains(address))
        {
            return Ok(record.with_verdict(RecordStatus::Verified, found, None));
        }
        failure = failure.or(view.address_failure(name)?);
    }
    // Some addresses are unknown, so the MX host may still be ours.
    if let Some(reason) = failure {
        return Ok(dns_error_check(record, host.as_str(), reason));
    }
    let hint = format!("Bounces go to another mail server. Change the MX record to: {}", record.value);
    Ok(record.with_verdict(RecordStatus::Mismatch, found, Some(hint)))
}

/// Judges whether the name has an address. The address may be that of a proxy in front of `target`.
pub(super) fn judge_leads_to(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    target: &DomainName,
) -> Result<RecordCheck, NotAskedYet> {
    let addresses = match view.addresses(&record.name)? {
        Addresses::Found(addresses) => addresses,
        Addresses::Failed(reason) => return judge_unanswered(view, record, target, reason),
        Addresses::None => {
            let is_ours = |doubled: &Answer| doubled.names().any(|name| name == target.as_str());
            return judge_missing(view, record, target, Vec::new(), is_ours);
        }
    };
    let is_elsewhere = match view.addresses(target.as_str())? {
        Addresses::Found(ours) => !addresses.iter().any(|address| ours.contains(address)),
        Addresses::None | Addresses::Failed(_) => false,
    };
    let hint = is_elsewhere.then(|| {
        format!(
            "{} leads elsewhere than {target}. That is right only if a proxy there passes requests on.",
            record.name
        )
    });
    Ok(record.with_verdict(RecordStatus::Verified, display_names(addresses.iter()), hint))
}
