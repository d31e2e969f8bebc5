//! Addresses of a host, alternating between IPv6 and IPv4.

use std::net::IpAddr;

use hickory_resolver::proto::rr::{RData, RecordType};
use postroad_boxed_futures::boxed_futures;

use super::Dns;
use super::question::{LookupFailure, Outcome};

const ADDRESSES_MAX: usize = 16;

/// Why a host cannot be dialled; the first two are permanent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressFailure {
    #[error("the host does not exist (NXDOMAIN)")]
    NoSuchHost,
    #[error("the host has no address (neither A nor AAAA)")]
    NoAddress,
    #[error("{0}")]
    Temporary(String),
    #[error("{}", LookupFailure::Busy)]
    Busy,
}

impl AddressFailure {
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Temporary(_) | Self::Busy)
    }
}

#[boxed_futures]
impl Dns {
    /// Returns 1 to 16 addresses, alternating between IPv6 and IPv4, so that a broken address family costs one
    /// attempt, not half of the attempts. If one family's look-up fails, returns the other's. An address literal
    /// returns itself.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, AddressFailure> {
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        if self.inner.ipv6 {
            let (v6, v4) = self.ask_both_families(host).await;
            let found = interleave(addresses_in(&v6), addresses_in(&v4));
            return if found.is_empty() { Err(failure_of(v6, v4)) } else { Ok(found) };
        }
        let v4 = self.ask(host, RecordType::A).await;
        let found = interleave(Vec::new(), addresses_in(&v4));
        if !found.is_empty() {
            return Ok(found);
        }
        // A host with an IPv6 address exists, so the failure is not permanent.
        match self.ask(host, RecordType::AAAA).await {
            Ok(_) => Err(AddressFailure::Temporary(
                "no IPv4 address of the host was found, and IPv6 is switched off here".to_owned(),
            )),
            v6 => Err(failure_of(v6, v4)),
        }
    }

    pub(super) async fn ask_both_families(&self, host: &str) -> (Outcome, Outcome) {
        futures_util::future::join(self.ask(host, RecordType::AAAA), self.ask(host, RecordType::A)).await
    }
}

fn addresses_in(outcome: &Outcome) -> Vec<IpAddr> {
    let records = outcome.as_ref().map(|answer| answer.records.as_slice()).unwrap_or_default();
    let address = |record: &RData| match record {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    };
    records.iter().filter_map(address).collect()
}

fn interleave(v6: Vec<IpAddr>, v4: Vec<IpAddr>) -> Vec<IpAddr> {
    let (mut v6, mut v4) = (v6.into_iter(), v4.into_iter());
    let mut all = Vec::new();
    while all.len() < ADDRESSES_MAX {
        let count_before = all.len();
        all.extend(v6.next());
        all.extend(v4.next());
        if all.len() == count_before {
            break;
        }
    }
    all
}

/// Combines two answers without an address. A name that does not exist has neither family, whatever the other
/// answer says.
fn failure_of(v6: Outcome, v4: Outcome) -> AddressFailure {
    let failures = [v6, v4].map(|outcome| outcome.err().unwrap_or(LookupFailure::NoData));
    if failures.contains(&LookupFailure::NoSuchName) {
        return AddressFailure::NoSuchHost;
    }
    // A look-up that was not made, or not waited for, says nothing about the name.
    if failures.contains(&LookupFailure::Busy) {
        return AddressFailure::Busy;
    }
    let failure = failures.into_iter().find_map(|failure| match failure {
        LookupFailure::Temporary(reason) => Some(reason),
        LookupFailure::Busy | LookupFailure::NoSuchName | LookupFailure::NoData => None,
    });
    failure.map_or(AddressFailure::NoAddress, AddressFailure::Temporary)
}
