//! Domains as the other crates ask for them.

use postroad_model::{DomainId, DomainName, ServerId, Timestamp};

use super::records::{Domain, DomainTracking, NewDomain, SigningKeys};
use super::{statements, tracking};
use crate::{Result, Store};

impl Store {
    pub async fn create_domain(&self, new: NewDomain) -> Result<Domain> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(statements::create(sql, new, now))).await
    }

    pub async fn find_domain(&self, server_id: ServerId, name: DomainName) -> Result<Option<Domain>> {
        self.read(move |sql| Box::pin(statements::find(sql, server_id, name))).await
    }

    /// What signs for a domain that is verified for this server.
    pub async fn find_signing_keys(
        &self,
        server_id: ServerId,
        name: DomainName,
    ) -> Result<Option<SigningKeys>> {
        self.read(move |sql| Box::pin(statements::find_signing_keys(sql, server_id, name))).await
    }

    /// All domains, or those of one server.
    pub async fn list_domains(&self, server_id: Option<ServerId>) -> Result<Vec<Domain>> {
        self.read(move |sql| Box::pin(statements::list(sql, server_id))).await
    }

    /// `None` takes the verified state away. One that becomes verified is told of, unless it is a tool on PostgreSQL
    /// that says so: it has no ids for events.
    pub async fn set_domain_verified(&self, id: DomainId, verified_at: Option<Timestamp>) -> Result<()> {
        let now = self.clock.now();
        if self.ids().is_err() {
            return self
                .change(move |sql| Box::pin(statements::set_verified(sql, None, id, verified_at, now)))
                .await;
        }
        self.write_with_ids(move |sql, ids| {
            Box::pin(async move { statements::set_verified(sql, Some(&ids), id, verified_at, now).await })
        })
        .await?;
        self.note_change();
        self.bells.ring_everywhere();
        Ok(())
    }

    pub async fn set_domain_tracking(&self, id: DomainId, tracking: DomainTracking) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(tracking::set(sql, id, tracking, now))).await
    }

    /// The host names that domains have for their links.
    pub async fn list_tracking_hosts(&self) -> Result<Vec<String>> {
        self.read(move |sql| Box::pin(tracking::list_hosts(sql))).await
    }
}
