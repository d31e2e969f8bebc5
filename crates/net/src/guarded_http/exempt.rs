//! URLs of the service itself, which may be dialled at private addresses.

use postroad_model::{WebhookHost, WebhookUrl};

/// URLs made of one origin, a path prefix, and a token after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenUrls {
    is_https: bool,
    host: WebhookHost,
    port: u16,
    path: String,
}

impl TokenUrls {
    /// URLs that begin with `prefix`, such as `https://mail.example.com/inspect/`.
    pub fn below(prefix: &WebhookUrl) -> Self {
        Self {
            is_https: prefix.is_https(),
            host: prefix.host(),
            port: prefix.port(),
            path: prefix.target().to_owned(),
        }
    }

    /// Whether the URL has this scheme, host and port, and nothing but a token (and a query) after the path.
    pub(super) fn contains(&self, url: &WebhookUrl) -> bool {
        let is_same_origin =
            url.is_https() == self.is_https && url.port() == self.port && url.host() == self.host;
        is_same_origin && url.target().strip_prefix(&*self.path).is_some_and(is_token)
    }
}

fn is_token(rest: &str) -> bool {
    let token = rest.split('?').next().unwrap_or_default();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !token.is_empty() && token.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_with_a_token_after_the_prefix_are_included() {
        let url = |text: &str| WebhookUrl::parse(text).expect("it is a URL");
        let own = TokenUrls::below(&url("http://127.0.0.1:8025/inspect/"));
        for text in ["http://127.0.0.1:8025/inspect/a-B_9", "http://127.1:8025/inspect/a?status=503&x=/../"] {
            assert!(own.contains(&url(text)), "{text}");
        }
        for text in [
            "http://127.0.0.1:8025/inspect/",
            "http://127.0.0.1:8025/inspect/?a",
            "http://127.0.0.1:8025/inspect",
            "http://127.0.0.1:8025/inspect/a/b",
            "http://127.0.0.1:8025/inspect/../dev/messages",
            "http://127.0.0.1:8025/inspect/%2e%2e/dev/messages",
            "http://127.0.0.1:8025/inspect/..%2fdev",
            "http://127.0.0.1:8025/inspect/a;b",
            "http://127.0.0.1:8025/Inspect/a",
            "http://127.0.0.1:8025/dev/inspect/a",
            "http://127.0.0.1:8026/inspect/a",
            "http://127.0.0.1/inspect/a",
            "https://127.0.0.1:8025/inspect/a",
            "http://127.0.0.2:8025/inspect/a",
            "http://localhost:8025/inspect/a",
            "http://[::1]:8025/inspect/a",
        ] {
            assert!(!own.contains(&url(text)), "{text}");
        }
    }
}
