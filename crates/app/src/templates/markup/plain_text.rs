//! Generates the plain text of a template from its HTML, in one pass; template tags stay in place.

use super::html_state::HtmlState;
use super::protect::{Piece, pieces};

/// Elements with an empty line around their content.
const PARAGRAPH_ELEMENTS: [&str; 13] =
    ["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "blockquote", "pre", "hr"];
/// Elements that start on a new line.
const LINE_ELEMENTS: [&str; 9] =
    ["div", "tr", "li", "br", "section", "header", "footer", "article", "center"];

/// Named character references that mails use.
const NAMED_ENTITIES: [(&str, &str); 24] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("hellip", "…"),
    ("mdash", "—"),
    ("ndash", "–"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("bull", "•"),
    ("middot", "·"),
    ("euro", "€"),
    ("pound", "£"),
    ("yen", "¥"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("zwnj", ""),
];

pub(crate) fn plain_text(html: &str) -> String {
    let mut writer = Writer::default();
    let mut state = HtmlState::Text;
    for piece in pieces(html) {
        match piece {
            Piece::Tag(tag) => writer.template_tag(&state, tag),
            Piece::Text(text) => {
                state = state.advance(text, |before, at, byte| writer.byte(before, text, at, byte));
                writer.end_of_piece(text);
            }
        }
    }
    writer.out.trim().to_owned() + "\n"
}

#[derive(Debug, Default)]
struct Writer {
    out: String,
    /// Number of line breaks to write before the next word.
    breaks: usize,
    /// Whether to write a space before the next word if no line break is written.
    has_space: bool,
    /// Start of the text in this piece that is not written yet.
    text_from: Option<usize>,
    /// The element and attributes being parsed, up to a limit.
    element: String,
    /// Number of open elements whose text is not shown.
    hidden: usize,
    /// Offset in `out` at which the text of the open link begins, and the link's target.
    link: Option<(usize, String)>,
}

/// Maximum number of bytes kept of an element and its attributes.
const ELEMENT_BYTES_MAX: usize = 4_096;

impl Writer {
    fn byte(&mut self, before: &HtmlState, text: &str, at: usize, byte: u8) {
        match before {
            HtmlState::Text => {
                let begins = byte == b'<'
                    && text
                        .as_bytes()
                        .get(at + 1)
                        .is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, b'/' | b'!'));
                if begins {
                    self.flush(text, at);
                    self.element.clear();
                } else {
                    self.text_from.get_or_insert(at);
                }
            }
            HtmlState::Name(_) | HtmlState::Tag(_) | HtmlState::Value(..) => {
                let is_end = byte == b'>' && !matches!(before, HtmlState::Value(_, quote) if *quote != b' ');
                if is_end {
                    let element = std::mem::take(&mut self.element);
                    self.handle_html_tag(&element);
                } else if self.element.len() < ELEMENT_BYTES_MAX {
                    // The bytes of a character arrive one by one.
                    let start = text.floor_char_boundary(at);
                    if start == at {
                        let end = text.ceil_char_boundary(at + 1);
                        self.element.push_str(&text[start..end]);
                    }
                }
            }
            HtmlState::Inside(_) if byte == b'<' => self.element.clear(),
            HtmlState::Inside(_) | HtmlState::Comment => {}
        }
    }

    fn end_of_piece(&mut self, text: &str) {
        self.flush(text, text.len());
    }

    /// Handles a template tag. Statements are kept everywhere, or blocks would lose their ends. Values are kept in
    /// text, and in attributes, which may be link targets or image descriptions.
    fn template_tag(&mut self, state: &HtmlState, tag: &str) {
        let is_value = tag.trim_start().starts_with("{{");
        match state {
            HtmlState::Text if is_value && self.hidden == 0 => {
                if tag.starts_with(char::is_whitespace) {
                    self.has_space = true;
                }
                self.write_gap();
                push_template_tag(&mut self.out, tag.trim());
                self.has_space = tag.ends_with(char::is_whitespace);
            }
            HtmlState::Value(..) if is_value => {
                if self.element.len() < ELEMENT_BYTES_MAX {
                    self.element.push_str(tag);
                }
            }
            _ => {
                // The content of `raw` blocks is written as literal text, so `raw` and `endraw` are left out.
                for piece in tag_pieces(tag).filter(|piece| piece.starts_with("{%") && !is_raw(piece)) {
                    push_template_tag(&mut self.out, piece);
                }
            }
        }
    }

    fn flush(&mut self, text: &str, to: usize) {
        let Some(from) = self.text_from.take() else { return };
        if self.hidden > 0 {
            return;
        }
        let text = decode(&text[from..to]);
        self.has_space |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.write_gap();
            push_text(&mut self.out, word);
            self.has_space = true;
        }
        if !text.trim().is_empty() {
            self.has_space = text.ends_with(char::is_whitespace);
        }
    }

    fn write_gap(&mut self) {
        if self.breaks > 0 && !self.out.is_empty() {
            self.out.extend(std::iter::repeat_n('\n', self.breaks));
        } else if self.has_space && !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push(' ');
        }
        (self.breaks, self.has_space) = (0, false);
    }

    fn handle_html_tag(&mut self, element: &str) {
        let name_end = element.find(|c: char| c.is_whitespace()).unwrap_or(element.len());
        let name = element[..name_end].trim_end_matches('/').to_ascii_lowercase();
        let (is_close, name) = match name.strip_prefix('/') {
            Some(name) => (true, name),
            None => (false, name.as_str()),
        };
        if PARAGRAPH_ELEMENTS.contains(&name) {
            self.breaks = 2;
        } else if LINE_ELEMENTS.contains(&name) {
            self.breaks = self.breaks.max(1);
        }
        match (name, is_close) {
            ("head", false) => self.hidden += 1,
            ("head", true) => self.hidden = self.hidden.saturating_sub(1),
            ("td" | "th", _) => self.has_space = true,
            ("li", false) if self.hidden == 0 => {
                self.write_gap();
                self.out.push('-');
                self.has_space = true;
            }
            ("hr", _) if self.hidden == 0 => {
                self.write_gap();
                self.out.push_str("---");
                self.breaks = 2;
            }
            ("img", false) if self.hidden == 0 => {
                if let Some(alt) = attribute(element, "alt").filter(|alt| !alt.trim().is_empty()) {
                    self.write_gap();
                    // `attribute` returns template source.
                    push_template_tag(&mut self.out, alt.trim());
                }
            }
            ("a", false) => {
                self.link = attribute(element, "href").map(|href| (self.out.len(), href));
            }
            ("a", true) => {
                if let Some((start, href)) = self.link.take() {
                    let link_text = self.out.get(start..).unwrap_or_default().trim();
                    let is_target_redundant =
                        href.starts_with('#') || href.starts_with("mailto:") || link_text == href;
                    if !is_target_redundant && !href.is_empty() && self.hidden == 0 {
                        let between = if link_text.is_empty() { "" } else { " " };
                        self.drop_pending_space();
                        self.out.extend([between, "(", &href, ")"]);
                    }
                }
            }
            _ => {}
        }
    }

    /// Drops the space before the next word: the caller writes a link's target right after the text of the link.
    fn drop_pending_space(&mut self) {
        self.has_space = false;
    }
}

/// Splits a piece that contains several tags.
fn tag_pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find('{')?;
        let from_tag = &rest[start..];
        let end = match from_tag.as_bytes().get(1) {
            Some(b'%') => from_tag.find("%}"),
            Some(b'#') => from_tag.find("#}"),
            _ => from_tag.find("}}"),
        };
        let end = end.map_or(from_tag.len(), |end| end + 2);
        let (piece, after) = from_tag.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// The value of an attribute as template source: its text is decoded and escaped, its template tags are kept.
fn attribute(element: &str, name: &str) -> Option<String> {
    let lower = element.to_ascii_lowercase();
    let at = lower.match_indices(name).map(|(at, _)| at).find(|at| {
        let is_start = lower[..*at].ends_with(|c: char| c.is_whitespace());
        is_start && lower[at + name.len()..].trim_start().starts_with('=')
    })?;
    let value = element[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
    let value = match value.as_bytes().first() {
        Some(quote @ (b'"' | b'\'')) => value[1..].split(*quote as char).next().unwrap_or_default(),
        _ => value.split_whitespace().next().unwrap_or_default(),
    };
    let mut out = String::new();
    for piece in pieces(value) {
        match piece {
            Piece::Tag(tag) => push_template_tag(&mut out, tag),
            Piece::Text(text) => push_text(&mut out, &decode(text)),
        }
    }
    Some(out)
}

/// Writes literal text. Decoding entities or removing elements can join two characters into the start of a template
/// tag, so braces are escaped.
fn push_text(out: &mut String, text: &str) {
    for character in text.chars() {
        if matches!(character, '{' | '%' | '#') {
            escape_trailing_brace(out);
        }
        out.push(character);
    }
}

/// Writes template source unchanged.
fn push_template_tag(out: &mut String, tag: &str) {
    if tag.starts_with('{') {
        escape_trailing_brace(out);
    }
    out.push_str(tag);
}

/// Escapes a trailing `{`, so that it cannot start a template tag with the next character.
fn escape_trailing_brace(out: &mut String) {
    if out.ends_with('{') {
        out.pop();
        out.push_str("{{ '{' }}");
    }
}

fn is_raw(statement: &str) -> bool {
    let word = statement.trim_start_matches(['{', '%', '-', '+']).trim_start();
    word.starts_with("raw") || word.starts_with("endraw")
}

/// Decodes character references; references by a name that `NAMED_ENTITIES` lacks stay as they are.
fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let name_end = rest.bytes().take(10).position(|byte| byte == b';');
        let decoded = name_end.and_then(|end| Some((end, decode_entity(&rest[..end])?)));
        match decoded {
            Some((end, character)) => {
                out.push_str(&character);
                rest = &rest[end + 1..];
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out
}

fn decode_entity(name: &str) -> Option<String> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|c| !c.is_control()).map(String::from);
    }
    NAMED_ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_has_words_lines_lists_and_link_targets() {
        let html = "<html><head><title>No</title><style>p {}</style></head><body><h1>Hello {{ name }},</h1>\n\
                    <p>thank   you &amp; welcome.<br>Your order:</p><ul>{% for i in items %}<li>{{ i.n }} &times; {{ i.t }}</li>{% endfor %}</ul>\
                    <p>See <a href=\"https://x.example/{{ id }}\">your order</a>.</p></body></html>";
        assert_eq!(
            plain_text(html),
            "Hello {{ name }},\n\nthank you & welcome.\nYour order:{% for i in items %}\n\n- {{ i.n }} &times; {{ i.t }}{% endfor %}\n\n\
             See your order (https://x.example/{{ id }}).\n"
        );
    }

    #[test]
    fn text_never_becomes_a_template_tag() {
        for (html, expected) in [
            ("<p>&#123;&#123; secret }}</p>", "{{ '{' }}{ secret }}\n"),
            ("<p>&#x7b;% if x %}</p>", "{{ '{' }}% if x %}\n"),
            ("<p>{&#37; if x %}{&#35;</p>", "{{ '{' }}% if x %}{{ '{' }}#\n"),
            ("<p>{<b></b>{ secret }}</p>", "{{ '{' }}{ secret }}\n"),
            ("<p>{<b>{{ name }}</b></p>", "{{ '{' }}{{ name }}\n"),
            ("<p>{% raw %}{{ secret }}{% endraw %}</p>", "{{ '{' }}{ secret }}\n"),
            ("<img alt='&#123;&#123; secret }} {{ name }}'>", "{{ '{' }}{ secret }} {{ name }}\n"),
            ("<a href='/?q=&#123;&#123;x}}&amp;n={{ n }}'>here</a>", "here (/?q={{ '{' }}{x}}&n={{ n }})\n"),
            ("<p>{one} 5% #1</p>", "{one} 5% #1\n"),
        ] {
            assert_eq!(plain_text(html), expected, "{html}");
        }
    }
}
