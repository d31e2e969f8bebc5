//! suppressions/add: suppresses one address or many.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_app::FieldProblem;
use postroad_app::suppressions::SuppressionRequest;
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::shared_params::{self, OneOrMany};
use super::suppression_out::{FailedItemOut, SuppressionOut};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json::Json;

/// One suppression, or `items` with up to 1,000 of them.
#[request_fields]
#[schema(example = json!({"address": "ann@example.com", "reason": "manual", "details": "asked by phone"}))]
pub(crate) struct AddSuppressionIn {
    /// E-mail address; or give `items`.
    address: Option<String>,
    /// `hard_bounce`, `complaint`, `manual` (the default), `unsubscribe` or `soft_bounce`.
    reason: Option<String>,
    /// Free text, up to 500 bytes.
    details: Option<String>,
    /// Id of the message that caused the suppression. Whether the message exists is not checked.
    origin_message_id: Option<i64>,
    /// End of the suppression (RFC 3339); never if left out.
    expires_at: Option<String>,
    /// Several suppressions, each with its own result; no other field may be given then.
    items: Option<Vec<SuppressionItemIn>>,
}

#[request_fields]
pub(crate) struct SuppressionItemIn {
    /// E-mail address.
    address: String,
    /// `hard_bounce`, `complaint`, `manual` (the default), `unsubscribe` or `soft_bounce`.
    reason: Option<String>,
    /// Free text, up to 500 bytes.
    details: Option<String>,
    /// Id of the message that caused the suppression. Whether the message exists is not checked.
    origin_message_id: Option<i64>,
    /// End of the suppression (RFC 3339); never if left out.
    expires_at: Option<String>,
}

/// Result of the one suppression, or the results of all items in their order.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum AddedOut {
    One(AddedOneOut),
    Many(AddedManyOut),
}

/// Entry that is in force now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddedOneOut {
    /// `added`, or `exists`: an entry that lasts at least as long existed, and was kept.
    #[schema(example = "added")]
    status: &'static str,
    #[serde(flatten)]
    suppression: SuppressionOut,
}

#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct AddedManyOut {
    added: usize,
    exists: usize,
    failed: usize,
    /// One result per item, in order.
    results: Vec<AddResultOut>,
}

/// Entry for an item, or the problems of the item.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum AddResultOut {
    Done(AddedItemOut),
    Failed(FailedItemOut),
}

/// Entry that is in force now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddedItemOut {
    index: usize,
    /// `added` or `exists`
    #[schema(example = "added")]
    status: &'static str,
    #[serde(flatten)]
    suppression: SuppressionOut,
}

/// Suppress addresses
///
/// Later sends to a suppressed address are held, with the reason. If the address is already suppressed, the
/// older entry stays unless the new one lasts longer. Needs the scope `full`.
#[crate::documented::path(
    post,
    path = "/api/v1/suppressions/add",
    tag = "suppressions",
    operation_id = "addSuppressions",
    request_body = AddSuppressionIn,
    responses((status = 200, body = crate::documented::Answer<AddedOut>)),
)]
pub(crate) async fn handle(mut call: Call) -> Result<Success<AddedOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.body, &mut findings)?;
    call.free_body();
    let warnings = findings.reject_problems()?;
    let done = match request {
        OneOrMany::One(one) => add_one(&call, one).await.map(AddedOut::One),
        OneOrMany::Many(items) => add_many(&call, items).await.map(AddedOut::Many),
    };
    Success::with_warnings(done, warnings)
}

/// Parses the request; `AddSuppressionIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<OneOrMany<SuppressionRequest>, Failure> {
    shared_params::read(text, findings, |fields, findings| SuppressionRequest {
        address: shared_params::read_address(fields, findings),
        reason: fields.text("reason", findings).map(Cow::into_owned),
        details: fields.text("details", findings).map(Cow::into_owned),
        origin_message_id: read_origin(fields, findings),
        expires_at: fields.text("expires_at", findings).map(Cow::into_owned),
    })
}

fn read_origin(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<i64> {
    match fields.take("origin_message_id", findings)? {
        // A number out of range becomes 0, which `app` refuses.
        Json::Number(number) if !number.is_float() => Some(number.as_i64().unwrap_or_default()),
        other => {
            let pointer = fields.pointer("origin_message_id");
            findings.wrong_type(&pointer, "Integer", other.type_name());
            None
        }
    }
}

async fn add_one(call: &Call, request: SuppressionRequest) -> Result<AddedOneOut, Failure> {
    let added =
        call.app.add_suppressions(&call.caller.requester(), call.caller.server_id, &[request]).await?;
    let added = added.into_iter().next().expect("there is a result for each").map_err(Failure::validation)?;
    Ok(AddedOneOut { status: status(added.is_new), suppression: added.stored.into() })
}

async fn add_many(
    call: &Call,
    items: Vec<Result<SuppressionRequest, Vec<FieldProblem>>>,
) -> Result<AddedManyOut, Failure> {
    // `readable` takes the items without problems; `items` keeps the order, and the problems of the others.
    let mut readable = Vec::with_capacity(items.len());
    let items: Vec<Result<(), Vec<FieldProblem>>> =
        items.into_iter().map(|item| item.map(|request| readable.push(request))).collect();
    let added = call.app.add_suppressions(&call.caller.requester(), call.caller.server_id, &readable).await?;
    drop(readable);
    let mut added = added.into_iter();
    let mut out = AddedManyOut::default();
    for (index, item) in items.into_iter().enumerate() {
        let result = item.and_then(|()| {
            let added = added.next().expect("there is a result for each");
            added.map_err(|problems| shared_params::with_item_pointers(index, problems))
        });
        out.results.push(match result {
            Ok(added) => {
                *(if added.is_new { &mut out.added } else { &mut out.exists }) += 1;
                let suppression = added.stored.into();
                AddResultOut::Done(AddedItemOut { index, status: status(added.is_new), suppression })
            }
            Err(problems) => {
                out.failed += 1;
                AddResultOut::Failed(FailedItemOut::new(index, problems))
            }
        });
    }
    Ok(out)
}

fn status(is_new: bool) -> &'static str {
    if is_new { "added" } else { "exists" }
}
