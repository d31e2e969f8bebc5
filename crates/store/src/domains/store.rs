//! Public operations on domains.

use std::collections::HashMap;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainId, DomainName, ServerId, Timestamp};

use super::records::{
    Domain, DomainCheck, DomainDelivery, DomainFilter, DomainOwner, DomainTracking, NewDkimKey, NewDomain,
    OwnerDomains, SendingDomain,
};
use super::{checks, keys, pending_events, statements, tracking};
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// `NotFound` without the owner, `Conflict` if it already has the domain, `LimitReached` if it has the maximum
    /// number, `CeilingReached` if the account may have no more domains.
    pub async fn create_domain(&self, new: NewDomain) -> Result<Domain> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(statements::create(sql, new, now))).await
    }

    /// A domain that the server may send from, verified or not. Its own takes precedence over its account's.
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

    /// The domains of this name, whoever owns them.
    pub async fn find_domains_named(&self, name: DomainName, limit: usize) -> Result<Vec<Domain>> {
        self.read(move |sql| Box::pin(statements::find_named(sql, name, limit as i64))).await
    }

    /// Domains with ids after `after`, in the order of their ids.
    pub async fn list_domains(
        &self,
        filter: DomainFilter,
        after: Option<DomainId>,
        limit: usize,
    ) -> Result<Vec<Domain>> {
        self.read(move |sql| Box::pin(statements::list(sql, filter, after, limit as i64))).await
    }

    /// The owner's domains before one of this name is added, counted up to `count_max`. `NotFound` without the server.
    pub async fn survey_domain_owner(
        &self,
        owner: DomainOwner,
        name: DomainName,
        count_max: usize,
    ) -> Result<OwnerDomains> {
        self.read(move |sql| Box::pin(statements::survey(sql, owner, name, count_max as i64))).await
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

    /// The signing keys of a domain, and whether its bounce domain is used. `None` unless the domain is verified for
    /// the server.
    pub async fn find_domain_delivery(
        &self,
        server_id: ServerId,
        name: DomainName,
    ) -> Result<Option<DomainDelivery>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(keys::find_delivery(sql, server_id, name, now))).await
    }

    /// Sets the verification by the operator. `None` removes it; links of the domain's mail then work until
    /// `links_until`. A domain that becomes verified gets an event: at once, or from the next node if this process
    /// cannot create event ids.
    pub async fn set_domain_verified(
        &self,
        id: DomainId,
        verified_at: Option<Timestamp>,
        links_until: Timestamp,
    ) -> Result<()> {
        let now = self.clock.now();
        if self.ids().is_ok() {
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

    /// Deletes a domain with its keys. Links in sent mail work until `links_until`.
    pub async fn delete_domain(&self, id: DomainId, links_until: Timestamp) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(statements::delete(sql, id, links_until, now))).await
    }

    /// Adds a key next to the signing ones; it starts to sign when its record is found. Replaces a pending key of the
    /// same algorithm. `Conflict` if another key of the domain has the selector.
    pub async fn rotate_domain_key(
        &self,
        id: DomainId,
        key: NewDkimKey,
        next_check_at: Timestamp,
    ) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(keys::rotate(sql, id, key, next_check_at, now))).await
    }

    /// Claims domains whose check is due, from each account in turn; `running` counts the running checks by account.
    /// Nobody else gets them until the check is recorded or a few minutes have passed.
    pub async fn claim_due_domain_checks(
        &self,
        limit: usize,
        running: HashMap<AccountId, usize>,
    ) -> Result<Vec<(DomainId, AccountId)>> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(checks::claim_due(sql, limit, running, now))).await
    }

    /// Claims a check of the domain now. `false` if another check of it began within `apart`.
    pub async fn claim_domain_check(&self, id: DomainId, apart: Duration) -> Result<bool> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(checks::claim(sql, id, apart, now))).await
    }

    /// Records a check with all its changes, unless a later one was already recorded. Verification and failure get an
    /// event: at once, or from the next node if this process cannot create event ids. Returns whether sending is
    /// affected.
    pub async fn record_domain_check(&self, check: DomainCheck) -> Result<bool> {
        let now = self.clock.now();
        let recorded = if self.ids().is_err() {
            self.write(move |sql| Box::pin(checks::record(sql, None, check, now))).await?
        } else {
            let record = self.write_with_ids(move |sql, ids| {
                Box::pin(async move { checks::record(sql, Some(&ids), check, now).await })
            });
            record.await?
        };
        if recorded.affects_sending {
            self.note_change();
        }
        if recorded.affects_sending || recorded.has_event {
            self.notifier.notify_all();
        }
        Ok(recorded.affects_sending)
    }

    /// Writes the events of domains that earlier transactions left: those of processes that cannot create event ids,
    /// and those for the rest of an account's servers. Some at a time, and not those that another node is writing.
    pub async fn write_domain_events(&self) -> Result<()> {
        while self.read(move |sql| Box::pin(pending_events::has_waiting(sql))).await? {
            let now = self.clock.now();
            let domains = self
                .write_with_ids(move |sql, ids| {
                    Box::pin(async move { checks::write_pending_events(sql, &ids, now).await })
                })
                .await?;
            if domains == 0 {
                break;
            }
            self.notifier.notify_all();
        }
        Ok(())
    }

    /// Sets a domain's tracking. Links with the previous host work until `links_until`.
    pub async fn set_domain_tracking(
        &self,
        id: DomainId,
        tracking: DomainTracking,
        links_until: Timestamp,
    ) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(tracking::set(sql, id, tracking, links_until, now))).await
    }

    /// Tracking hosts of domains that are verified or fail: hosts that were set, and `track.<domain>` where it is an
    /// alias of ours. Also previous hosts until their `links_until`.
    pub async fn list_tracking_hosts(&self) -> Result<Vec<String>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(tracking::list_hosts(sql, now))).await
    }

    /// Changes whenever a change of a domain may have changed the list of tracking hosts.
    pub async fn tracking_hosts_version(&self) -> Result<Option<String>> {
        self.find_setting(tracking::HOSTS_VERSION).await
    }
}
