//! URL of a webhook: http or https without credentials, parsed as browsers do, so that `0x7f.1` is an IP
//! address and not a name.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

/// Longest URL; longer ones are probably mistakes.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct WebhookUrl(Url);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookUrlError {
    #[error("the URL is longer than {WEBHOOK_URL_BYTES_MAX} bytes")]
    TooLong,
    #[error("this is not a URL; use one like https://example.com/events")]
    Syntax,
    #[error("the URL must begin with https:// or http://")]
    Scheme,
    #[error("the URL must not carry a user name or password; events are signed instead")]
    Credentials,
    #[error("the URL must not have a #fragment; receivers never see it")]
    Fragment,
    #[error("the port must not be 0")]
    Port,
}

/// Host of the URL: an IP address, or a name to look up in the DNS.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WebhookHost {
    Name(String),
    Address(IpAddr),
}

impl WebhookUrl {
    pub fn parse(text: &str) -> Result<Self, WebhookUrlError> {
        if text.len() > WEBHOOK_URL_BYTES_MAX {
            return Err(WebhookUrlError::TooLong);
        }
        // The URL standard drops tabs, line ends and outer blanks; `parse` refuses them.
        if text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
            return Err(WebhookUrlError::Syntax);
        }
        let url = Url::parse(text).map_err(|_| WebhookUrlError::Syntax)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WebhookUrlError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(WebhookUrlError::Credentials);
        }
        if url.fragment().is_some() {
            return Err(WebhookUrlError::Fragment);
        }
        if url.port() == Some(0) {
            return Err(WebhookUrlError::Port);
        }
        if url.as_str().len() > WEBHOOK_URL_BYTES_MAX {
            return Err(WebhookUrlError::TooLong);
        }
        Ok(Self(url))
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    pub fn host(&self) -> WebhookHost {
        match self.0.host().expect("http and https URLs have a host") {
            Host::Domain(name) => WebhookHost::Name(name.to_owned()),
            Host::Ipv4(address) => WebhookHost::Address(address.into()),
            Host::Ipv6(address) => WebhookHost::Address(address.into()),
        }
    }

    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().expect("http and https have a port")
    }

    /// Value of the `Host` header: with the port unless it is the default.
    pub fn authority(&self) -> String {
        let host = self.0.host_str().expect("http and https URLs have a host");
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Path and query of the request line.
    pub fn target(&self) -> &str {
        &self.0[url::Position::BeforePath..url::Position::AfterQuery]
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_host_port_and_target() {
        let url = WebhookUrl::parse("https://Example.COM:8443/a%20b?c=d").unwrap();
        assert!(url.is_https());
        assert_eq!(url.host(), WebhookHost::Name("example.com".into()));
        assert_eq!((url.port(), url.authority().as_str()), (8443, "example.com:8443"));
        assert_eq!(url.target(), "/a%20b?c=d");
        let bare = WebhookUrl::parse("http://example.com").unwrap();
        assert_eq!((bare.port(), bare.authority().as_str(), bare.target()), (80, "example.com", "/"));
        assert_eq!(
            WebhookUrl::parse("https://bücher.example/").unwrap().authority(),
            "xn--bcher-kva.example"
        );
    }

    #[test]
    fn ip_addresses_are_recognised_in_every_notation() {
        for (text, address) in [
            ("http://127.0.0.1/", "127.0.0.1"),
            ("http://2130706433/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://0177.0.0.1/", "127.0.0.1"),
            ("http://[::1]:81/", "::1"),
            ("http://[::ffff:10.0.0.1]/", "::ffff:10.0.0.1"),
            ("http://127。0。0。1/", "127.0.0.1"),
        ] {
            let url = WebhookUrl::parse(text).unwrap();
            assert_eq!(url.host(), WebhookHost::Address(address.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn urls_that_cannot_be_posted_to_are_refused() {
        for (text, error) in [
            ("", WebhookUrlError::Syntax),
            ("example.com/x", WebhookUrlError::Syntax),
            ("https://", WebhookUrlError::Syntax),
            ("https://a b/", WebhookUrlError::Syntax),
            ("https://example.com/\r\nx: y", WebhookUrlError::Syntax),
            ("http://1.2.3.4.5/", WebhookUrlError::Syntax),
            ("ftp://example.com/", WebhookUrlError::Scheme),
            ("file:///etc/passwd", WebhookUrlError::Scheme),
            ("https://me:secret@example.com/", WebhookUrlError::Credentials),
            ("https://me@example.com/", WebhookUrlError::Credentials),
            ("https://example.com/#top", WebhookUrlError::Fragment),
            ("https://example.com:0/", WebhookUrlError::Port),
        ] {
            assert_eq!(WebhookUrl::parse(text), Err(error), "{text}");
        }
        let long = format!("https://example.com/{}", "x".repeat(WEBHOOK_URL_BYTES_MAX));
        assert_eq!(WebhookUrl::parse(&long), Err(WebhookUrlError::TooLong));
    }
}
