//! messages/retry: tries queued messages now.

use postroad_app::MessageAction;

use super::actions::{self, ChangeMessagesIn, ChangedMessagesOut};
use crate::endpoint::Call;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;

/// Try queued messages now
///
/// Their next attempt is due at once; destinations that are held back still are. Needs the scope `full`.
#[utoipa::path(
    post,
    path = "/api/v1/messages/retry",
    tag = "messages",
    operation_id = "retryMessages",
    request_body = ChangeMessagesIn,
    responses((status = 200, body = Answer<ChangedMessagesOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ChangedMessagesOut>, Failure> {
    actions::change(call, MessageAction::Retry).await
}
