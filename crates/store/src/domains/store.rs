//! Domains as the other crates ask for them.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, DomainName, ServerId, Timestamp};

use super::records::{
    Domain, DomainCheck, DomainDelivery, DomainFilter, DomainOwner, DomainTracking, NewDkimKey, NewDomain,
    SendingDomain,
};
use super::{checks, keys, statements, tracking};
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// `NotFound` without the owner, `Conflict` if it has the domain already.
    pub async fn create_domain(&self, new: NewDomain) -> Result<Domain> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(statements::create(sql, new, now))).await
    }

    /// A domain that the server may send from, verified or not. Its own goes before its account's.
    pub async fn find_domain(&self, server_id: ServerId, name: DomainName) -> Result<Option<Domain>> {
        self.read(move |sql| Box::pin(statements::find(sql, server_id, name))).await
    }

    pub async fn find_domain_by_id(&self, id: DomainId) -> Result<Option<Domain>> {
        self.read(move |sql| Box::pin(statements::find_by_id(sql, id))).await
    }

    /// The domains of that name, whoever owns them.
    pub async fn find_domains_named(&self, name: DomainName, limit: usize) -> Result<Vec<Domain>> {
        self.read(move |sql| Box::pin(statements::find_named(sql, name, limit as i64))).await
    }

    /// In the order of their ids, behind `after`.
    pub async fn list_domains(
        &self,
        filter: DomainFilter,
        after: Option<DomainId>,
        limit: usize,
    ) -> Result<Vec<Domain>> {
        self.read(move |sql| Box::pin(statements::list(sql, filter, after, limit as i64))).await
    }

    /// How many domains an owner has, counted up to `most`.
    pub async fn count_domains(&self, owner: DomainOwner, most: usize) -> Result<usize> {
        self.read(move |sql| Box::pin(statements::count(sql, owner, most as i64)))
            .await
            .map(|count| count as usize)
    }

    /// `None` unless the domain is verified for the server.
    pub async fn find_sending_domain(
        &self,
        server_id: ServerId,
        name: DomainName,
    ) -> Result<Option<SendingDomain>> {
        self.read(move |sql| Box::pin(statements::find_sending(sql, server_id, name))).await
    }

    /// What signs for a domain, and where its bounces go. `None` unless it is verified for the server.
    pub async fn find_domain_delivery(
        &self,
        server_id: ServerId,
        name: DomainName,
    ) -> Result<Option<DomainDelivery>> {
        self.read(move |sql| Box::pin(keys::find_delivery(sql, server_id, name))).await
    }

    /// The operator's word; `None` takes it away. A domain that becomes verified is told of, unless it is a tool on
    /// PostgreSQL that says so: it has no ids for events.
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
        self.notifier.notify_all();
        Ok(())
    }

    /// With its keys.
    pub async fn delete_domain(&self, id: DomainId) -> Result<()> {
        self.change(move |sql| Box::pin(statements::delete(sql, id))).await
    }

    /// Puts a key beside those that sign; it takes over when its record is found. `Conflict` if the selector is taken by
    /// one that signs or did so lately.
    pub async fn rotate_domain_key(
        &self,
        id: DomainId,
        key: NewDkimKey,
        next_check_at: Timestamp,
    ) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(keys::rotate(sql, id, key, next_check_at, now))).await
    }

    /// Takes domains whose check is due, from each account in turn. Nobody else gets them before the check is recorded
    /// or a few minutes are over.
    pub async fn claim_due_domain_checks(&self, limit: usize) -> Result<Vec<DomainId>> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(checks::claim_due(sql, limit as i64, now))).await
    }

    /// Whether the domain may be checked now: no check of it began within `apart`.
    pub async fn claim_domain_check(&self, id: DomainId, apart: Duration) -> Result<bool> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(checks::claim(sql, id, apart, now))).await
    }

    /// Records a check with everything that it changes. What becomes verified or fails is told, except by a tool on
    /// PostgreSQL: it has no ids for events.
    /// Returns whether sending is affected.
    pub async fn record_domain_check(&self, check: DomainCheck) -> Result<bool> {
        let now = self.clock.now();
        let affects_sending = if self.ids().is_err() {
            self.write(move |sql| Box::pin(checks::record(sql, None, check, now))).await?
        } else {
            let record = self.write_with_ids(move |sql, ids| {
                Box::pin(async move { checks::record(sql, Some(&ids), check, now).await })
            });
            record.await?
        };
        if affects_sending {
            self.note_change();
            self.notifier.notify_all();
        }
        Ok(affects_sending)
    }

    pub async fn set_domain_tracking(&self, id: DomainId, tracking: DomainTracking) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(tracking::set(sql, id, tracking, now))).await
    }

    /// The host names that links lead to: those that were set, and `track.<domain>` where it is an alias of ours.
    pub async fn list_tracking_hosts(&self) -> Result<Vec<String>> {
        self.read(move |sql| Box::pin(tracking::list_hosts(sql))).await
    }
}
