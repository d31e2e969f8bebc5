//! The DMARC policy of a domain: its own, or its organisational domain's (RFC 7489 6.6.3, RFC 9091).

use postroad_model::DomainName;
use postroad_net::dns::organisational_domain;

use super::absence::{dns_error_check, is_wildcard, judge_missing, judge_unanswered, wildcard_hint};
use super::answers::{Answer, AnswersView, NotAskedYet};
use super::expected::ExpectedRecord;
use super::record::{RecordCheck, RecordStatus, RecordType};
use super::text::{display_text, display_texts};

pub(super) fn judge(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    domain: &DomainName,
) -> Result<RecordCheck, NotAskedYet> {
    let answer = view.ask(&record.name, RecordType::Txt)?;
    if let Answer::Failed(reason) = answer {
        return judge_unanswered(view, record, domain, reason);
    }
    let policies: Vec<&[u8]> = answer.texts().filter(|text| is_dmarc(text)).collect();
    let found = display_texts(policies.iter().copied());
    match policies.as_slice() {
        [] => {}
        [policy] => return Ok(judge_policy(record, &record.name, policy, found)),
        several => return Ok(judge_several(record, &record.name, several, found)),
    }
    if let Some(check) = judge_organisation(view, record, domain)? {
        return Ok(check);
    }
    let texts = display_texts(answer.texts());
    if answer.is_absent() {
        let is_ours = |answer: &Answer| answer.texts().any(is_dmarc);
        return judge_missing(view, record, domain, texts, is_ours);
    }
    if is_wildcard(view, domain, RecordType::Txt, answer)? {
        return Ok(record.with_verdict(RecordStatus::Missing, texts, Some(wildcard_hint(record, domain))));
    }
    let hint = format!(
        "The TXT record at {} is not a DMARC policy: it must begin with exactly `v=DMARC1;`. Replace it by: {}",
        record.name, record.value
    );
    Ok(record.with_verdict(RecordStatus::Mismatch, texts, Some(hint)))
}

/// The verdict by the policy of the organisational domain; `None` if that domain has no policy, or is `domain` itself.
fn judge_organisation(
    view: &AnswersView<'_>,
    record: &ExpectedRecord,
    domain: &DomainName,
) -> Result<Option<RecordCheck>, NotAskedYet> {
    let organisation = organisational_domain(domain);
    if organisation == domain.as_str() {
        return Ok(None);
    }
    let name = format!("_dmarc.{organisation}");
    let answer = view.ask(&name, RecordType::Txt)?;
    if let Answer::Failed(reason) = answer {
        return Ok(Some(dns_error_check(record, organisation, reason)));
    }
    let policies: Vec<&[u8]> = answer.texts().filter(|text| is_dmarc(text)).collect();
    let found = display_texts(policies.iter().copied());
    Ok(match policies.as_slice() {
        [] => None,
        [policy] => {
            let text = String::from_utf8_lossy(policy);
            let tag = policy_tag(view, domain, &text)?;
            let mut check = judge_policy(record, &name, policy, found);
            if check.status == RecordStatus::Verified {
                let policy = tag_value(&text, tag).unwrap_or("none");
                check.hint = Some(format!(
                    "The policy of {organisation} ({tag}={}) counts for this domain too.",
                    display_text(policy.as_bytes())
                ));
            }
            Some(check)
        }
        several => Some(judge_several(record, &name, several, found)),
    })
}

/// The tag (`p`, `sp` or `np`) of the organisational domain's policy that applies to its subdomain `domain`.
fn policy_tag(
    view: &AnswersView<'_>,
    domain: &DomainName,
    policy: &str,
) -> Result<&'static str, NotAskedYet> {
    // RFC 9091: `np` applies to names that have neither MX nor A nor AAAA records.
    if tag_value(policy, "np").is_some() {
        let name = domain.as_str();
        let types = [RecordType::Mx, RecordType::A, RecordType::Aaaa];
        for record_type in types {
            view.prefetch(name, record_type);
        }
        let mut has_no_records = true;
        for record_type in types {
            has_no_records &= view.ask(name, record_type)?.is_absent();
        }
        if has_no_records {
            return Ok("np");
        }
    }
    Ok(if tag_value(policy, "sp").is_some() { "sp" } else { "p" })
}

fn judge_policy(record: &ExpectedRecord, name: &str, policy: &[u8], found: Vec<String>) -> RecordCheck {
    let text = String::from_utf8_lossy(policy);
    // Keep existing tags, such as report addresses, in the suggested value; but never suggest another name's record.
    let with_own_value = |value: String, check: RecordCheck| {
        if name == record.name { RecordCheck { value, ..check } } else { check }
    };
    let mismatch = |hint: String| {
        with_own_value(
            corrected_record(&text),
            record.with_verdict(RecordStatus::Mismatch, found.clone(), Some(hint)),
        )
    };
    for tag in ["p", "sp", "np"] {
        match tag_value(&text, tag) {
            Some(value) if !is_policy(value) => {
                return mismatch(format!(
                    "{tag}={} in the DMARC record at {name} is not a policy. It has to be {tag}=none, {tag}=quarantine or \
                     {tag}=reject.",
                    display_text(value.as_bytes())
                ));
            }
            // RFC 7489 6.6.3: a record without p=, but with an address for reports, counts as p=none.
            None if tag == "p" && tag_value(&text, "rua").is_none() => {
                return mismatch(format!(
                    "The DMARC record at {name} has no policy, so receivers ignore it. Add p=none: {}",
                    display_text(corrected_record(&text).as_bytes())
                ));
            }
            _ => {}
        }
    }
    let hint = tag_value(&text, "p").is_none().then(|| {
        format!(
            "The DMARC record at {name} has no policy; receivers take it for p=none. Better add p=none: {}",
            display_text(corrected_record(&text).as_bytes())
        )
    });
    let check = record.with_verdict(RecordStatus::Verified, found, hint);
    with_own_value(text.clone().into_owned(), check)
}

fn is_policy(value: &str) -> bool {
    ["none", "quarantine", "reject"].iter().any(|policy| policy.eq_ignore_ascii_case(value))
}

/// The record with `none` for a missing `p` and for wrong policies; all other tags keep their values.
fn corrected_record(text: &str) -> String {
    let policy = |value: Option<&str>| value.filter(|value| is_policy(value)).unwrap_or("none").to_owned();
    let mut tags = vec!["v=DMARC1".to_owned(), format!("p={}", policy(tag_value(text, "p")))];
    for (name, value) in text.split(';').skip(1).filter_map(|tag| tag.split_once('=')) {
        match (name.trim(), value.trim()) {
            ("p", _) => {}
            (name @ ("sp" | "np"), value) => tags.push(format!("{name}={}", policy(Some(value)))),
            (name, value) => tags.push(format!("{name}={value}")),
        }
    }
    tags.join("; ")
}

fn judge_several(record: &ExpectedRecord, name: &str, several: &[&[u8]], found: Vec<String>) -> RecordCheck {
    let mildest = several.iter().copied().max_by_key(|policy| mildness(policy)).unwrap_or_default();
    let hint = format!(
        "There are {} DMARC records at {name}, so receivers ignore all of them. Keep this one: {}",
        several.len(),
        display_text(mildest)
    );
    let check = record.with_verdict(RecordStatus::Multiple, found, Some(hint));
    if name != record.name {
        return check;
    }
    // Keep the existing policy and report addresses in the suggested value.
    RecordCheck { value: String::from_utf8_lossy(mildest).into_owned(), ..check }
}

/// Rank of a policy: the less mail it refuses, the higher; records without a valid policy come last. Of equals, one
/// with report addresses ranks higher. With several records none applies now, so the mildest is suggested.
fn mildness(policy: &[u8]) -> (u8, bool) {
    let text = String::from_utf8_lossy(policy);
    let mildness = match tag_value(&text, "p").map(str::to_ascii_lowercase).as_deref() {
        Some("none") => 3,
        Some("quarantine") => 2,
        Some("reject") => 1,
        _ => 0,
    };
    (mildness, tag_value(&text, "rua").is_some())
}

/// RFC 7489 6.3: `v=DMARC1` must come first; otherwise the record is ignored.
fn is_dmarc(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let first = text.split(';').next().unwrap_or_default();
    first.split_once('=').is_some_and(|(name, value)| name.trim() == "v" && value.trim() == "DMARC1")
}

fn tag_value<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    let tags = text.split(';').skip(1).filter_map(|tag| tag.split_once('='));
    tags.map(|(name, value)| (name.trim(), value.trim()))
        .find(|(name, _)| *name == wanted)
        .map(|(_, value)| value)
}
