//! Limit per client address: for connections of a listener, or for requests whose answers are not sent yet.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use postroad_model::client_network;

/// Counts by address, for IPv6 by /64 network. Refuses an address that has reached `each_max`.
#[derive(Debug)]
pub struct PerAddressLimit {
    each_max: usize,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// Counts against its address until it is dropped.
#[derive(Debug)]
pub struct AddressPermit {
    limit: Arc<PerAddressLimit>,
    address: IpAddr,
}

impl PerAddressLimit {
    pub fn new(each_max: usize) -> Arc<Self> {
        Arc::new(Self { each_max, counts: Mutex::default() })
    }

    /// Takes a permit; `None` if the address has reached its limit.
    pub fn acquire(self: &Arc<Self>, address: IpAddr) -> Option<AddressPermit> {
        let address = client_network(address);
        let mut counts = self.counts.lock();
        let count = counts.entry(address).or_default();
        if *count >= self.each_max {
            return None;
        }
        *count += 1;
        Some(AddressPermit { limit: Arc::clone(self), address })
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut counts = self.limit.counts.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ipv4_address_and_each_ipv6_network_has_its_own_limit() {
        let limit = PerAddressLimit::new(2);
        let acquire = |address: &str| limit.acquire(address.parse().unwrap());
        let permits = [acquire("192.0.2.1").unwrap(), acquire("::ffff:192.0.2.1").unwrap()];
        assert!(acquire("192.0.2.1").is_none());
        let others =
            [acquire("192.0.2.2").unwrap(), acquire("2001:db8::1").unwrap(), acquire("2001:db8::2").unwrap()];
        assert!(acquire("2001:db8::3").is_none() && acquire("2001:db8:0:1::3").is_some());
        drop(permits);
        assert!(acquire("192.0.2.1").is_some());
        drop(others);
        assert!(limit.counts.lock().is_empty());
    }
}
