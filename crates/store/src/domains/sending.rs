//! The fields that sending and delivery read of a domain that is verified for a server.

use std::fmt;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainKeyId, DomainName, ServerId, Timestamp};

use super::domain::{DomainTracking, KeyAlgorithm};
use super::lifecycle::FAILING_MAX;
use super::tracking;
use super::usable::usable;
use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

/// A verified domain, with the fields that sending needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendingDomain {
    pub tracking: DomainTracking,
    /// Whether `track.<domain>` may be used as the tracking host.
    pub has_track_host: bool,
}

/// A verified domain, with the fields that delivery needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainDelivery {
    /// RSA first. Empty if no key is active, or the DNS has denied the records of all active keys for too long.
    pub keys: Vec<SigningKey>,
    /// Whether `rp.<domain>` may be used as the bounce domain.
    pub has_return_path: bool,
}

/// A signing key.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    pub id: DomainKeyId,
    pub selector: String,
    pub algorithm: KeyAlgorithm,
    pub private_pkcs8: Vec<u8>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("selector", &self.selector)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

#[boxed_futures]
impl Store {
    /// `None` unless the domain is verified for the server.
    pub async fn find_sending_domain(
        &self,
        server_id: ServerId,
        name: DomainName,
    ) -> Result<Option<SendingDomain>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(find_sending(sql, server_id, name, now))).await
    }

    /// The signing keys of a domain, and whether its bounce domain is used. `None` unless the domain is verified for
    /// the server.
    pub async fn find_domain_delivery(
        &self,
        server_id: ServerId,
        name: DomainName,
    ) -> Result<Option<DomainDelivery>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(find_delivery(sql, server_id, name, now))).await
    }
}

/// A server's own domain takes precedence over its account's, unless it is not verified yet.
async fn find_sending(
    sql: &Sql<'_>,
    server_id: ServerId,
    name: DomainName,
    now: Timestamp,
) -> Result<Option<SendingDomain>, StoreError> {
    let text = concat!(
        "SELECT d.verified_by, d.track_opens, d.track_clicks, d.track_host, d.track_host_since, d.verified_at
         FROM domains d
         WHERE d.name = $2 AND ",
        usable!(),
        " ORDER BY d.verified_by IS NULL, coalesce(d.server_id, 0) DESC LIMIT 1"
    );
    let row = sql.query_opt(text, &[server_id.0.into(), name.as_str().into()]).await?;
    let Some(row) = row else { return Ok(None) };
    if row.text_opt(0)?.is_none() {
        return Ok(None);
    }
    let tracking = tracking::read(&row, 1)?;
    let has_track_host = match row.time_opt(4)? {
        Some(since) => tracking::is_host_served(since.max(row.time_opt(5)?.unwrap_or(since)), now),
        None => false,
    };
    Ok(Some(SendingDomain { tracking, has_track_host }))
}

async fn find_delivery(
    sql: &Sql<'_>,
    server_id: ServerId,
    name: DomainName,
    now: Timestamp,
) -> Result<Option<DomainDelivery>, StoreError> {
    let text = concat!(
        "SELECT d.id, d.verified_by, d.return_path_since FROM domains d WHERE d.name = $2 AND ",
        usable!(),
        " ORDER BY d.verified_by IS NULL, coalesce(d.server_id, 0) DESC LIMIT 1"
    );
    let domain = sql.query_opt(text, &[server_id.0.into(), name.as_str().into()]).await?;
    let Some(domain) = domain else { return Ok(None) };
    if domain.text_opt(1)?.is_none() {
        return Ok(None);
    }
    let rows = sql
        .query(
            "SELECT id, selector, algorithm, private_key FROM domain_keys
             WHERE domain_id = $1 AND state = 'active' AND (fails_since IS NULL OR fails_since > $2)
             ORDER BY algorithm DESC, id",
            &[domain.int(0)?.into(), now.minus(FAILING_MAX).into()],
        )
        .await?;
    let read = |mut row: Row| {
        Ok(SigningKey {
            id: DomainKeyId(row.int(0)?),
            selector: row.text(1)?,
            algorithm: row.parsed(2, KeyAlgorithm::parse)?,
            private_pkcs8: row.take_blob(3)?,
        })
    };
    let keys = rows.into_iter().map(read).collect::<Result<_, StoreError>>()?;
    Ok(Some(DomainDelivery { keys, has_return_path: domain.time_opt(2)?.is_some() }))
}
