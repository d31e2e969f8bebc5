//! Inlines style sheets into the elements they apply to, because many mail programs ignore style sheets.

use css_inline::CSSInliner;

use super::nesting::{Syntax, check_nesting};
use super::protect::protect;

/// Treatment of the `<style>` elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StyleElements {
    /// Only rules that cannot be inlined stay, such as `@media`.
    Remove,
    /// All rules stay: the rules of a layout also apply to its content.
    Keep,
}

/// Limit on elements times rules: each rule is tried on each element.
const TRIALS_MAX: usize = 1_000_000;

/// The HTML with its styles inlined. Returns the HTML unchanged if it has no styles, too many elements and rules
/// (`TRIALS_MAX`), or is not properly nested, for example with a template condition around a start tag only. Fetches
/// nothing.
pub(crate) fn inline_css(html: &str, styles: StyleElements) -> Result<String, String> {
    let has_styles = html.as_bytes().windows(6).any(|part| part.eq_ignore_ascii_case(b"<style"));
    if !has_styles {
        return Ok(html.to_owned());
    }
    let protected = protect(html);
    let rules = protected.text.bytes().filter(|byte| matches!(byte, b'{' | b',')).count();
    let can_be_inlined = check_nesting(&protected.text, Syntax::Html)
        .is_ok_and(|nesting| nesting.elements.saturating_mul(rules) <= TRIALS_MAX);
    if !can_be_inlined {
        return Ok(html.to_owned());
    }
    let inliner = CSSInliner::options()
        .load_remote_stylesheets(false)
        .keep_link_tags(true)
        .keep_at_rules(true)
        .keep_style_tags(styles == StyleElements::Keep)
        .build();
    // The parser adds a `tbody` around rows without one, but leaves the template tags of a loop outside it. The
    // author's own `tbody` elements are marked, so that added ones can be removed.
    let marked = protected.text.replace("<tbody", AUTHOR_TBODY);
    let inlined = inliner.inline(&marked).map_err(|error| error.to_string())?;
    let restored = protected.restore(&remove_implied_tbodies(&inlined));
    let is_document = ["<html", "<body", "<!doctype"].iter().any(|mark| contains_any_case(html, mark));
    Ok(if is_document { restored } else { fragment_of(&restored) })
}

const AUTHOR_TBODY: &str = "<tbody postroadwritten";

/// Removes the `tbody` elements that the parser added.
fn remove_implied_tbodies(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    // For each open `tbody`: whether the author wrote it.
    let mut open_tbodies = Vec::new();
    let mut rest = html;
    loop {
        let (open, close) = (rest.find("<tbody"), rest.find("</tbody>"));
        let at = match (open, close) {
            (Some(open), close) if close.is_none_or(|close| open < close) => {
                let is_by_author = rest[open..].starts_with(AUTHOR_TBODY);
                open_tbodies.push(is_by_author);
                out.push_str(&rest[..open]);
                if is_by_author {
                    out.push_str("<tbody");
                    let after = &rest[open + AUTHOR_TBODY.len()..];
                    rest = after.strip_prefix("=\"\"").unwrap_or(after);
                    continue;
                }
                rest[open..].find('>').map_or(rest.len(), |end| open + end + 1)
            }
            (_, Some(close)) => {
                out.push_str(&rest[..close]);
                if open_tbodies.pop().unwrap_or(true) {
                    out.push_str("</tbody>");
                }
                close + "</tbody>".len()
            }
            _ => break,
        };
        rest = &rest[at..];
    }
    out.push_str(rest);
    out
}

fn contains_any_case(text: &str, mark: &str) -> bool {
    text.as_bytes().windows(mark.len()).any(|part| part.eq_ignore_ascii_case(mark.as_bytes()))
}

/// A fragment of a document is returned as a fragment, without the frame that the parser added.
fn fragment_of(document: &str) -> String {
    let between = |open: &str, close: &str| {
        let start = document.find(open)? + open.len();
        let end = document[start..].rfind(close)? + start;
        Some(&document[start..end])
    };
    match (between("<head>", "</head>"), between("<body>", "</body>")) {
        (Some(head), Some(body)) => format!("{head}{body}"),
        _ => document.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_inlined_and_template_tags_stay_in_place() {
        let html = "<style>td { color: red } .big { font-size: {{ size }}px } @media print { td { color: black } }</style>\
                    <table>{% for row in rows %}<tr><td class=\"big\">{{ row.a }}</td></tr>{% endfor %}</table>";
        let inlined = inline_css(html, StyleElements::Remove).unwrap();
        assert!(inlined.contains("{% for row in rows %}<tr>"), "{inlined}");
        assert!(inlined.contains("</tr>{% endfor %}"), "{inlined}");
        assert!(inlined.contains("color: red"), "{inlined}");
        assert!(inlined.contains("font-size: {{ size }}px"), "{inlined}");
        assert!(inlined.contains("@media print"), "{inlined}");
        assert!(!inlined.contains("<html"), "a fragment stays one: {inlined}");
        let with_own_tbody =
            html.replace("<table>", "<table><tbody><tr><td>h</td></tr></tbody></table><table>");
        let inlined = inline_css(&with_own_tbody, StyleElements::Remove).unwrap();
        assert_eq!(
            (inlined.matches("<tbody>").count(), inlined.matches("</tbody>").count()),
            (1, 1),
            "{inlined}"
        );
        assert!(!inlined.contains("postroad"), "{inlined}");
        assert_eq!(
            inline_css("<p>a &amp b</p>", StyleElements::Remove).unwrap(),
            "<p>a &amp b</p>",
            "nothing to do"
        );
    }

    #[test]
    fn inlining_fetches_no_style_sheets() {
        let sheet = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(sheet.path(), "p { margin: 7px }").unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (file, listener_address) = (sheet.path().display(), listener.local_addr().unwrap());
        let html = format!(
            "<html><head><link rel=\"stylesheet\" href=\"file://{file}\"><link rel=\"stylesheet\" href=\"http://{listener_address}/\">\
             <style>@import url(http://{listener_address}/x.css); p {{ color: red }}</style></head><body><p>x</p></body></html>"
        );
        let inlined = inline_css(&html, StyleElements::Remove).unwrap();
        assert!(inlined.contains("color: red"), "{inlined}");
        assert!(!inlined.contains("7px"), "{inlined}");
        let connection = listener.accept().map(drop).map_err(|error| error.kind());
        assert_eq!(connection, Err(std::io::ErrorKind::WouldBlock));
    }
}
