//! templates/publish: publish a version.

use super::get::read;
use super::template_out::{TemplateOut, changed_template_answer};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Publish a version
///
/// From now on mails are rendered from the newest version, or from the one named by `version`. Other nodes follow
/// within three seconds; every mail uses exactly one version.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/publish",
    tag = "templates",
    operation_id = "publishTemplate",
    request_body = super::get::TemplateVersionIn,
    responses((status = 200, body = crate::documented::Answer<TemplateOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let published = call.app.publish_template(&call.caller, request).await;
    let published = published.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    Ok(changed_template_answer(&call, published, warnings).await)
}
