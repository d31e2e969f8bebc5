//! Removes from HTML the elements with which a browser may connect to other hosts in spite of a content security
//! policy.

use lol_html::html_content::ContentType;
use lol_html::{RewriteStrSettings, element, rewrite_str};

/// Elements that load resources or documents, and elements whose content is text for the rewriter but HTML for a
/// browser without scripts.
const LOADING_ELEMENTS: &str = "script, noscript, noframes, noembed, iframe, frame, frameset, fencedframe, object, embed, applet, \
                       portal, link, base, meta[http-equiv], audio, video";
/// Replacement of an element: without it, the text on both sides could become a tag (`<<link>iframe src=x>`).
const REPLACEMENT: &str = "<!-- -->";

/// The HTML of a message as it can be shown: without scripts, frames and other `LOADING_ELEMENTS`. Images stay; the
/// content security policy of the page blocks remote ones. The policy blocks frames too, but Chromium connects to the
/// host of a frame before it checks the policy, which reveals to the sender that somebody opened the message. HTML that
/// cannot be rewritten becomes text.
#[must_use]
pub fn without_loading_elements(html: &str) -> String {
    let remove = element!(LOADING_ELEMENTS, |element| {
        element.replace(REPLACEMENT, ContentType::Html);
        Ok(())
    });
    let settings = RewriteStrSettings::new().append_element_content_handler(remove);
    rewrite_str(html, settings).unwrap_or_else(|_| html.replace('&', "&amp;").replace('<', "&lt;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_load_are_taken_out() {
        let html = "<p>a<iframe src=x>b</iframe><IFRAME SRC=x></iframe><meta http-equiv=refresh content=0><link href=x>c</p>";
        assert_eq!(without_loading_elements(html).replace(REPLACEMENT, ""), "<p>ac</p>");
    }

    /// The rewriter takes the content of these elements for text; a browser without scripts takes it for HTML.
    #[test]
    fn elements_for_browsers_without_scripts_are_taken_out() {
        for name in ["noscript", "NOSCRIPT", "noframes", "noembed"] {
            let html = format!("a<{name}><iframe src=x></iframe><link rel=preconnect href=x></{name}>b");
            assert_eq!(without_loading_elements(&html).replace(REPLACEMENT, ""), "ab", "{name}");
        }
        let unclosed = without_loading_elements("a<noscript><iframe src=x>");
        assert!(!unclosed.contains("iframe"), "{unclosed}");
        let quoted = without_loading_elements("<noscript><p title=\"</noscript><iframe src=x></iframe>\">");
        assert!(!quoted.contains("iframe"), "{quoted}");
    }

    /// Rewriting the result again removes nothing more.
    #[test]
    fn text_around_a_removed_element_becomes_no_element() {
        for html in [
            "<<link>iframe src=x>",
            "<<noscript></noscript>iframe src=x>",
            "<<meta http-equiv=x>link rel=preconnect href=x>",
            "<i<link>frame src=x>",
            "<!<link>--><iframe src=x>",
            "<svg><<link>iframe src=x></svg>",
            "<svg><foreignObject><noscript><iframe src=x></noscript></foreignObject></svg>",
            "<math><mtext><noscript><link rel=preconnect href=x></noscript></mtext></math>",
            "<svg><style><iframe src=x></style></svg>",
            "<template shadowrootmode=open><iframe src=x></iframe></template>",
            "<select><noscript><iframe src=x></noscript></select>",
            "<table><noscript><iframe src=x></noscript></table>",
            "<xmp><iframe src=x></xmp><iframe src=x>",
            "<title><iframe src=x></title><iframe src=x>",
            "<plaintext><iframe src=x>",
        ] {
            let once = without_loading_elements(html);
            assert_eq!(without_loading_elements(&once), once, "{html}");
            assert!(!once.contains("<noscript"), "{html}: {once}");
        }
        assert_eq!(without_loading_elements("<<link>iframe src=x>"), "<<!-- -->iframe src=x>");
    }
}
