//! Reverse DNS names of addresses (PTR).

use std::net::IpAddr;

/// Reverse DNS name, such as `10.2.0.192.in-addr.arpa`, or 32 digits under `ip6.arpa`.
pub(super) fn reverse_name(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let digits = format!("{:032x}", u128::from(address));
            let labels: Vec<String> = digits.chars().rev().map(String::from).collect();
            format!("{}.ip6.arpa", labels.join("."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::reverse_name;

    #[test]
    fn ipv4_and_ipv6_addresses_get_reverse_names() {
        assert_eq!(reverse_name("192.0.2.10".parse().unwrap()), "10.2.0.192.in-addr.arpa");
        assert_eq!(
            reverse_name("2001:db8::567:89ab".parse().unwrap()),
            "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"
        );
    }
}
