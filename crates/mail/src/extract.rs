//! Links, one-time codes and visible text of a message, for the portal, for searches, and for tests that continue where
//! a person would click or type.

use std::cell::RefCell;

use lol_html::html_content::Element;
use lol_html::{HtmlRewriter, MemorySettings, Settings, element};
use mail_parser::decoders::html::html_to_text;

use crate::rewrite::{decode_reference, find_web_addresses};
use crate::view::MessageView;

const LINKS_MAX: usize = 500;
const CODES_MAX: usize = 20;
/// Longer texts are cut before links and codes are searched: mails with codes are short.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// Memory limit of the HTML parser.
const PARSER_BYTES_MAX: usize = 8 << 20;

/// Words, or parts of words, that announce a code.
const CODE_WORDS: [&str; 8] =
    ["code", "código", "password", "kennwort", "passwort", "verif", "confirm", "einmal"];
/// Whole words that announce a code.
const SHORT_CODE_WORDS: [&str; 4] = ["pin", "otp", "tan", "token"];

/// A message's links and codes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extracted {
    /// `http` and `https` URLs in the order of the HTML body, then of the plain text; each once.
    pub links: Vec<String>,
    /// One-time codes, the likeliest first, without the dashes and spaces between their groups of digits.
    pub codes: Vec<String>,
}

/// Finds the links and codes of any message; the lists may be empty.
pub fn extract(view: &MessageView) -> Extracted {
    let html = view.html_body.as_deref().map(cut);
    let plain = view.plain_body.as_deref().map(cut);
    let mut links = Vec::new();
    for link in
        html.map(html_links).into_iter().flatten().chain(plain.map(find_web_addresses).into_iter().flatten())
    {
        if links.len() < LINKS_MAX && !links.contains(&link) {
            links.push(link);
        }
    }
    let text = match (plain, html) {
        (Some(plain), _) if !plain.trim().is_empty() => plain.to_owned(),
        (_, Some(html)) => html_to_text(html),
        _ => String::new(),
    };
    Extracted { links, codes: codes(&text) }
}

/// The visible text, for searches.
pub fn visible_text(view: &MessageView) -> String {
    let plain = view.plain_body.as_deref().unwrap_or_default();
    match &view.html_body {
        Some(html) => format!("{plain}\n{}", html_to_text(html)),
        None => plain.to_owned(),
    }
}

fn html_links(html: &str) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let take = |element: &mut Element<'_, '_>| {
        let mut found = found.borrow_mut();
        let href = element.attributes().iter().find(|attribute| attribute.name() == "href");
        if let Some(href) = href.filter(|_| found.len() < LINKS_MAX) {
            let written = href.value();
            let link = decode_reference(&written).unwrap_or(written).trim().to_owned();
            let scheme = link.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
            if matches!(scheme.as_deref(), Some("http" | "https")) {
                found.push(link);
            }
        }
        Ok(())
    };
    let settings = Settings::new()
        .append_element_content_handler(element!("a[href], area[href]", take))
        .with_strict(false)
        .with_memory_settings(MemorySettings::new().with_max_allowed_memory_usage(PARSER_BYTES_MAX));
    let mut reader = HtmlRewriter::new(settings, |_: &[u8]| {});
    // Keep everything found before the parser gave up.
    let _ = reader.write(html.as_bytes()).and_then(|()| reader.end());
    found.into_inner()
}

/// Codes with a word such as "code" in their own line or the line before, then codes that are alone in their line.
fn codes(text: &str) -> Vec<String> {
    let mut likely = Vec::new();
    let mut alone = Vec::new();
    let mut is_after_announcement = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let is_announcement = announces_code(line);
        let found = codes_of_line(line);
        let is_alone = matches!(found.as_slice(), [(_, written)] if *written == line);
        for (code, _) in found {
            if is_announcement || is_after_announcement {
                likely.push(code);
            } else if is_alone {
                alone.push(code);
            }
        }
        is_after_announcement = is_announcement;
    }
    let mut codes: Vec<String> = Vec::new();
    for code in likely.into_iter().chain(alone) {
        if codes.len() < CODES_MAX && !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes
}

fn announces_code(line: &str) -> bool {
    // URLs say nothing about the text around them.
    line.to_lowercase().split_whitespace().filter(|word| !word.contains("://")).any(|word| {
        CODE_WORDS.iter().any(|part| word.contains(part))
            || word.split(|c: char| !c.is_alphanumeric()).any(|word| SHORT_CODE_WORDS.contains(&word))
    })
}

/// Codes of a line, each with its text as written: 4 to 8 digits, two equally long groups of 3 or 4 digits, or 6 to 10
/// capitals and digits.
fn codes_of_line(line: &str) -> Vec<(String, &str)> {
    let mut found: Vec<(String, &str)> = Vec::new();
    let is_word_char = |c: char| {
        c.is_alphanumeric() || matches!(c, '-' | '/' | ':' | '@' | '_' | '.' | '=' | '%' | '&' | '?')
    };
    let is_punctuation = |c: char| !c.is_alphanumeric();
    // A word that may be the first of two groups of digits, with its position.
    let mut previous: Option<(usize, &str)> = None;
    for word in line.split(|c: char| !is_word_char(c)).map(|word| word.trim_matches(is_punctuation)) {
        let start = word.as_ptr().addr() - line.as_ptr().addr();
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if let Some((first_start, first)) = previous
            && is_digits(word)
            && first.len() == word.len()
            && line[first_start + first.len()..start] == *" "
        {
            found.pop_if(|(_, written)| written.as_ptr() == first.as_ptr());
            found.push((format!("{first}{word}"), &line[first_start..start + word.len()]));
            previous = None;
            continue;
        }
        previous = (is_digits(word) && matches!(word.len(), 3 | 4)).then_some((start, word));
        if let Some(code) = code_of_word(word) {
            found.push((code, word));
        }
    }
    found
}

fn code_of_word(word: &str) -> Option<String> {
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    // A letter before the digits names the issuer: `G-481223`.
    let word = word
        .strip_prefix(|c: char| c.is_ascii_uppercase())
        .and_then(|rest| rest.strip_prefix('-'))
        .unwrap_or(word);
    if let Some((first, second)) = word.split_once('-') {
        let is_grouped = is_digits(first) && is_digits(second) && first.len() == second.len();
        return (is_grouped && matches!(first.len(), 3 | 4)).then(|| format!("{first}{second}"));
    }
    if is_digits(word) {
        return (4..=8).contains(&word.len()).then(|| word.to_owned());
    }
    let is_capital_or_digit = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
    let is_mixed = (6..=10).contains(&word.len())
        && word.bytes().all(is_capital_or_digit)
        && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().any(|b| b.is_ascii_uppercase());
    is_mixed.then(|| word.to_owned())
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_where_people_look_for_them() {
        for (text, expected) in [
            ("Your verification code is 482913.", &["482913"][..]),
            ("Hello Ann,\n\nuse this code:\n\n  7351\n\nIt ends in 10 minutes.", &["7351"]),
            ("G-481223 is your code", &["481223"]),
            ("481 223 is your code", &["481223"]),
            ("Ihr Einmalkennwort: 123-456", &["123456"]),
            ("PIN 0042, valid until 2027", &["0042", "2027"]),
            ("Enter AB12CD34 to confirm", &["AB12CD34"]),
            ("998877", &["998877"]),
            ("Order 12345 was shipped on 2026-11-16.", &[]),
            ("Call 030 1234567 or see https://example.com/code/123456", &[]),
        ] {
            assert_eq!(codes(text), expected, "{text}");
        }
    }

    #[test]
    fn links_of_both_bodies_are_listed_once() {
        let view = MessageView {
            html_body: Some(
                "<a href=\"https://example.com/a?x=1&amp;y=2\">A</a> <A HREF='https://example.com/b'>B</A>\
                 <a href='mailto:x@example.com'>M</a><a href='/relative'>R</a><a name=x>N</a>"
                    .to_owned(),
            ),
            plain_body: Some("See https://example.com/b, or (http://example.com/c).".to_owned()),
            ..MessageView::default()
        };
        let links = extract(&view).links;
        assert_eq!(links, ["https://example.com/a?x=1&y=2", "https://example.com/b", "http://example.com/c"]);
        assert_eq!(extract(&MessageView::default()), Extracted::default());
    }

    #[test]
    fn hostile_texts_cost_little_and_yield_bounded_lists() {
        let view = MessageView {
            html_body: Some("<a href=https://e.example/x>".repeat(100_000)),
            plain_body: Some("code 1234\n".repeat(100_000) + &"https://e.example/".repeat(100_000)),
            ..MessageView::default()
        };
        let found = extract(&view);
        assert!(found.links.len() <= LINKS_MAX && found.codes == ["1234"], "{}", found.links.len());
    }
}
