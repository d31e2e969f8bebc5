//! Links in previews: they show their target and lead nowhere. In a sandboxed frame a click would only replace the mail
//! with an error page, and opening a link of a mail can act for its recipient.

use lol_html::{RewriteStrSettings, element, rewrite_str};

/// An anchor that the mail does not have, so that a click does nothing. The element still looks like a link.
const NOWHERE: &str = "#no-such-place-in-this-preview";
/// Longest target that is shown.
const TARGET_BYTES_MAX: usize = 2_000;

/// The HTML with inert links. Links within the mail keep working.
pub(super) fn inert_links(html: &str) -> Option<String> {
    let links = element!("a, area", |link| {
        for name in ["href", "xlink:href"] {
            let Some(target) = link.get_attribute(name) else { continue };
            if target.starts_with('#') {
                continue;
            }
            link.set_attribute(name, NOWHERE)?;
            let end = target.floor_char_boundary(TARGET_BYTES_MAX);
            link.set_attribute("title", &target[..end])?;
        }
        link.remove_attribute("target");
        link.remove_attribute("ping");
        link.remove_attribute("download");
        Ok(())
    });
    rewrite_str(html, RewriteStrSettings::new().append_element_content_handler(links)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_nowhere_and_say_where_they_would_lead() {
        let shown = |html: &str| inert_links(html).unwrap_or_default();
        assert_eq!(
            shown("<a href=\"https://a.example/?x=1&amp;y=2\" target=\"_blank\" title=\"Win\">Go</a>"),
            format!("<a href=\"{NOWHERE}\" title=\"https://a.example/?x=1&amp;y=2\">Go</a>")
        );
        assert_eq!(
            shown("<a href='javascript:\"x\"'>Go</a>"),
            format!("<a href=\"{NOWHERE}\" title=\"javascript:&quot;x&quot;\">Go</a>")
        );
        assert_eq!(shown("<a href=\"#part\">Go</a>"), "<a href=\"#part\">Go</a>");
        assert!(
            !shown("<svg><a xlink:href=\"https://a.example\">Go</a></svg>").contains("xlink:href=\"https")
        );
    }
}
