//! templates/rollback: publish an earlier version again.

use super::get::read;
use super::template_out::{TemplateOut, changed_template_answer};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Roll back a template
///
/// Mails are rendered from the version that was published before, or from the one named by `version`. The newest
/// version does not change.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/rollback",
    tag = "templates",
    operation_id = "rollBackTemplate",
    request_body = super::get::TemplateVersionIn,
    responses((status = 200, body = crate::documented::Answer<TemplateOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let published = call.app.roll_back_template(&call.caller, request).await;
    let published = published.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    Ok(changed_template_answer(&call, published, warnings).await)
}
