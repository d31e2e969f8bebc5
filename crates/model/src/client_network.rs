//! A client's network: all its addresses count as one client.

use std::net::{IpAddr, Ipv6Addr};

/// Returns an IPv4 address itself, and the /64 of an IPv6 address: one customer of an IPv6 provider has a whole
/// /64. An IPv4 address in IPv6 form (`::ffff:192.0.2.1`) counts as IPv4.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_addresses_count_by_64_prefix_and_mapped_ipv4_addresses_singly() {
        let network = |text: &str| client_network(text.parse().unwrap()).to_string();
        assert_eq!(network("192.0.2.1"), "192.0.2.1");
        assert_eq!(network("::ffff:192.0.2.1"), "192.0.2.1");
        assert_ne!(network("::ffff:192.0.2.1"), network("::ffff:192.0.2.2"));
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
