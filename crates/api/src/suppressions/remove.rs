//! suppressions/remove: removes suppressions of one address or many.

use crate::documented::ToSchema;
use postroad_app::FieldProblem;
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::shared_params::{self, OneOrMany};
use super::suppression_out::FailedItemOut;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::{Failure, Reason};
use crate::fields::Findings;

/// One address, or `items` with up to 1,000 of them.
#[request_fields]
#[schema(example = json!({"address": "ann@example.com"}))]
pub(crate) struct RemoveSuppressionIn {
    /// E-mail address; or give `items`.
    address: Option<String>,
    /// Several addresses, each with its own result.
    items: Option<Vec<RemoveItemIn>>,
}

#[request_fields]
pub(crate) struct RemoveItemIn {
    /// E-mail address.
    address: String,
}

/// Result of the one address, or the results of all items in their order.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum RemovedOut {
    One(RemovedOneOut),
    Many(RemovedManyOut),
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemovedOneOut {
    #[schema(example = "removed")]
    status: &'static str,
    /// Address as sent.
    address: String,
}

#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct RemovedManyOut {
    removed: usize,
    not_found: usize,
    failed: usize,
    /// One result per item, in order.
    results: Vec<RemoveResultOut>,
}

/// Result of an item, or the problems of the item.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum RemoveResultOut {
    Done(RemovedItemOut),
    Failed(FailedItemOut),
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemovedItemOut {
    index: usize,
    /// `removed` or `not_found`
    #[schema(example = "removed")]
    status: &'static str,
    /// Address as sent.
    address: String,
}

/// Remove suppressions
///
/// Messages held because of a suppression stay held until they are released. Needs the scope `full`.
#[crate::documented::path(
    post,
    path = "/api/v1/suppressions/remove",
    tag = "suppressions",
    operation_id = "removeSuppressions",
    request_body = RemoveSuppressionIn,
    responses((status = 200, body = crate::documented::Answer<RemovedOut>)),
)]
pub(crate) async fn handle(mut call: Call) -> Result<Success<RemovedOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.body, &mut findings)?;
    call.free_body();
    let warnings = findings.reject_problems()?;
    let done = match request {
        OneOrMany::One(address) => remove_one(&call, address).await.map(RemovedOut::One),
        OneOrMany::Many(items) => remove_many(&call, items).await.map(RemovedOut::Many),
    };
    Success::with_warnings(done, warnings)
}

/// Parses the request; `RemoveSuppressionIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<OneOrMany<String>, Failure> {
    shared_params::read(text, findings, shared_params::read_address)
}

async fn remove_one(call: &Call, address: String) -> Result<RemovedOneOut, Failure> {
    let removed = call
        .app
        .remove_suppressions(&call.caller.requester(), call.caller.server_id, std::slice::from_ref(&address))
        .await?;
    let was_suppressed = removed.into_iter().next().expect("there is a result for each")?;
    if !was_suppressed {
        return Err(Reason::SuppressionNotFound.into());
    }
    Ok(RemovedOneOut { status: "removed", address })
}

async fn remove_many(
    call: &Call,
    items: Vec<Result<String, Vec<FieldProblem>>>,
) -> Result<RemovedManyOut, Failure> {
    // `readable` takes the items without problems; `items` keeps the order, and the problems of the others.
    let mut readable = Vec::with_capacity(items.len());
    let items: Vec<Result<(), Vec<FieldProblem>>> =
        items.into_iter().map(|item| item.map(|address| readable.push(address))).collect();
    let removed =
        call.app.remove_suppressions(&call.caller.requester(), call.caller.server_id, &readable).await?;
    let mut removed = readable.into_iter().zip(removed);
    let mut out = RemovedManyOut::default();
    for (index, item) in items.into_iter().enumerate() {
        let result = item.and_then(|()| {
            let (address, removed) = removed.next().expect("there is a result for each");
            removed
                .map(|was_suppressed| (address, was_suppressed))
                .map_err(|problem| shared_params::with_item_pointers(index, vec![problem]))
        });
        out.results.push(match result {
            Ok((address, was_suppressed)) => {
                *(if was_suppressed { &mut out.removed } else { &mut out.not_found }) += 1;
                let status = if was_suppressed { "removed" } else { "not_found" };
                RemoveResultOut::Done(RemovedItemOut { index, status, address })
            }
            Err(problems) => {
                out.failed += 1;
                RemoveResultOut::Failed(FailedItemOut::new(index, problems))
            }
        });
    }
    Ok(out)
}
