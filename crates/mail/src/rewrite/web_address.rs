//! Parses URLs just far enough to compare hosts and paths.

/// A partly parsed URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WebAddress<'a> {
    /// The host as written.
    pub(super) host: &'a str,
    /// The text from the first `/` up to query and fragment.
    path: &'a str,
    /// Position of the host in the URL, after the scheme and any user name.
    pub(super) host_start: usize,
}

impl<'a> WebAddress<'a> {
    /// Parses a URL; `None` unless it begins with `http://` or `https://` and has a host.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme)?;
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return None;
        }
        let after = &text[scheme.len() + 3..];
        // Browsers treat `\` as `/` in `http` and `https` URLs.
        let end = after.find(['/', '\\', '?', '#']).unwrap_or(after.len());
        let authority = &after[..end];
        let host_offset = authority.rfind('@').map_or(0, |at| at + 1);
        let host = match authority[host_offset..].rfind(':') {
            Some(colon) if !authority[host_offset..].ends_with(']') => {
                &authority[host_offset..host_offset + colon]
            }
            _ => &authority[host_offset..],
        };
        let rest = &after[end..];
        let path = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
        (!host.is_empty()).then_some(Self { host, path, host_start: scheme.len() + 3 + host_offset })
    }

    fn has_host(&self, host: &str) -> bool {
        self.host.eq_ignore_ascii_case(host)
    }

    /// `example.com` is that host, `*.example.com` every host below it.
    pub(super) fn matches(&self, pattern: &str) -> bool {
        match pattern.strip_prefix('*') {
            Some(suffix) => {
                let start = self.host.len().saturating_sub(suffix.len());
                start > 0 && self.host.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(suffix))
            }
            None => self.has_host(pattern),
        }
    }

    /// Whether the path is about unsubscribing: people must be able to unsubscribe even if tracking fails.
    pub(super) fn is_about_unsubscribing(&self) -> bool {
        self.path.to_ascii_lowercase().contains("unsubscribe")
    }

    /// Whether both URLs lead to the same page, whatever their queries. Never true for a URL without a path: there the
    /// query alone may name the page.
    pub(super) fn is_same_page(&self, other: &WebAddress<'_>) -> bool {
        self.has_host(other.host) && self.path == other.path && !matches!(self.path, "" | "/")
    }
}
