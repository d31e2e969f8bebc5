//! Limits on the number of sessions, in total and per address.

use std::net::IpAddr;
use std::sync::Arc;

use postroad_net::limits::{AddressPermit, PerAddressLimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub(crate) struct SessionLimit {
    all: Arc<Semaphore>,
    all_max: usize,
    per_address: Arc<PerAddressLimit>,
}

/// Permit of one session, held until the session ends.
#[derive(Debug)]
pub(crate) struct SessionPermit {
    _permit: OwnedSemaphorePermit,
}

/// Permit that counts against the session's address. It is empty for loopback addresses, which are not counted.
#[derive(Debug)]
pub(crate) struct MaybeAddressPermit {
    _permit: Option<AddressPermit>,
}

impl SessionLimit {
    pub(crate) fn new(all_max: usize, per_address_max: usize) -> Self {
        let all_max = all_max.clamp(1, u32::MAX as usize);
        Self {
            all: Arc::new(Semaphore::new(all_max)),
            all_max,
            per_address: PerAddressLimit::new(per_address_max.max(1)),
        }
    }

    /// Takes a permit; `None` if the total limit is reached.
    pub(crate) fn take(&self) -> Option<SessionPermit> {
        Arc::clone(&self.all).try_acquire_owned().ok().map(|permit| SessionPermit { _permit: permit })
    }

    /// Takes a permit for the address; `None` if the address has reached its limit. Loopback addresses are not counted.
    pub(crate) fn take_for(&self, address: IpAddr) -> Option<MaybeAddressPermit> {
        if address.to_canonical().is_loopback() {
            return Some(MaybeAddressPermit { _permit: None });
        }
        Some(MaybeAddressPermit { _permit: Some(self.per_address.acquire(address)?) })
    }

    pub(crate) fn session_count(&self) -> usize {
        self.all_max - self.all.available_permits()
    }

    /// Waits until no session is left.
    pub(crate) async fn wait_until_empty(&self) {
        let all = u32::try_from(self.all_max).expect("`new` limits it to 32 bits");
        // The semaphore is never closed.
        drop(self.all.acquire_many(all).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_dropped_permit_is_free_again() {
        let limit = SessionLimit::new(2, 1);
        let (one, other) = (limit.take().unwrap(), limit.take().unwrap());
        assert!(limit.take().is_none());
        assert_eq!(limit.session_count(), 2);
        drop((one, other));
        assert!(limit.take().is_some());
    }

    #[test]
    fn addresses_are_counted_apart_and_ipv6_by_network() {
        let limit = Arc::new(SessionLimit::new(10, 2));
        let take = |text: &str| limit.take_for(address(text));
        let taken = [take("192.0.2.1").unwrap(), take("::ffff:192.0.2.1").unwrap()];
        assert!(take("192.0.2.1").is_none());
        assert!(take("192.0.2.2").is_some());
        let in_network = [take("2001:db8::1").unwrap(), take("2001:db8::2").unwrap()];
        assert!(take("2001:db8::3").is_none());
        assert!(take("2001:db8:0:1::3").is_some());
        let local: Vec<_> = (0..5).map(|_| take("127.0.0.1").unwrap()).collect();
        drop((taken, in_network, local));
        assert!(take("192.0.2.1").is_some());
    }
}
