//! account/audit: the audit log, with sign-ins and changes of the account and its objects.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_model::AccountId;
use postroad_openapi_macros::request_fields;
use postroad_store::{AuditEntry, AuditFilter, HiddenActors};
use serde::Serialize;

use crate::account_params::{page_flags, read_account, read_integer};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, read_cursor, read_limit};

/// Estimated memory of one entry in an answer.
const ENTRY_BYTES: usize = 8 << 10;

/// Filter and page of the log.
#[request_fields]
#[schema(example = json!({"operation": "servers/update"}))]
pub(crate) struct AuditIn {
    /// Only entries of this operation, such as `credentials/create`.
    operation: Option<String>,
    /// Only entries about objects of this kind, such as `server`.
    subject: Option<String>,
    /// Only entries about the object with this id.
    subject_id: Option<i64>,
    /// Only entries by actors of this kind: `command_line`, `operator_key`, `account_key`, `server_key` or `user`.
    actor: Option<String>,
    /// Only entries by the key or person with this id; together with `actor`, because a key and a person may have the
    /// same id.
    actor_id: Option<i64>,
    /// Only from this time on (RFC 3339).
    since: Option<String>,
    /// Only entries before this time (RFC 3339).
    until: Option<String>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
    /// Id of the account; required with the operator's key. 0 is the installation itself.
    account: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditListOut {
    items: Vec<AuditOut>,
}

/// One sign-in or change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditOut {
    /// 1, 2, 3 … without gaps.
    seq: i64,
    at: String,
    /// `command_line`, `operator_key`, `account_key`, `server_key` or `user`.
    #[schema(example = "account_key")]
    actor: String,
    /// Id of the key or person; null for the command line. Customers also see null for the operator's keys and people.
    actor_id: Option<i64>,
    /// IP address of the caller; null if `actor_id` is.
    address: Option<String>,
    #[schema(example = "servers/update")]
    operation: String,
    #[schema(example = "server")]
    subject: String,
    subject_id: Option<i64>,
    /// The object before the change, without secrets. Null if the object was created, or if the change is in none of
    /// its fields: then `after` describes the change.
    #[schema(value_type = Option<Object>, additional_properties)]
    before: Option<serde_json::Value>,
    /// The object after the change; null if it was deleted.
    #[schema(value_type = Option<Object>, additional_properties)]
    after: Option<serde_json::Value>,
}

/// Read the audit log
///
/// Every sign-in, and every change of the account, its people, servers, credentials, keys, domains, webhooks, templates
/// and suppressions, newest first. There is one entry for each change and none for refused calls. With several filters
/// a page may have fewer entries than `limit`, or even none, while `has_more` is true.
#[crate::documented::path(
    post,
    path = "/api/v1/account/audit",
    tag = "account",
    operation_id = "listAudit",
    request_body = AuditIn,
    responses((status = 200, body = crate::documented::Answer<AuditListOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AuditListOut>, Failure> {
    let mut findings = Findings::default();
    let (account, filter, before, limit) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * ENTRY_BYTES).await?.into();
    let page = call.app.list_audit(&call.caller, account, filter, before, limit).await?;
    let next = page.next.map(|next| next.to_string());
    let items = page.entries.into_iter().map(AuditOut::from).collect();
    Ok(Success { data: AuditListOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Account, filter, the `seq` before which the page begins, limit.
type AuditQuery = (Option<AccountId>, AuditFilter, Option<i64>, usize);

/// Parses the request; `AuditIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<AuditQuery, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let filter = AuditFilter {
        operation: fields.text("operation", findings).map(Cow::into_owned),
        subject: fields.text("subject", findings).map(Cow::into_owned),
        subject_id: read_integer(&mut fields, "subject_id", findings),
        actor: fields.text("actor", findings).map(Cow::into_owned),
        actor_id: read_integer(&mut fields, "actor_id", findings),
        hidden_actors: HiddenActors::default(),
        since: fields.time("since", findings),
        until: fields.time("until", findings),
    };
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let before = read_cursor(&mut fields, findings, |text| text.parse().ok());
    let account = read_account(&mut fields, findings);
    fields.finish(findings);
    Ok((account, filter, before, limit))
}

impl From<AuditEntry> for AuditOut {
    fn from(entry: AuditEntry) -> Self {
        Self {
            seq: entry.seq,
            at: entry.at.to_rfc3339(),
            actor: entry.actor,
            actor_id: entry.actor_id,
            address: entry.address,
            operation: entry.operation,
            subject: entry.subject,
            subject_id: entry.subject_id,
            before: entry.before,
            after: entry.after,
        }
    }
}
