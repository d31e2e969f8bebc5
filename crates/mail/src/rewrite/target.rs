//! Decides which links are tracked, and their targets.

use postroad_model::DomainName;

use super::settings::LinkRules;
use super::web_address::WebAddress;
use crate::track::TARGET_BYTES_MAX;

/// The target of a link written as `written`, valid in a `Location` header; `None` if the link is not tracked.
pub(super) fn tracked_target(written: &str, rules: &LinkRules) -> Option<String> {
    // URL standard 4.4: surrounding white space, and line breaks and tabs inside, are ignored.
    let plain: String = written
        .trim_matches(|c: char| c <= ' ')
        .chars()
        .filter(|c| !matches!(c, '\t' | '\r' | '\n'))
        .collect();
    let address = WebAddress::parse(&plain)?;
    // Percent-encoding may triple the length of a URL that is not ASCII.
    if plain.len() > TARGET_BYTES_MAX / 3 && !plain.is_ascii() || plain.len() > TARGET_BYTES_MAX {
        return None;
    }
    if rules.excludes(&plain, &address) {
        return None;
    }
    let target = ascii_url(&plain, &address)?;
    (target.len() <= TARGET_BYTES_MAX).then_some(target)
}

/// The URL in ASCII: an international host name in DNS form, other characters beyond visible ASCII percent-encoded.
fn ascii_url(plain: &str, address: &WebAddress<'_>) -> Option<String> {
    let host_end = address.host_start + address.host.len();
    let mut out = String::with_capacity(plain.len());
    push_escaped(&plain[..address.host_start], &mut out);
    if address.host.is_ascii() {
        // A host that no client could dial is not tracked.
        let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-._~[]:%".contains(&b);
        if !address.host.bytes().all(is_host) {
            return None;
        }
        out.push_str(address.host);
    } else {
        out.push_str(DomainName::parse(address.host).ok()?.as_str());
    }
    push_escaped(&plain[host_end..], &mut out);
    Some(out)
}

fn push_escaped(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.push(char::from_digit(digit.into(), 16).unwrap_or('0').to_ascii_uppercase());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> LinkRules {
        let excluded = ["static.example.com".to_owned(), "*.example.org".to_owned()];
        let unsubscribe =
            ["https://example.com/lists/leave?u=1".to_owned(), "https://leave.example/".to_owned()];
        LinkRules::new("https://track.example.net", &excluded, unsubscribe.to_vec())
    }

    #[test]
    fn web_links_are_tracked() {
        for (written, target) in [
            ("https://example.com", "https://example.com"),
            ("HTTP://Example.COM:8080/A?b=c&d#e", "HTTP://Example.COM:8080/A?b=c&d#e"),
            ("  https://example.com/a\r\n b ", "https://example.com/a%20b"),
            ("https://bücher.example/ü?q=ä", "https://xn--bcher-kva.example/%C3%BC?q=%C3%A4"),
            ("https://user:pw@example.com/\"<>", "https://user:pw@example.com/%22%3C%3E"),
            ("https://[2001:db8::1]:80/", "https://[2001:db8::1]:80/"),
            (
                "https://example.com?next=https://other.example/",
                "https://example.com?next=https://other.example/",
            ),
            ("https://example.org/", "https://example.org/"),
            ("https://example.com/lists/join?u=1", "https://example.com/lists/join?u=1"),
            ("https://leave.example/other", "https://leave.example/other"),
        ] {
            assert_eq!(tracked_target(written, &rules()).as_deref(), Some(target), "{written}");
        }
    }

    #[test]
    fn other_links_are_left_alone() {
        for written in [
            "",
            "#top",
            "/relative",
            "//example.com/",
            "mailto:a@example.com",
            "tel:+49123",
            "data:text/html,x",
            "javascript:alert(1)",
            "ftp://example.com/",
            "xhttp://example.com/",
            "http:/example.com",
            "http://",
            "https:///path",
            "{{ link }}",
            "https://{{host}}/",
            "https://static.example.com/x",
            "https://STATIC.example.com:443/x",
            "https://cdn.example.org/",
            "https://a.b.example.org/",
            "https://track.example.net/c/abc",
            "https://example.com/lists/leave?u=2",
            "https://leave.example/",
            "https://example.com/Unsubscribe?id=1",
            &format!("https://example.com/{}", "x".repeat(TARGET_BYTES_MAX)),
        ] {
            assert_eq!(tracked_target(written, &rules()), None, "{written}");
        }
    }

    #[test]
    fn a_host_is_what_a_browser_would_dial() {
        let host = |text| WebAddress::parse(text).map(|address| address.host.to_owned());
        assert_eq!(host("https://good.example@evil.example/").as_deref(), Some("evil.example"));
        assert_eq!(host("https://evil.example\\@good.example/").as_deref(), Some("evil.example"));
        assert_eq!(host("https://evil.example#@good.example/").as_deref(), Some("evil.example"));
    }
}
