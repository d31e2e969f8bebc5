//! messages/search: the server's messages by conditions, newest first.

use crate::documented::ToSchema;
use postroad_app::SearchRequest;
use postroad_model::{Limits, MessageId, Status, Timestamp};
use postroad_openapi_macros::request_fields;
use postroad_store::{SearchFilter, SearchItem};
use serde::Serialize;

use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings, expect_array, expect_text};
use crate::json::{self, Json};
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, Pagination, read_cursor, read_limit};

/// Estimated memory that one item takes until it is written.
const ITEM_BYTES: usize = 4 << 10;

/// Conditions, and page. A message must match all conditions. Without conditions: all messages.
#[request_fields]
#[schema(example = json!({"q": "to:@gmail.com \"order 1001\" -status:sent", "since": "2026-11-01T00:00:00Z"}))]
pub(crate) struct SearchMessagesIn {
    /// Words, quoted texts and pairs: `to:`, `from:`, `subject:`, `tag:`, `status:`, `domain:`, `template:`,
    /// `metadata:key=value`, `id:`, `token:`, `message_id:`, `before:`, `after:`, `has:attachment`. A minus before one
    /// of these excludes the messages that match it.
    q: Option<String>,
    /// Messages with this status, or with one of these.
    status: Option<StatusesIn>,
    /// The tag, exactly.
    tag: Option<String>,
    /// A part of the sender's address.
    from: Option<String>,
    /// A part of the recipient's address.
    to: Option<String>,
    /// The domain of the From address, as in analytics.
    domain: Option<String>,
    /// Alias of the template, or its id if it has no alias.
    template: Option<String>,
    /// Accepted by Postroad at this time or later (RFC 3339).
    since: Option<String>,
    /// Accepted by Postroad before this time (RFC 3339).
    until: Option<String>,
    /// Messages with all of these entries.
    #[schema(value_type = Option<Object>)]
    metadata: Option<()>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[request_fields]
#[serde(untagged)]
pub(crate) enum StatusesIn {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchMessagesOut {
    items: Vec<SearchItemOut>,
}

/// One message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchItemOut {
    id: i64,
    token: String,
    #[schema(example = "Sent")]
    status: &'static str,
    rcpt_to: String,
    mail_from: String,
    subject: String,
    message_id: String,
    tag: Option<String>,
    template: Option<String>,
    /// When Postroad accepted it.
    #[schema(format = DateTime)]
    timestamp: String,
    /// Bytes.
    size: u64,
    test: bool,
    /// Why a held message is held: `suppressed`, `hourly_limit`, `account_limit`, `development` or `credential`.
    held_reason: Option<String>,
}

/// Parsed request.
#[derive(Debug)]
pub(crate) struct PageRequest {
    request: SearchRequest,
    limit: usize,
    before: Option<MessageId>,
}

/// Search messages
///
/// Outgoing messages, newest first. A search with few matches returns after a moment with what it has found, perhaps
/// nothing, and `has_more`: continue with the cursor.
#[crate::documented::path(
    post,
    path = "/api/v1/messages/search",
    tag = "messages",
    operation_id = "searchMessages",
    request_body = SearchMessagesIn,
    responses((status = 200, body = crate::documented::Answer<SearchMessagesOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<SearchMessagesOut>, Failure> {
    let mut findings = Findings::default();
    let PageRequest { request, limit, before } = read(&call.body, &mut findings)?;
    let filter = request.filter().unwrap_or_else(|problems| {
        for problem in problems {
            findings.problem(problem.pointer, problem.message);
        }
        SearchFilter::default()
    });
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * ITEM_BYTES).await?.into();
    let page = call.app.search_messages(&call.caller, filter, before, limit).await?;
    let next = page.next.map(|id| id.0.to_string());
    let flags = Flags { pagination: Some(Pagination::new(limit, next)), warnings, ..Flags::default() };
    let items = page.items.into_iter().map(SearchItemOut::from).collect();
    Ok(Success { data: SearchMessagesOut { items }, flags, memory })
}

/// Parses the request; `SearchMessagesIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<PageRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let request = SearchRequest {
        q: read_text(&mut fields, "q", findings),
        statuses: read_statuses(&mut fields, findings),
        tag: read_text(&mut fields, "tag", findings),
        from: read_text(&mut fields, "from", findings),
        to: read_text(&mut fields, "to", findings),
        domain: read_text(&mut fields, "domain", findings),
        template: read_text(&mut fields, "template", findings),
        since: fields.time("since", findings),
        until: fields.time("until", findings),
        metadata: read_metadata(&mut fields, findings),
    };
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let before = read_cursor(&mut fields, findings, |text| text.parse().ok().map(MessageId));
    fields.finish(findings);
    Ok(PageRequest { request, limit, before })
}

fn read_text(fields: &mut Fields<'_>, name: &'static str, findings: &mut Findings) -> Option<String> {
    Some(fields.text(name, findings)?.into_owned())
}

/// Takes `status`: one name or an array of names.
fn read_statuses(fields: &mut Fields<'_>, findings: &mut Findings) -> Vec<Status> {
    const NAMES_MAX: usize = Status::ALL.len();
    let names = match fields.take("status", findings) {
        None => return Vec::new(),
        Some(json @ Json::Text(_)) => vec![("/status".to_owned(), json)],
        Some(json) => expect_array("/status", json, NAMES_MAX, findings).unwrap_or_default(),
    };
    if names.len() > NAMES_MAX {
        findings.problem("/status", format!("`status` may have at most {NAMES_MAX} names"));
        return Vec::new();
    }
    let mut statuses = Vec::new();
    for (pointer, json) in names {
        let Some(name) = expect_text(&pointer, json, findings) else { continue };
        if let Some(status) = postroad_app::parse_status(&name) {
            statuses.push(status);
        } else {
            let names = Status::ALL.map(Status::as_str).join(", ");
            let field = pointer.trim_start_matches('/');
            findings.problem(&pointer, format!("`{field}` should be one of {names}"));
        }
    }
    statuses
}

fn read_metadata(fields: &mut Fields<'_>, findings: &mut Findings) -> Vec<(String, String)> {
    let Some(entries) = fields.loose_object("metadata", findings) else { return Vec::new() };
    let mut pairs = Vec::new();
    for (pointer, key, json) in entries.into_entries().take(Limits::METADATA_PAIRS_MAX + 1) {
        if let Some(value) = expect_text(&pointer, json, findings) {
            pairs.push((key.into_owned(), value.into_owned()));
        }
    }
    pairs
}

impl From<SearchItem> for SearchItemOut {
    fn from(item: SearchItem) -> Self {
        Self {
            id: item.id.0,
            token: item.token.0,
            status: item.status.as_str(),
            rcpt_to: item.rcpt_to,
            mail_from: item.mail_from,
            subject: item.subject,
            message_id: item.message_id,
            tag: item.tag,
            template: item.template,
            timestamp: Timestamp::to_rfc3339(item.created_at),
            size: item.size,
            test: item.test,
            held_reason: item.held_reason,
        }
    }
}
