//! Detects recipients that try to route through another host: `victim%example.net@here`,
//! `example.net!victim@here`, `"victim@example.net"@here`. Postroad would not follow them, but the receiving
//! host might, which would make Postroad the first hop of an open relay.

use postroad_model::{DomainName, EmailAddress};

pub(crate) fn is_routed(address: &EmailAddress) -> bool {
    let Some((local_part, _)) = address.as_str().rsplit_once('@') else { return false };
    let names_host = |text: &str| DomainName::parse(text.trim_end_matches('"')).is_ok();
    local_part.contains(['@', '!']) || local_part.rsplit_once('%').is_some_and(|(_, host)| names_host(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_detected_and_unusual_local_parts_are_not() {
        let is_routed = |text: &str| is_routed(&EmailAddress::parse(text).unwrap());
        for routed in [
            "victim%example.net@example.com",
            "a%b%example.net@example.com",
            "example.net!victim@example.com",
            "\"victim@example.net\"@example.com",
            "\"victim%example.net\"@example.com",
        ] {
            assert!(is_routed(routed), "{routed}");
        }
        for plain in
            ["100%@example.com", "a+b=c.example@example.com", "50%off@example.com", "o'hara@example.com"]
        {
            assert!(!is_routed(plain), "{plain}");
        }
    }
}
