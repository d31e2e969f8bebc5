//! Lists domains by a part of their name and by their state.

use postroad_boxed_futures::boxed_futures;
use postroad_model::DomainId;
use postroad_store::Domain;

use super::view::DomainView;
use super::{DomainRefusal, NamedOwner};
use crate::App;
use crate::accounts::Requester;

/// Number of domains that one read returns at most.
const DOMAINS_PER_READ: usize = 500;
/// Maximum number of domains that one call examines.
const SCANNED_MAX: usize = 10_000;

/// Selection of domains; the default takes all.
#[derive(Debug, Clone, Default)]
pub struct DomainSelection {
    /// Part of the name, in any letter case.
    pub name: String,
    pub state: Option<DomainState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainState {
    Verified,
    /// Was verified, but a required record is now missing or wrong. After 72 hours the domain is no longer verified,
    /// and still counts as failing.
    Failing,
    NotVerified,
}

impl DomainState {
    pub const ALL: [Self; 3] = [Self::Verified, Self::Failing, Self::NotVerified];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Failing => "failing",
            Self::NotVerified => "not_verified",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    fn of(domain: &Domain) -> Self {
        match (domain.failing_since, domain.is_verified()) {
            (Some(_), _) => Self::Failing,
            (None, true) => Self::Verified,
            (None, false) => Self::NotVerified,
        }
    }
}

impl DomainSelection {
    pub fn is_all(&self) -> bool {
        self.name.is_empty() && self.state.is_none()
    }

    fn contains(&self, domain: &Domain) -> bool {
        let name = self.name.to_ascii_lowercase();
        domain.name.as_str().contains(&name)
            && self.state.is_none_or(|state| state == DomainState::of(domain))
    }
}

#[boxed_futures]
impl App {
    /// Like `list_domains_as`, but only selected domains. Returns the domain after which the next call continues, if
    /// there may be more.
    pub async fn search_domains_as(
        &self,
        by: &Requester,
        owner: NamedOwner,
        selection: &DomainSelection,
        after: Option<DomainId>,
        limit: usize,
    ) -> Result<(Vec<DomainView>, Option<DomainId>), DomainRefusal> {
        let scope = self.domain_scope(by, owner).await?;
        let (mut found, mut after, mut scanned) = (Vec::new(), after, 0);
        let next = loop {
            let batch = self.inner.store.list_domains(scope.into(), after, DOMAINS_PER_READ).await?;
            let is_last = batch.len() < DOMAINS_PER_READ;
            scanned += batch.len();
            after = batch.last().map(|last| last.id).or(after);
            found.extend(batch.into_iter().filter(|domain| selection.contains(domain)));
            if found.len() > limit {
                found.truncate(limit);
                break found.last().map(|last| last.id);
            }
            if is_last {
                break None;
            }
            if scanned >= SCANNED_MAX {
                break after;
            }
        };
        Ok((self.domain_views(found).await, next))
    }
}
