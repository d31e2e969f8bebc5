//! Settings of link rewriting, and rules for links that are not tracked.

use super::web_address::WebAddress;

/// Maximum number of links of one part that are rewritten.
pub(super) const LINKS_MAX: usize = 2_000;
/// Larger parts are not rewritten.
pub(super) const PART_BYTES_MAX: usize = 5 << 20;

/// Settings of rewriting, as decided at acceptance.
#[derive(Debug, Clone, Copy)]
pub struct RewriteSettings<'a> {
    /// Base of tracking links: `https://track.example.com`.
    pub base_url: &'a str,
    /// Whether opens are tracked.
    pub opens: bool,
    /// Whether clicks are tracked.
    pub clicks: bool,
    /// Links to these hosts are not tracked; `*.example.com` means every host below `example.com`.
    pub excluded_hosts: &'a [String],
}

/// Rules for links that are not tracked.
#[derive(Debug)]
pub(super) struct LinkRules {
    /// A link that begins with this is one of ours.
    own_base: String,
    excluded_hosts: Vec<String>,
    /// The message's own unsubscribe links.
    unsubscribe_urls: Vec<String>,
}

impl LinkRules {
    pub(super) fn new(base_url: &str, excluded_hosts: &[String], unsubscribe_urls: Vec<String>) -> Self {
        Self { own_base: format!("{base_url}/"), excluded_hosts: excluded_hosts.to_vec(), unsubscribe_urls }
    }

    pub(super) fn excludes(&self, url: &str, address: &WebAddress<'_>) -> bool {
        let is_unsubscribe = |known: &String| {
            known == url || WebAddress::parse(known).is_some_and(|known| known.is_same_page(address))
        };
        let is_own =
            url.get(..self.own_base.len()).is_some_and(|start| start.eq_ignore_ascii_case(&self.own_base));
        is_own
            || self.excluded_hosts.iter().any(|pattern| address.matches(pattern))
            || address.is_about_unsubscribing()
            || self.unsubscribe_urls.iter().any(is_unsubscribe)
    }
}
