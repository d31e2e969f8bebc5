//! messages/release: queues held messages.

use postroad_app::MessageAction;

use super::actions::{self, ChangedMessagesOut};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;

/// Release held messages
///
/// They are queued, unless the recipient is still suppressed, a limit of the server or account is reached, or the
/// operator or account made the server a development server. Needs the scope `full`.
#[crate::documented::path(
    post,
    path = "/api/v1/messages/release",
    tag = "messages",
    operation_id = "releaseMessages",
    request_body = actions::ChangeMessagesIn,
    responses((status = 200, body = crate::documented::Answer<ChangedMessagesOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ChangedMessagesOut>, Failure> {
    actions::read_and_apply(call, MessageAction::Release).await
}
