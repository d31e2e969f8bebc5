//! messages/cancel_hold: cancels held messages.

use postroad_app::MessageAction;

use super::actions::{self, ChangedMessagesOut};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;

/// Cancel held messages
///
/// They become `HoldCancelled` and are never sent. Needs the scope `full`.
#[crate::documented::path(
    post,
    path = "/api/v1/messages/cancel_hold",
    tag = "messages",
    operation_id = "cancelHeldMessages",
    request_body = actions::ChangeMessagesIn,
    responses((status = 200, body = crate::documented::Answer<ChangedMessagesOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ChangedMessagesOut>, Failure> {
    actions::read_and_apply(call, MessageAction::CancelHold).await
}
