//! The webhooks that are to be told of new events, written with the events.

use deadpool_postgres::ClientWrapper;
use postroad_model::EventKind;

use super::Node;
use super::columns::table;
use crate::error::StoreError;

table! { Outbox, "INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts)
    SELECT row.server_id, webhooks.id, row.event_id, row.at, 0
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS row (server_id, event_id, at, kind)
    CROSS JOIN LATERAL (SELECT id FROM webhooks WHERE webhooks.server_id = row.server_id AND webhooks.enabled = 1
        AND (webhooks.wants & row.kind) <> 0 OFFSET 0) AS webhooks",
    server_id: i64, event_id: i64, at: i64, kind: i64,
}

impl Outbox<'_> {
    pub(super) fn add(&mut self, server_id: i64, event_id: i64, at: i64, kind: EventKind) {
        self.server_id.push(server_id);
        self.event_id.push(event_id);
        self.at.push(at);
        self.kind.push(kind.bit());
    }
}

/// What the process that had this number before was telling when it ended is told again at once. Should it live on
/// without its lease, something may be told twice.
pub(super) async fn release_claims(client: &ClientWrapper, node: &Node) -> Result<(), StoreError> {
    let text =
        "UPDATE webhook_queue SET claimed_until = NULL WHERE claimed_node = $1 AND claimed_until IS NOT NULL";
    client.execute(text, &[&i64::from(node.number)]).await?;
    Ok(())
}
