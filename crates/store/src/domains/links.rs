//! Links to the DNS records of a domain. Anybody with a link can see the records until the link expires or is
//! revoked.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, DomainLinkId, Timestamp};

use super::domain::Domain;
use super::find::{find_by_id, lock};
use crate::error::StoreError;
use crate::setup::KeyHash;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

#[derive(Debug, Clone)]
pub struct NewDomainLink {
    pub domain_id: DomainId,
    pub token_hash: KeyHash,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainLink {
    pub id: DomainLinkId,
    pub domain_id: DomainId,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

#[boxed_futures]
impl Store {
    /// `NotFound` without the domain, `LimitReached` if the domain already has `links_max` unexpired links.
    pub async fn create_domain_link(&self, new: NewDomainLink, links_max: usize) -> Result<DomainLink> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(create(sql, new, links_max as i64, now))).await
    }

    /// Unexpired links of a domain, newest first.
    pub async fn list_domain_links(&self, domain_id: DomainId, limit: usize) -> Result<Vec<DomainLink>> {
        let text = "SELECT id, domain_id, created_at, expires_at FROM domain_links
                    WHERE domain_id = $1 AND expires_at > $2 ORDER BY id DESC LIMIT $3";
        let params = vec![domain_id.0.into(), self.clock.now().into(), (limit as i64).into()];
        self.fetch_all(text, params, read).await
    }

    /// The domain that a link shows. Expired and revoked links are not found.
    pub async fn find_domain_link(&self, token_hash: KeyHash) -> Result<Option<(DomainLink, Domain)>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(find(sql, token_hash, now))).await
    }

    /// `NotFound` if the domain has no such link.
    pub async fn revoke_domain_link(&self, domain_id: DomainId, id: DomainLinkId) -> Result<()> {
        let text = "DELETE FROM domain_links WHERE domain_id = $1 AND id = $2";
        self.execute_one(text, vec![domain_id.0.into(), id.0.into()]).await
    }
}

async fn create(
    sql: &Sql<'_>,
    new: NewDomainLink,
    links_max: i64,
    now: Timestamp,
) -> Result<DomainLink, StoreError> {
    lock(sql, new.domain_id).await?;
    let text =
        "SELECT id FROM domain_links WHERE domain_id = $1 AND expires_at > $2 ORDER BY id DESC LIMIT $3";
    let open = sql.query(text, &[new.domain_id.0.into(), now.into(), links_max.into()]).await?;
    if open.len() as i64 >= links_max {
        return Err(StoreError::LimitReached);
    }
    let row = sql
        .query_opt(
            "INSERT INTO domain_links (domain_id, token_hash, created_at, expires_at) VALUES ($1, $2, $3, $4)
             RETURNING id, domain_id, created_at, expires_at",
            &[new.domain_id.0.into(), new.token_hash.0.to_vec().into(), now.into(), new.expires_at.into()],
        )
        .await?;
    read(&row.ok_or(StoreError::Conflict)?)
}

async fn find(
    sql: &Sql<'_>,
    token_hash: KeyHash,
    now: Timestamp,
) -> Result<Option<(DomainLink, Domain)>, StoreError> {
    let text = "SELECT id, domain_id, created_at, expires_at FROM domain_links
                WHERE token_hash = $1 AND expires_at > $2";
    let Some(row) = sql.query_opt(text, &[token_hash.0.to_vec().into(), now.into()]).await? else {
        return Ok(None);
    };
    let link = read(&row)?;
    let domain = find_by_id(sql, link.domain_id).await?;
    Ok(domain.map(|domain| (link, domain)))
}

fn read(row: &Row) -> Result<DomainLink, StoreError> {
    Ok(DomainLink {
        id: DomainLinkId(row.int(0)?),
        domain_id: DomainId(row.int(1)?),
        created_at: row.time(2)?,
        expires_at: row.time(3)?,
    })
}
