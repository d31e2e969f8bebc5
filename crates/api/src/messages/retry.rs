//! messages/retry: makes the next attempt of waiting messages due at once.

use postroad_app::MessageAction;

use super::actions::{self, ChangedMessagesOut};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;

/// Try queued messages now
///
/// Their next attempt is due at once; suspended or paced destinations still wait. Scheduled messages are moved with
/// send/reschedule instead. Needs the scope `full`.
#[crate::documented::path(
    post,
    path = "/api/v1/messages/retry",
    tag = "messages",
    operation_id = "retryMessages",
    request_body(
        content = actions::ChangeMessagesIn,
        example = json!({"query": "status:soft_fail to:@example.com", "dry_run": true}),
    ),
    responses((status = 200, body = crate::documented::Answer<ChangedMessagesOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ChangedMessagesOut>, Failure> {
    actions::read_and_apply(call, MessageAction::Retry).await
}
