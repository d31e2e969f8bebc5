//! suppressions/get: whether an address is suppressed, and why.

use postroad_openapi_macros::request_fields;

use super::shared_params::read_address;
use super::suppression_out::SuppressionOut;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::{Failure, Reason};
use crate::fields::{Fields, Findings};
use crate::json;

/// The address, in any letter case; its domain in Unicode or ASCII form.
#[request_fields]
#[schema(example = json!({"address": "ann@example.com"}))]
pub(crate) struct GetSuppressionIn {
    /// E-mail address.
    address: String,
}

/// Get a suppression
///
/// `SuppressionNotFound` if the address is not suppressed, or its suppression has expired.
#[crate::documented::path(
    post,
    path = "/api/v1/suppressions/get",
    tag = "suppressions",
    operation_id = "getSuppression",
    request_body = GetSuppressionIn,
    responses((status = 200, body = crate::documented::Answer<SuppressionOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<SuppressionOut>, Failure> {
    let mut findings = Findings::default();
    let address = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = match call.app.find_suppression(call.caller.server_id, &address).await {
        Ok(found) => found.map(SuppressionOut::from).ok_or_else(|| Reason::SuppressionNotFound.into()),
        Err(refusal) => Err(refusal.into()),
    };
    Success::with_warnings(found, warnings)
}

/// Parses the request; `GetSuppressionIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<String, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let address = read_address(&mut fields, findings);
    fields.finish(findings);
    Ok(address)
}
