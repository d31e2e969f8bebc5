//! Our identifiers of an original: in our own header, and in the return path as receivers and feedback reports record
//! it. Anybody can write such texts, so they prove nothing before their MAC is checked (`ReturnPathKey::parse`).

use super::address;
use super::parts::Parts;
use crate::trace::POSTROAD_ID_HEADER;

/// Headers in which receivers record the envelope sender. Instead of a `Return-Path`, Microsoft's reports have the
/// results of Microsoft's own checks (`smtp.mailfrom=`, `envelope-from=`).
const SENDER_HEADERS: [&str; 4] =
    ["return-path", "authentication-results", "received-spf", "x-original-return-path"];
/// Maximum number of candidates. Each costs a MAC, and a message has only one of ours.
const IDS_MAX: usize = 16;
/// Longest local part (RFC 5321 4.5.3.1.1).
const ID_BYTES_MAX: usize = 64;

/// Candidates, best first: our header, then return paths, which may belong to a host that forwarded the message.
pub(super) fn find_ids(parts: &Parts) -> Vec<String> {
    let header = POSTROAD_ID_HEADER.to_ascii_lowercase();
    let own = parts.original.all(&header).map(str::trim);
    let recorded = SENDER_HEADERS.iter().flat_map(|name| parts.original.all(name));
    let senders = recorded.chain(report_senders(parts)).flat_map(address::find_all).filter_map(local_part);
    let mut ids: Vec<String> = Vec::new();
    for id in own.chain(senders).filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX) {
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
        if ids.len() == IDS_MAX {
            break;
        }
    }
    ids
}

/// The envelope sender, if the report names it (RFC 5965 3.2).
fn report_senders(parts: &Parts) -> impl Iterator<Item = &str> {
    parts.feedback.as_deref().unwrap_or_default().lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("original-mail-from").then_some(value)
    })
}

/// Local part of an address that may be one of our return paths: its domain begins with `rp.`.
fn local_part(address: &str) -> Option<&str> {
    let (local_part, domain) = address.rsplit_once('@')?;
    domain.get(..3).filter(|start| start.eq_ignore_ascii_case("rp."))?;
    Some(local_part)
}
