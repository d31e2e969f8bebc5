//! Tracking settings of a domain that differ from its server's, and its tracking host.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, ServerId, Timestamp};

use super::domain::DomainTracking;
use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

/// Setting that counts changes of tracking hosts, so that nodes read the list only after a change.
const HOSTS_VERSION: &str = "tracking_hosts_version";

/// After this time every node serves a new host, because nodes read the list every two seconds.
const HOSTS_READ_WITHIN: Duration = Duration::from_secs(5);

#[boxed_futures]
impl Store {
    /// Sets a domain's tracking. Links with the previous host work until `links_until`.
    pub async fn set_domain_tracking(
        &self,
        id: DomainId,
        tracking: DomainTracking,
        links_until: Timestamp,
    ) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(set_tracking(sql, id, tracking, links_until, now))).await
    }

    /// Tracking hosts of domains that are verified, or whose records fail: hosts that were set, and each
    /// `track.<domain>` that was ever an alias of the installation's tracking host. Also previous hosts until
    /// their `links_until`.
    pub async fn list_tracking_hosts(&self) -> Result<Vec<String>> {
        let text = "SELECT track_host FROM domains
                    WHERE track_host IS NOT NULL AND (verified_by IS NOT NULL OR failing_since IS NOT NULL)
                    UNION SELECT 'track.' || name FROM domains
                    WHERE track_alias_at IS NOT NULL AND (verified_by IS NOT NULL OR failing_since IS NOT NULL)
                    UNION SELECT host FROM former_tracking_hosts WHERE until > $1";
        self.fetch_all(text, vec![self.clock.now().into()], |row| row.text(0)).await
    }

    /// Changes whenever a change of a domain may have changed the list of tracking hosts.
    pub async fn tracking_hosts_version(&self) -> Result<Option<String>> {
        self.find_setting(HOSTS_VERSION).await
    }
}

/// Whether all nodes serve a host that has been usable since `since`, so that links can use it.
pub(super) fn is_host_served(since: Timestamp, now: Timestamp) -> bool {
    // A time in the future was stored before the clock was set back.
    since.plus(HOSTS_READ_WITHIN) <= now || since > now
}

async fn set_tracking(
    sql: &Sql<'_>,
    id: DomainId,
    tracking: DomainTracking,
    links_until: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    keep_hosts(sql, id, links_until, now).await?;
    increment_hosts_version(sql).await?;
    sql.execute_one(
        "UPDATE domains SET track_opens = $2, track_clicks = $3, track_host = $4, updated_at = $5 WHERE id = $1",
        &[
            id.0.into(),
            tracking.opens.into(),
            tracking.clicks.into(),
            tracking.host.into(),
            now.into(),
        ],
    )
    .await
}

/// Statement that keeps the tracking hosts of some domains until `$2`. `$domains` is a parameter or a query of domain
/// ids.
macro_rules! keep_hosts_of {
    ($domains:literal) => {
        concat!(
            "INSERT INTO former_tracking_hosts (account_id, host, until)
             SELECT account_id, host, CAST($2 AS BIGINT) FROM
               (SELECT account_id, track_host AS host FROM domains
                WHERE id IN (",
            $domains,
            ") AND track_host IS NOT NULL AND (verified_by IS NOT NULL OR failing_since IS NOT NULL)
                UNION SELECT account_id, 'track.' || name FROM domains
                WHERE id IN (",
            $domains,
            ") AND track_alias_at IS NOT NULL
                  AND (verified_by IS NOT NULL OR failing_since IS NOT NULL)) hosts
             WHERE (SELECT count(*) FROM former_tracking_hosts f WHERE f.account_id = hosts.account_id) < 1000
             ON CONFLICT (account_id, host) DO UPDATE SET until = excluded.until"
        )
    };
}

/// Keeps serving a domain's tracking hosts until `until`, because delivered mail contains them. An account that has
/// 1,000 such hosts gets no more.
pub(super) async fn keep_hosts(
    sql: &Sql<'_>,
    id: DomainId,
    until: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    remove_expired_hosts(sql, now).await?;
    sql.execute(keep_hosts_of!("$1"), &[id.0.into(), until.into()]).await?;
    Ok(())
}

/// Like `keep_hosts`, for the first domains of a server, at most `limit`.
pub(crate) async fn keep_hosts_of_server(
    sql: &Sql<'_>,
    id: ServerId,
    limit: i64,
    until: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    remove_expired_hosts(sql, now).await?;
    let text = keep_hosts_of!("SELECT id FROM domains WHERE server_id = $1 ORDER BY id LIMIT $3");
    sql.execute(text, &[id.0.into(), until.into(), limit.into()]).await?;
    Ok(())
}

async fn remove_expired_hosts(sql: &Sql<'_>, now: Timestamp) -> Result<(), StoreError> {
    sql.execute("DELETE FROM former_tracking_hosts WHERE until <= $1", &[now.into()]).await?;
    Ok(())
}

/// Makes nodes read the list of hosts again.
pub(super) async fn increment_hosts_version(sql: &Sql<'_>) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO settings (key, value) VALUES ($1, '1')
         ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(settings.value AS BIGINT) + 1 AS TEXT)",
        &[HOSTS_VERSION.into()],
    )
    .await?;
    Ok(())
}

/// Reads the columns `track_opens, track_clicks, track_host`.
pub(super) fn read(row: &Row, at: usize) -> Result<DomainTracking, StoreError> {
    let flag = |at: usize| Ok::<_, StoreError>(row.int_opt(at)?.map(|flag| flag != 0));
    Ok(DomainTracking { opens: flag(at)?, clicks: flag(at + 1)?, host: row.text_opt(at + 2)? })
}
