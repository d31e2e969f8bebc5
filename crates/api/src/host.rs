//! Host name that a request addresses.

use axum::http::Request;
use axum::http::header::HOST;

/// Host from the request target, if that names one (HTTP/2), or from the `Host` header.
pub(crate) fn of<B>(request: &Request<B>) -> Option<&str> {
    let authority = match request.uri().authority() {
        Some(authority) => authority.as_str(),
        None => request.headers().get(HOST)?.to_str().ok()?,
    };
    of_authority(authority)
}

/// Host of an authority such as `mail.example.com:8080`, without the port. `None` unless the host is a plain name or
/// address, because it is copied into a `Location` header.
pub(crate) fn of_authority(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.find(']')) {
        Some(close) => authority.split_at(close + 2),
        None => authority.find(':').map_or((authority, ""), |at| authority.split_at(at)),
    };
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            (1..=253).contains(&host.len())
                && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
        }
    };
    (is_host && is_port).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_hosts_are_refused() {
        for bad in [
            "",
            "a b",
            "a@evil.example",
            "evil.example/x",
            "[::1",
            "[x]",
            "a:b",
            "a:80:90",
            "ü.example",
            "a#b",
        ] {
            assert_eq!(of_authority(bad), None, "{bad:?}");
        }
    }
}
