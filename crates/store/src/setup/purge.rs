//! Removal of servers and accounts that can no longer be restored, after the retention task has removed their mail.
//! Rows are removed a few at a time. Every statement is limited to the server or account, so that nothing else is
//! touched.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, LimitedObject, ServerId, Timestamp};

use super::object_counts;
use crate::domains::tracking;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// Maximum number of rows of one table that one step removes.
const ROWS_PER_STEP: i64 = 500;

/// Statement that removes some of a server's rows of a table, found by the table's other key columns.
macro_rules! delete_of_server {
    ($table:literal, $columns:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE server_id = $1 AND (",
            $columns,
            ") IN (SELECT ",
            $columns,
            " FROM ",
            $table,
            " WHERE server_id = $1 ORDER BY ",
            $columns,
            " LIMIT $2)"
        )
    };
}

const DELETE_WEBHOOKS: &str = delete_of_server!("webhooks", "id");
const DELETE_DOMAINS: &str = delete_of_server!("domains", "id");

/// Statements that remove a server's rows, in this order: rows that refer to other rows are removed before those other
/// rows.
const DELETES_OF_SERVER: &[&str] = &[
    delete_of_server!("webhook_queue", "webhook_id, event_id"),
    delete_of_server!("webhook_attempts", "id"),
    DELETE_WEBHOOKS,
    delete_of_server!("template_versions", "template_id, version"),
    delete_of_server!("templates", "id"),
    delete_of_server!("suppressions", "address"),
    delete_of_server!("idempotency_keys", "key"),
    delete_of_server!("jobs", "id"),
    delete_of_server!("saved_searches", "id"),
    // The requests of the inspector are removed with it (`ON DELETE CASCADE`); there are few.
    delete_of_server!("inspectors", "server_id"),
    delete_of_server!("search_postings", "block, token"),
    delete_of_server!("search_blocks", "first_id"),
    delete_of_server!("counters", "grain, shape, at, dimensions"),
    delete_of_server!("counter_dimensions", "id"),
    delete_of_server!("counter_marks", "server_id"),
    delete_of_server!("recipient_domains", "block, domain"),
    delete_of_server!("server_hours", "hour"),
    delete_of_server!("delivery_transcripts", "message_id, delivery_id"),
    delete_of_server!("deliveries", "message_id, id"),
    delete_of_server!("messages", "id"),
    delete_of_server!("events", "id"),
    "DELETE FROM logins WHERE credential_id IN (SELECT id FROM credentials WHERE server_id = $1 ORDER BY id LIMIT $2)",
    delete_of_server!("credentials", "id"),
    "DELETE FROM domain_reports WHERE (domain, kind, organisation, report_id) IN
     (SELECT r.domain, r.kind, r.organisation, r.report_id FROM domains d JOIN domain_reports r ON r.domain = d.name
      WHERE d.server_id = $1 AND NOT EXISTS (SELECT 1 FROM domains o WHERE o.name = d.name AND o.id <> d.id)
      ORDER BY r.domain, r.kind, r.organisation, r.report_id LIMIT $2)",
    "DELETE FROM domain_keys WHERE domain_id IN (SELECT id FROM domains WHERE server_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM domain_links WHERE domain_id IN (SELECT id FROM domains WHERE server_id = $1 ORDER BY id LIMIT $2)",
    DELETE_DOMAINS,
    "DELETE FROM gates WHERE (scope_kind, scope_key, automatic) IN
     (SELECT scope_kind, scope_key, automatic FROM gates
      WHERE scope_kind = 'server' AND scope_key = CAST(CAST($1 AS BIGINT) AS TEXT) ORDER BY automatic LIMIT $2)",
];

/// Statements that remove the rows of an account that has no servers any more, in this order.
const DELETES_OF_ACCOUNT: &[&str] = &[
    "DELETE FROM user_sessions WHERE user_id IN (SELECT id FROM users WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM user_tokens WHERE user_id IN (SELECT id FROM users WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM user_recovery_codes WHERE user_id IN (SELECT id FROM users WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM user_addresses WHERE user_id IN (SELECT id FROM users WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM saved_searches WHERE user_id IN (SELECT id FROM users WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM users WHERE id IN (SELECT id FROM users WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM invitations WHERE id IN (SELECT id FROM invitations WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM account_keys WHERE id IN (SELECT id FROM account_keys WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM creations WHERE account_id = $1 AND key IN
     (SELECT key FROM creations WHERE account_id = $1 ORDER BY key LIMIT $2)",
    "DELETE FROM domain_reports WHERE (domain, kind, organisation, report_id) IN
     (SELECT r.domain, r.kind, r.organisation, r.report_id FROM domains d JOIN domain_reports r ON r.domain = d.name
      WHERE d.account_id = $1 AND NOT EXISTS (SELECT 1 FROM domains o WHERE o.name = d.name AND o.id <> d.id)
      ORDER BY r.domain, r.kind, r.organisation, r.report_id LIMIT $2)",
    "DELETE FROM domain_keys WHERE domain_id IN (SELECT id FROM domains WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM domain_links WHERE domain_id IN (SELECT id FROM domains WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM domains WHERE id IN (SELECT id FROM domains WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM account_periods WHERE account_id = $1 AND (period, number) IN
     (SELECT period, number FROM account_periods WHERE account_id = $1 ORDER BY period, number LIMIT $2)",
    "DELETE FROM account_notices WHERE id IN (SELECT id FROM account_notices WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "UPDATE pools SET account_id = NULL WHERE id IN (SELECT id FROM pools WHERE account_id = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM former_tracking_hosts WHERE account_id = $1 AND host IN
     (SELECT host FROM former_tracking_hosts WHERE account_id = $1 ORDER BY host LIMIT $2)",
    "DELETE FROM account_counts WHERE account_id = $1 AND thing IN
     (SELECT thing FROM account_counts WHERE account_id = $1 ORDER BY thing LIMIT $2)",
];

#[boxed_futures]
impl Store {
    /// Removes some rows of one server or account that can no longer be restored. `false` if there is no such server or
    /// account, or if its mail must be removed first. The audit log of an account stays. Links in mail of a removed
    /// server work until `links_until`, if its account is kept.
    pub async fn purge_deleted(&self, links_until: Timestamp) -> Result<bool> {
        let now = self.clock.now();
        let found = self.read(move |sql| Box::pin(find(sql, now))).await?;
        match found {
            Some(DeletedOwner::Server(id)) => {
                self.change(move |sql| Box::pin(purge_server(sql, id, links_until, now))).await?;
            }
            Some(DeletedOwner::Account(id)) => {
                self.change(move |sql| Box::pin(purge_account(sql, id))).await?;
            }
            None => return Ok(false),
        }
        Ok(true)
    }
}

/// The deleted server or account whose rows are removed next.
enum DeletedOwner {
    Server(ServerId),
    Account(AccountId),
}

async fn find(sql: &Sql<'_>, now: Timestamp) -> Result<Option<DeletedOwner>, StoreError> {
    let text = "SELECT s.id FROM servers s WHERE s.delete_at <= $1
                AND NOT EXISTS (SELECT 1 FROM sends m WHERE m.server_id = s.id)
                AND NOT EXISTS (SELECT 1 FROM queue q WHERE q.server_id = s.id) ORDER BY s.delete_at LIMIT 1";
    if let Some(row) = sql.query_opt(text, &[now.into()]).await? {
        return Ok(Some(DeletedOwner::Server(ServerId(row.int(0)?))));
    }
    let text = "SELECT a.id FROM accounts a WHERE a.delete_at <= $1
                AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.account_id = a.id) ORDER BY a.delete_at LIMIT 1";
    let account = sql.query_opt(text, &[now.into()]).await?;
    account.map(|row| Ok(DeletedOwner::Account(AccountId(row.int(0)?)))).transpose()
}

async fn purge_server(
    sql: &Sql<'_>,
    id: ServerId,
    links_until: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    for text in DELETES_OF_SERVER {
        if *text == DELETE_DOMAINS {
            tracking::keep_hosts_of_server(sql, id, ROWS_PER_STEP, links_until, now).await?;
        }
        let removed = sql.execute(text, &[id.0.into(), ROWS_PER_STEP.into()]).await?;
        if removed > 0 {
            return match *text {
                DELETE_WEBHOOKS => count_removed(sql, id, LimitedObject::Webhooks, removed).await,
                DELETE_DOMAINS => count_removed(sql, id, LimitedObject::Domains, removed).await,
                _ => Ok(()),
            };
        }
    }
    // Nothing refers to the server any more. The account's count is lowered only if this call removes the server:
    // another node may remove it first.
    let text = "DELETE FROM servers WHERE id = $1 RETURNING account_id";
    match sql.query_opt(text, &[id.0.into()]).await? {
        Some(row) => {
            object_counts::adjust_count(sql, AccountId(row.int(0)?), LimitedObject::Servers, -1).await
        }
        None => Ok(()),
    }
}

async fn count_removed(
    sql: &Sql<'_>,
    id: ServerId,
    object: LimitedObject,
    removed: u64,
) -> Result<(), StoreError> {
    match object_counts::adjust_count_of_server(sql, id, object, -(removed as i64)).await {
        // Another node removed the server meanwhile.
        Err(StoreError::NotFound) => Ok(()),
        result => result,
    }
}

async fn purge_account(sql: &Sql<'_>, id: AccountId) -> Result<(), StoreError> {
    for text in DELETES_OF_ACCOUNT {
        if sql.execute(text, &[id.0.into(), ROWS_PER_STEP.into()]).await? > 0 {
            return Ok(());
        }
    }
    sql.execute("DELETE FROM accounts WHERE id = $1", &[id.0.into()]).await?;
    Ok(())
}
