//! templates/publish: which version mails are made of.

use super::get::{TemplateVersionIn, read};
use super::template_out::{TemplateOut, shown};
use crate::endpoint::Call;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::Findings;

/// Publish a version
///
/// Mails are made of the newest version from now on, or of the one that `version` names. Other nodes follow within
/// three seconds; every mail is wholly of one version.
#[utoipa::path(
    post,
    path = "/api/v1/templates/publish",
    tag = "templates",
    operation_id = "publishTemplate",
    request_body = TemplateVersionIn,
    responses((status = 200, body = Answer<TemplateOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let published = call.app.publish_template(&call.caller, request).await;
    let published = published.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    shown(&call, published, warnings).await
}
