//! Finds links in HTML, and the position for the tracking pixel. `lol_html` parses the text as browsers do and returns
//! positions; `RewritePlan` edits the text, because `lol_html` would rewrite whole tags, and only the URLs may change.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use encoding_rs::{Encoding, UTF_8};
use lol_html::html_content::{Element, EndTag};
use lol_html::{AsciiCompatibleEncoding, HtmlRewriter, MemorySettings, Settings, element};

use super::Insertion;
use super::entities;
use super::settings::{LINKS_MAX, LinkRules};
use super::target::tracked_target;

/// Maximum memory of the parser, for unfinished tags and open elements.
const MEMORY_BYTES_MAX: usize = 8 << 20;
/// Attribute of links that are not tracked.
const NO_TRACK_ATTRIBUTE: &str = "data-postroad-notrack";

/// Finds the links and the position of the pixel, in the order of the text. Empty if the HTML exceeds the parser's
/// limits.
pub(super) fn find_insertions(
    html: &[u8],
    encoding: &'static Encoding,
    rules: Option<&LinkRules>,
    with_pixel: bool,
) -> Vec<(Range<usize>, Insertion)> {
    let Some(read_as) = AsciiCompatibleEncoding::new(encoding) else { return Vec::new() };
    let links = RefCell::new(Vec::new());
    let body_end = Rc::new(Cell::new(None));
    let take_link = |element: &mut Element<'_, '_>| {
        let mut links = links.borrow_mut();
        if let Some(rules) = rules.filter(|_| links.len() < LINKS_MAX) {
            links.extend(link(element, html, encoding, rules));
        }
        Ok(())
    };
    let record_body_end = |element: &mut Element<'_, '_>| {
        let position = Rc::clone(&body_end);
        if let Some(handlers) = element.end_tag_handlers() {
            handlers.push(Box::new(move |end: &mut EndTag<'_>| {
                position.set(Some(end.source_location().bytes().start));
                Ok(())
            }));
        }
        Ok(())
    };
    let settings = Settings::new()
        .append_element_content_handler(element!("a[href], area[href]", take_link))
        .append_element_content_handler(element!("body", record_body_end))
        .with_encoding(read_as)
        .with_strict(false)
        .with_memory_settings(MemorySettings::new().with_max_allowed_memory_usage(MEMORY_BYTES_MAX));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    if rewriter.write(html).is_err() || rewriter.end().is_err() {
        return Vec::new();
    }
    let mut found = links.into_inner();
    if with_pixel {
        let at = body_end.get().unwrap_or_else(|| html.trim_ascii_end().len());
        let index = found.partition_point(|(range, _): &(Range<usize>, Insertion)| range.start < at);
        found.insert(index, (at..at, Insertion::Pixel));
    }
    found
}

fn link(
    element: &Element<'_, '_>,
    html: &[u8],
    encoding: &'static Encoding,
    rules: &LinkRules,
) -> Option<(Range<usize>, Insertion)> {
    if element.has_attribute(NO_TRACK_ATTRIBUTE) {
        return None;
    }
    // If an element has two `href`, browsers use the first.
    let href = element.attributes().iter().find(|attribute| attribute.name() == "href")?;
    let range = href.value_source_location()?.bytes();
    let written = std::str::from_utf8(html.get(range.clone())?).ok()?;
    // Mail clients encode non-ASCII URLs differently if the charset is not UTF-8.
    if encoding != UTF_8 && !written.is_ascii() {
        return None;
    }
    let target = tracked_target(&entities::decode(written)?, rules)?;
    Some((range, Insertion::Link(target)))
}
