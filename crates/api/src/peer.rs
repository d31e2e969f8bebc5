//! Address of the caller: the socket's peer, or the client that a trusted proxy names.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;
use postroad_app::Peer;

/// Returns the address and transport of the caller. `X-Forwarded-*` counts only from a trusted proxy. Of the addresses
/// in `X-Forwarded-For`, the right-most one that is not a trusted proxy counts: the addresses left of it are the
/// caller's own claim.
pub(crate) fn resolve(socket_peer: Peer, headers: &HeaderMap, trusted_proxies: &[IpNet]) -> Peer {
    let is_trusted = |address: IpAddr| trusted_proxies.iter().any(|network| network.contains(&address));
    let mut peer = Peer { address: socket_peer.address.to_canonical(), tls: socket_peer.tls };
    if !is_trusted(peer.address) {
        return peer;
    }
    peer.tls |=
        values(headers, "x-forwarded-proto").last().is_some_and(|proto| proto.eq_ignore_ascii_case("https"));
    for hop in values(headers, "x-forwarded-for").iter().rev() {
        // A hop that is not an address was not written by a trusted proxy; ignore everything left of it.
        let Some(address) = parse_hop(hop) else { break };
        peer.address = address;
        if !is_trusted(address) {
            break;
        }
    }
    peer
}

/// Comma-separated values of all headers with that name, in order. The client may have sent invalid bytes in front of
/// the proxy's values; the proxy's values are found nevertheless.
fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    let lines = headers.get_all(name).into_iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
    lines.flat_map(|line| line.split(',').map(|value| value.trim().to_owned()).collect::<Vec<_>>()).collect()
}

/// Parses one hop; some proxies add the port.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|peer| peer.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn resolved(socket: &str, forwarded_for: &[&str], proto: Option<&str>) -> (String, bool) {
        let mut headers = HeaderMap::new();
        for line in forwarded_for {
            headers.append("x-forwarded-for", HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        if let Some(proto) = proto {
            headers.insert("x-forwarded-proto", proto.parse().unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let peer = resolve(Peer { address: socket.parse().unwrap(), tls: false }, &headers, &trusted);
        (peer.address.to_string(), peer.tls)
    }

    #[test]
    fn forwarded_headers_of_untrusted_peers_are_ignored() {
        assert_eq!(resolved("192.0.2.1", &["198.51.100.7"], Some("https")), ("192.0.2.1".into(), false));
    }

    #[test]
    fn the_right_most_address_that_is_no_proxy_counts() {
        let cases: [(&[&str], &str); 9] = [
            (&["\u{e9}, 198.51.100.7"], "198.51.100.7"),
            (&[], "10.0.0.1"),
            (&["198.51.100.7"], "198.51.100.7"),
            (&["203.0.113.9, 198.51.100.7, 10.2.2.2"], "198.51.100.7"),
            (&["203.0.113.9", "198.51.100.7"], "198.51.100.7"),
            (&["198.51.100.7, nonsense, 10.2.2.2"], "10.2.2.2"),
            (&["198.51.100.7:4711"], "198.51.100.7"),
            (&["[2001:db8::1]:4711"], "2001:db8::1"),
            (&["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
        ];
        for (lines, expected) in cases {
            assert_eq!(resolved("::ffff:10.0.0.1", lines, None).0, expected, "{lines:?}");
        }
    }

    #[test]
    fn tls_between_client_and_trusted_proxy_counts() {
        assert!(resolved("fd00::1", &["198.51.100.7"], Some("HTTPS")).1);
        assert!(!resolved("fd00::1", &["198.51.100.7"], Some("https, http")).1);
        assert!(!resolved("fd00::1", &["198.51.100.7"], None).1);
    }
}
