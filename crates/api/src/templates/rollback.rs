//! templates/rollback: which version mails are made of.

use super::get::{TemplateVersionIn, read};
use super::template_out::{TemplateOut, shown};
use crate::endpoint::Call;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::Findings;

/// Roll back
///
/// Mails are made of the version that was published before, or of the one that `version` names. The newest version stays
/// as it is.
#[utoipa::path(
    post,
    path = "/api/v1/templates/rollback",
    tag = "templates",
    operation_id = "rollBackTemplate",
    request_body = TemplateVersionIn,
    responses((status = 200, body = Answer<TemplateOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let published = call.app.roll_back_template(&call.caller, request).await;
    let published = published.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    shown(&call, published, warnings).await
}
