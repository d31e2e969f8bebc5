//! Links in HTML, and the place of the pixel. `lol_html` reads the text as browsers do and says where things are; we put
//! ours there ourselves, because it would rewrite whole tags, and nothing but the addresses may change.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use encoding_rs::{Encoding, UTF_8};
use lol_html::html_content::{Element, EndTag};
use lol_html::{AsciiCompatibleEncoding, HtmlRewriter, MemorySettings, Settings, element};

use super::Spot;
use super::entities;
use super::settings::{LINKS_MAX, LinkRules};
use super::target::tracked;

/// For what the parser has to remember: unfinished tags and open elements.
const MEMORY_BYTES_MAX: usize = 8 << 20;
const LEFT_ALONE: &str = "data-postroad-notrack";

/// In the order of the text. Nothing if the HTML is beyond what the parser can take.
pub(super) fn find(
    html: &[u8],
    encoding: &'static Encoding,
    rules: Option<&LinkRules>,
    with_pixel: bool,
) -> Vec<(Range<usize>, Spot)> {
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
    let note_end = |element: &mut Element<'_, '_>| {
        let noted = Rc::clone(&body_end);
        if let Some(handlers) = element.end_tag_handlers() {
            handlers.push(Box::new(move |end: &mut EndTag<'_>| {
                noted.set(Some(end.source_location().bytes().start));
                Ok(())
            }));
        }
        Ok(())
    };
    let settings = Settings::new()
        .append_element_content_handler(element!("a[href], area[href]", take_link))
        .append_element_content_handler(element!("body", note_end))
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
        let place = found.partition_point(|(range, _): &(Range<usize>, Spot)| range.start < at);
        found.insert(place, (at..at, Spot::Pixel));
    }
    found
}

fn link(
    element: &Element<'_, '_>,
    html: &[u8],
    encoding: &'static Encoding,
    rules: &LinkRules,
) -> Option<(Range<usize>, Spot)> {
    if element.has_attribute(LEFT_ALONE) {
        return None;
    }
    // Of two, browsers take the first.
    let href = element.attributes().iter().find(|attribute| attribute.name() == "href")?;
    let range = href.value_source_location()?.bytes();
    let written = std::str::from_utf8(html.get(range.clone())?).ok()?;
    // In other charsets it depends on the reader how such an address is asked for.
    if encoding != UTF_8 && !written.is_ascii() {
        return None;
    }
    let target = tracked(&entities::decode(written)?, rules)?;
    Some((range, Spot::Link(target)))
}
