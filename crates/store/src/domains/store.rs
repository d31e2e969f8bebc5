//! Domains as the other crates ask for them.

use std::collections::HashMap;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainId, DomainName, ServerId, Timestamp};

use super::records::{
    Domain, DomainCheck, DomainDelivery, DomainFilter, DomainOwner, DomainTracking, NewDkimKey, NewDomain,
    OwnerDomains, SendingDomain,
};
use super::{checks, keys, statements, tracking, untold};
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// `NotFound` without the owner, `Conflict` if it has the domain already, `LimitReached` if it has as many as it may have.
    pub async fn create_domain(&self, new: NewDomain) -> Result<Domain> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(statements::create(sql, new, now))).await
    }

    /// A domain that the server may send from, verified or not. Its own goes before its account's.
    pub async fn find_domain(&self, server_id: ServerId, name: DomainName) -> Result<Option<Domain>> {
        self.read(move |sql| Box::pin(statements::find(sql, server_id, name))).await
    }

    /// A domain of the account itself, verified or not.
    pub async fn find_account_domain(
        &self,
        account_id: AccountId,
        name: DomainName,
    ) -> Result<Option<Domain>> {
        self.read(move |sql| Box::pin(statements::find_of_account(sql, account_id, name))).await
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

    /// What an owner has before a domain of that name is added, counted up to `most`. `NotFound` without the server.
    pub async fn survey_domain_owner(
        &self,
        owner: DomainOwner,
        name: DomainName,
        most: usize,
    ) -> Result<OwnerDomains> {
        self.read(move |sql| Box::pin(statements::survey(sql, owner, name, most as i64))).await
    }

    /// `None` unless the domain is verified for the server.
    pub async fn find_sending_domain(
        &self,
        server_id: ServerId,
        name: DomainName,
    ) -> Result<Option<SendingDomain>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(statements::find_sending(sql, server_id, name, now))).await
    }

    /// What signs for a domain, and where its bounces go. `None` unless it is verified for the server.
    pub async fn find_domain_delivery(
        &self,
        server_id: ServerId,
        name: DomainName,
    ) -> Result<Option<DomainDelivery>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(keys::find_delivery(sql, server_id, name, now))).await
    }

    /// The operator's word; `None` takes it away, and links of the domain's mail work until `links_until`. A domain that
    /// becomes verified is told of: at once, or by the next node if this process has no ids for events.
    pub async fn set_domain_verified(
        &self,
        id: DomainId,
        verified_at: Option<Timestamp>,
        links_until: Timestamp,
    ) -> Result<()> {
        let now = self.clock.now();
        let ids = self.ids().is_ok();
        if ids {
            self.write_with_ids(move |sql, ids| {
                Box::pin(async move {
                    statements::set_verified(sql, Some(&ids), id, verified_at, links_until, now).await
                })
            })
            .await?;
        } else {
            self.write(move |sql| {
                Box::pin(statements::set_verified(sql, None, id, verified_at, links_until, now))
            })
            .await?;
        }
        self.note_change();
        self.notifier.notify_all();
        Ok(())
    }

    /// With its keys. Links in mail that was sent work until `links_until`.
    pub async fn delete_domain(&self, id: DomainId, links_until: Timestamp) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(statements::delete(sql, id, links_until, now))).await
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

    /// Takes domains whose check is due, from each account in turn; `running` counts the checks of accounts that have not
    /// ended. Nobody else gets them before the check is recorded or a few minutes are over.
    pub async fn claim_due_domain_checks(
        &self,
        limit: usize,
        running: HashMap<AccountId, usize>,
    ) -> Result<Vec<(DomainId, AccountId)>> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(checks::claim_due(sql, limit, running, now))).await
    }

    /// Whether the domain may be checked now: no check of it began within `apart`.
    pub async fn claim_domain_check(&self, id: DomainId, apart: Duration) -> Result<bool> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(checks::claim(sql, id, apart, now))).await
    }

    /// Records a check with everything that it changes, unless one that began later was recorded before. What becomes
    /// verified or fails is told: at once, or by the next node if this process has no ids for events.
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

    /// Writes the events of changes that processes without ids for events made. Returns how many domains they were of.
    pub async fn tell_domain_events(&self) -> Result<usize> {
        if !self.read(move |sql| Box::pin(untold::is_waiting(sql))).await? {
            return Ok(0);
        }
        let now = self.clock.now();
        let told = self
            .write_with_ids(move |sql, ids| {
                Box::pin(async move { checks::tell_waiting(sql, &ids, now).await })
            })
            .await?;
        self.notifier.notify_all();
        Ok(told)
    }

    /// Links with the host of before work until `links_until`.
    pub async fn set_domain_tracking(
        &self,
        id: DomainId,
        tracking: DomainTracking,
        links_until: Timestamp,
    ) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(tracking::set(sql, id, tracking, links_until, now))).await
    }

    /// The host names that links lead to: of verified domains, those that were set, and `track.<domain>` where it is an alias
    /// of ours; and those of before, while mail with them is kept.
    pub async fn list_tracking_hosts(&self) -> Result<Vec<String>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(tracking::list_hosts(sql, now))).await
    }

    /// Changes whenever a tracking host is added.
    pub async fn tracking_hosts_version(&self) -> Result<Option<String>> {
        self.find_setting(tracking::HOSTS_VERSION).await
    }
}
