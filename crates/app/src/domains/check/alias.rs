//! Names of a customer that should be aliases (CNAME) of this service's names.

use std::net::IpAddr;

use postroad_model::DomainName;

use super::absence::{dns_error_check, is_wildcard, judge_missing, wildcard_hint};
use super::answers::{Addresses, Answer, AnswersView, NotAskedYet};
use super::chain::{Chain, follow_aliases};
use super::expected::ExpectedRecord;
use super::record::{Purpose, RecordCheck, RecordStatus, RecordType};
use super::text::{display_names, display_text};

pub(super) fn judge(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    domain: &DomainName,
    target: &str,
) -> Result<RecordCheck, NotAskedYet> {
    let chain = follow_aliases(view, &record.name)?;
    let (Chain::Ends(targets) | Chain::Loop(targets) | Chain::Failed(targets, _)) = &chain;
    let found = display_names(targets.iter());
    let name = &record.name;
    // What follows our own name in the chain is not the customer's to correct.
    if targets.iter().any(|alias| alias == target) {
        return Ok(record.with_verdict(RecordStatus::Verified, found, None));
    }
    let mismatch = |hint: String| Ok(record.with_verdict(RecordStatus::Mismatch, found.clone(), Some(hint)));
    match &chain {
        Chain::Failed(_, reason) => Ok(dns_error_check(record, domain.as_str(), reason)),
        Chain::Loop(_) => mismatch(format!(
            "{name} leads into a CNAME loop, or through too many CNAMEs. Change it to {target}."
        )),
        Chain::Ends(targets) => match targets.first() {
            None => judge_without_alias(view, record, domain, target),
            Some(first) if *first == format!("{target}.{domain}") => mismatch(format!(
                "The value has your domain at its end: your DNS panel appends it. Enter {target}. with a dot at the end."
            )),
            Some(first) => {
                let answer = view.ask(name, RecordType::Cname)?;
                if is_wildcard(view, domain, RecordType::Cname, answer)? {
                    return mismatch(wildcard_hint(record, domain));
                }
                mismatch(format!(
                    "{name} points to {}. Change it to {target}.",
                    display_text(first.as_bytes())
                ))
            }
        },
    }
}

/// Judges a name that is no alias. Some DNS panels replace an alias by its addresses. For tracking links, our addresses
/// are enough; the return path needs the alias itself, for bounces and SPF.
fn judge_without_alias(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    domain: &DomainName,
    target: &str,
) -> Result<RecordCheck, NotAskedYet> {
    let name = &record.name;
    let addresses = match view.addresses(name)? {
        Addresses::Found(addresses) => addresses,
        Addresses::Failed(reason) => return Ok(dns_error_check(record, domain.as_str(), reason)),
        Addresses::None => {
            let is_ours = |answer: &Answer| answer.names().any(|name| name == target);
            return judge_missing(view, record, domain, Vec::new(), is_ours);
        }
    };
    let found = display_names(addresses.iter());
    if record.purpose == Purpose::Tracking {
        if let Addresses::Found(ours) = view.addresses(target)?
            && addresses.iter().all(|address: &IpAddr| ours.contains(address))
        {
            let hint = format!(
                "{name} has the addresses of {target}, which works until they change. A CNAME to {target} would follow them."
            );
            return Ok(record.with_verdict(RecordStatus::Verified, found, Some(hint)));
        }
        // The found addresses may be ours: a look-up of our own addresses failed.
        if let Some(reason) = view.address_failure(target)? {
            return Ok(dns_error_check(record, target, reason));
        }
    }
    let answer = view.ask(name, RecordType::A)?;
    let hint = if !answer.is_absent() && is_wildcard(view, domain, RecordType::A, answer)? {
        wildcard_hint(record, domain)
    } else {
        format!(
            "{name} has an address (A or AAAA) instead of an alias. Replace it by a CNAME to {target}; if your DNS provider \
             offers a proxy for the name, switch it off."
        )
    };
    Ok(record.with_verdict(RecordStatus::Mismatch, found, Some(hint)))
}
