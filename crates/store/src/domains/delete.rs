//! Deletes a domain with its keys and the links to its DNS records.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainId, LimitedObject, Timestamp};

use super::tracking;
use crate::error::StoreError;
use crate::setup::object_counts;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Deletes a domain with its keys and the links to its DNS records. Tracked links in sent mail work until
    /// `links_until`.
    pub async fn delete_domain(&self, id: DomainId, links_until: Timestamp) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(delete(sql, id, links_until, now))).await
    }
}

/// Deletes a domain with its keys and the links to its DNS records. Its reports expire by age; a later owner of the
/// name does not see them. Waiting mail is signed by the installation, and tracked links in sent mail work until
/// `links_until`.
async fn delete(
    sql: &Sql<'_>,
    id: DomainId,
    links_until: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    tracking::keep_hosts(sql, id, links_until, now).await?;
    tracking::increment_hosts_version(sql).await?;
    sql.execute("DELETE FROM domain_keys WHERE domain_id = $1", &[id.0.into()]).await?;
    sql.execute("DELETE FROM domain_links WHERE domain_id = $1", &[id.0.into()]).await?;
    let text = "DELETE FROM domains WHERE id = $1 RETURNING account_id";
    let deleted = sql.query_opt(text, &[id.0.into()]).await?.ok_or(StoreError::NotFound)?;
    object_counts::adjust_count(sql, AccountId(deleted.int(0)?), LimitedObject::Domains, -1).await
}
