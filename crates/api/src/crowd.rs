//! How much one address has at the same time: connections of a listener, or requests whose answers are not sent yet.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts by address; more than `each_max` of one are refused.
#[derive(Debug)]
pub(crate) struct Crowd {
    each_max: usize,
    of_addresses: Mutex<HashMap<IpAddr, usize>>,
}

/// One of the things that are counted, until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    crowd: Arc<Crowd>,
    address: IpAddr,
}

impl Crowd {
    pub(crate) fn new(each_max: usize) -> Arc<Self> {
        Arc::new(Self { each_max, of_addresses: Mutex::default() })
    }

    /// `None` if the address has as many as it may have.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Ticket> {
        let address = network(address);
        let mut of_addresses = self.of_addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let count = of_addresses.entry(address).or_default();
        if *count >= self.each_max {
            return None;
        }
        *count += 1;
        Some(Ticket { crowd: Arc::clone(self), address })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut of_addresses = self.crowd.of_addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = of_addresses.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                of_addresses.remove(&self.address);
            }
        }
    }
}

/// One customer of an IPv6 provider has a whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_number_and_no_more() {
        let crowd = Crowd::new(2);
        let enter = |address: &str| crowd.enter(address.parse().unwrap());
        let held = [enter("192.0.2.1").unwrap(), enter("::ffff:192.0.2.1").unwrap()];
        assert!(enter("192.0.2.1").is_none());
        let others =
            [enter("192.0.2.2").unwrap(), enter("2001:db8::1").unwrap(), enter("2001:db8::2").unwrap()];
        assert!(enter("2001:db8::3").is_none() && enter("2001:db8:0:1::3").is_some());
        drop(held);
        assert!(enter("192.0.2.1").is_some());
        drop(others);
        assert!(crowd.of_addresses.lock().unwrap().is_empty());
    }
}
