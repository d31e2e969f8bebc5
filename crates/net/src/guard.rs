//! Check that an address is public: hosts that customers or strangers choose must not lead to the local network.
//!
//! Follows IANA's special-purpose registries. Check the address that is dialled, after DNS, not the name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

/// Azure's WireServer: instance metadata at an address that is not reserved.
const AZURE_METADATA: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(168, 63, 129, 16), 32);

const NOT_PUBLIC_V4: &[Ipv4Net] = &[
    v4(0, 0, 0, 8),      // "this network"
    v4(10, 0, 0, 8),     // private
    v4(100, 64, 0, 10),  // carrier-grade NAT
    v4(127, 0, 0, 8),    // loopback
    v4(169, 254, 0, 16), // link-local, metadata services of clouds
    AZURE_METADATA,
    v4(172, 16, 0, 12),   // private
    v4(192, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 24),    // documentation
    v4(192, 88, 99, 24),  // 6to4 relays
    v4(192, 168, 0, 16),  // private
    v4(198, 18, 0, 15),   // benchmarking
    v4(198, 51, 100, 24), // documentation
    v4(203, 0, 113, 24),  // documentation
    v4(224, 0, 0, 4),     // multicast
    v4(240, 0, 0, 4),     // reserved, broadcast
];

/// Range from which IANA assigns global unicast addresses of IPv6. Loopback, mapped, compatible, unique local (with the
/// metadata address fd00:ec2::254), link-local and multicast addresses are outside.
const GLOBAL_UNICAST: Ipv6Net = v6(0x2000, 0, 0, 3);

const NOT_PUBLIC_V6: &[Ipv6Net] = &[
    v6(0x2001, 0, 0, 23), // protocol assignments, among them Teredo, benchmarking and ORCHID
    v6(0x2001, 0xdb8, 0, 32), // documentation
    v6(0x3fff, 0, 0, 20), // documentation
];

const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 0, 16);

pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Addresses that may be dialled: the public internet, and networks that the operator allows.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    allowed: Vec<IpNet>,
}

impl Guard {
    pub fn allowing(allowed: Vec<IpNet>) -> Self {
        Self { allowed }
    }

    /// Address to dial, or `None` if it is not allowed. An IPv4-mapped address (`::ffff:a.b.c.d`) is checked and
    /// dialled as IPv4.
    pub fn check(&self, address: IpAddr) -> Option<IpAddr> {
        let address = address.to_canonical();
        let is_allowed = is_public(address) || self.allowed.iter().any(|net| net.contains(&address));
        is_allowed.then_some(address)
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|net| net.contains(&address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let octets = address.octets();
    let embedded = |at: usize| Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]);
    if NAT64.contains(&address) {
        // NAT64: how IPv6-only networks with DNS64 see the IPv4 internet.
        return is_public_v4(embedded(12));
    }
    if SIX_TO_FOUR.contains(&address) {
        return is_public_v4(embedded(2));
    }
    GLOBAL_UNICAST.contains(&address) && !NOT_PUBLIC_V6.iter().any(|net| net.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_internet_is_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2600::1",
            "2001:4860:4860::8888",
            "2a00:1450:4001::1a",
            "2001:200::1",
            "2002:808:808::1",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address} is public");
        }
    }

    #[test]
    fn special_purpose_addresses_are_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.0.1",
            "169.254.169.254",
            "168.63.129.16",
            "100.100.100.200",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            // Mapped: `Guard::check` turns these into IPv4 first.
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.1.2.3",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:0:7f00:1::",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "2002:c0a8:101::1",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff:ffff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address} is not public");
        }
    }

    #[test]
    fn networks_that_the_operator_allows_match_mapped_addresses_too() {
        let guard = Guard::allowing(vec!["10.1.0.0/16".parse().unwrap(), "::1/128".parse().unwrap()]);
        let checked = |text: &str| guard.check(text.parse().unwrap()).map(|address| address.to_string());
        assert_eq!(checked("10.1.2.3").as_deref(), Some("10.1.2.3"));
        assert_eq!(checked("::ffff:10.1.2.3").as_deref(), Some("10.1.2.3"));
        assert_eq!(checked("::1").as_deref(), Some("::1"));
        assert_eq!(checked("8.8.8.8").as_deref(), Some("8.8.8.8"));
        for refused in ["10.2.0.1", "127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"] {
            assert_eq!(checked(refused), None, "{refused}");
        }
    }
}
