//! Signs in as the person of `postroad dev`, by a button that callers on the same machine get.

use super::form::OpenRequest;
use crate::answer::Answer;
use crate::problem::Problem;

/// The host and the origin of the request were checked before: a page of another site cannot send this form.
pub(super) async fn submit(request: OpenRequest) -> Answer {
    if !request.app().admits_developer(request.visitor.address) {
        return Err(Problem::NotFound);
    }
    let session = request.app().sign_in_as_developer(&request.visitor).await?;
    Ok(request.begin_session(&session, request.fields.text("next")))
}
