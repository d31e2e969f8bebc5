//! Reads and parses the stored bytes of a message. A permit limits how many are parsed at the same time.

use postroad_app::access::Operation;
use postroad_app::{MessageDetail, MessageView, view_message};
use postroad_model::MessageId;
use postroad_store::Message;

use crate::problem::Problem;
use crate::visit::Visit;

/// The record of a message, or 404.
pub(crate) async fn record(visit: &Visit, server: i64, id: i64) -> Result<Message, Problem> {
    let caller = visit.caller(server, Operation::MessagesMessage).await?;
    let found = visit.app().find_message(&caller, MessageId(id), MessageDetail::Record).await?;
    found.record.ok_or(Problem::NotFound)
}

/// The stored bytes; `None` if retention has removed them.
pub(super) async fn bytes(visit: &Visit, server: i64, record: &Message) -> Result<Option<Vec<u8>>, Problem> {
    let caller = visit.caller(server, Operation::MessagesMessage).await?;
    Ok(visit.app().read_message_bytes(&caller, record).await?)
}

/// The parsed message; `None` if retention has removed its bytes.
pub(crate) async fn view(
    visit: &Visit,
    server: i64,
    record: &Message,
) -> Result<Option<MessageView>, Problem> {
    let _permit = visit.state.work.body(visit.person.user.account_id).await?;
    let Some(bytes) = bytes(visit, server, record).await? else { return Ok(None) };
    let parsed = tokio::task::spawn_blocking(move || view_message(&bytes)).await;
    parsed.map(Some).map_err(|error| Problem::Internal(error.to_string()))
}
