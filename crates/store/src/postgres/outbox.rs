//! Releases this node's claims on the webhook outbox.

use deadpool_postgres::ClientWrapper;

use super::Node;
use crate::error::StoreError;

/// Releases all claims of this node's number. At the start, these are claims of the previous process: the events that
/// it was posting are posted again at once. If that process is still alive without its lease, some events may be posted
/// twice.
pub(super) async fn release_claims(client: &ClientWrapper, node: &Node) -> Result<(), StoreError> {
    let text =
        "UPDATE webhook_queue SET claimed_until = NULL WHERE claimed_node = $1 AND claimed_until IS NOT NULL";
    client.execute(text, &[&i64::from(node.number)]).await?;
    Ok(())
}
