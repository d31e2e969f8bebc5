//! Parameters and answers that many calls share, such as ids, the account, networks and idempotency keys.

use std::borrow::Cow;

use axum::http::HeaderMap;
use ipnet::IpNet;
use postroad_app::accounts::{Created, CreationKey};
use postroad_model::AccountId;

use crate::envelope::{AnswerMemory, Flags, Success};
use crate::fields::{Fields, Findings, expect_text};
use crate::idempotency;
use crate::json::Json;
use crate::page::Pagination;

/// Maximum number of networks that are read; `app` has its own limit.
const NETWORKS_READ_MAX: usize = 200;

/// Takes a required id. If it is missing or invalid, records a problem and returns 0.
pub(crate) fn read_required_id(fields: &mut Fields<'_>, name: &'static str, findings: &mut Findings) -> i64 {
    if fields.is_absent(name) {
        findings.missing(name);
    }
    read_integer(fields, name, findings).unwrap_or(0)
}

/// Takes an integer. `None` if the field is absent; also if it is not an integer or out of range, which is recorded as
/// a problem.
pub(crate) fn read_integer(
    fields: &mut Fields<'_>,
    name: &'static str,
    findings: &mut Findings,
) -> Option<i64> {
    match fields.take(name, findings)? {
        Json::Number(number) if !number.is_float() => {
            let value = number.as_i64();
            if value.is_none() {
                findings.problem(fields.pointer(name), format!("`{name}` is out of range"));
            }
            value
        }
        other => {
            findings.wrong_type(&fields.pointer(name), "Integer", other.type_name());
            None
        }
    }
}

/// Takes `account`: the id by which an operator key names the account.
pub(crate) fn read_account(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<AccountId> {
    read_integer(fields, "account", findings).map(AccountId)
}

pub(crate) fn read_required_text(
    fields: &mut Fields<'_>,
    name: &'static str,
    findings: &mut Findings,
) -> String {
    if fields.is_absent(name) {
        findings.missing(name);
    }
    fields.text(name, findings).unwrap_or_default().into_owned()
}

/// Takes `allow`: addresses and networks.
pub(crate) fn read_networks(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<Vec<IpNet>> {
    let entries = fields.array("allow", NETWORKS_READ_MAX, findings)?;
    let mut networks = Vec::new();
    for (pointer, entry) in entries {
        let Some(text) = expect_text(&pointer, entry, findings) else { continue };
        // A single address counts as a network of one address.
        let single = text.parse::<std::net::IpAddr>().map(IpNet::from);
        if let Ok(network) = text.parse::<IpNet>().or(single) {
            networks.push(network);
        } else {
            let field = pointer.trim_start_matches('/').to_owned();
            let message = format!("`{field}` should be an address or a network such as 192.0.2.0/24");
            findings.problem(pointer, message);
        }
    }
    Some(networks)
}

/// Idempotency key of a call that creates something, by header or field.
pub(crate) fn read_idempotency_key(
    headers: &HeaderMap,
    fields: &mut Fields<'_>,
    fingerprint: Option<[u8; 32]>,
    findings: &mut Findings,
) -> Option<CreationKey> {
    let field = fields.text(idempotency::FIELD, findings).map(|text| Cow::Owned(text.into_owned()));
    let request = idempotency::read_key(headers, field, fingerprint, findings)?;
    Some(CreationKey { key: request.key, fingerprint: request.fingerprint })
}

/// Answer with an object that was created now or by an earlier call.
pub(crate) fn creation_answer<T, Out>(
    created: Created<T>,
    show: impl FnOnce(T) -> Out,
    warnings: Vec<String>,
) -> Success<Out> {
    let flags = Flags { idempotent_replay: created.is_replay, warnings, ..Flags::default() };
    Success { data: show(created.value), flags, memory: AnswerMemory::Exempt }
}

/// Flags of one page. `next` is the cursor of the next page: the position of this page's last entry, if more entries
/// follow.
pub(crate) fn page_flags(limit: usize, next: Option<String>, warnings: Vec<String>) -> Flags {
    Flags { pagination: Some(Pagination::new(limit, next)), warnings, ..Flags::default() }
}
