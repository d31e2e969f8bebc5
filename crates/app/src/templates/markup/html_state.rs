//! State of a scan through HTML: in text, in a tag, or in an attribute's value. Advances byte by byte and remembers
//! nothing else.

/// Elements whose content is always plain text.
const TEXT_ELEMENTS: [&str; 7] =
    ["style", "script", "title", "textarea", "mj-title", "mj-preview", "mj-style"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HtmlState {
    Text,
    /// After `<`, in an element's name.
    Name(String),
    /// Between the attributes of this element.
    Tag(String),
    /// In an attribute's value that ends with this quote; with a space, the value has no quotes.
    Value(String, u8),
    Comment,
    /// In an element whose content is text.
    Inside(&'static str),
}

impl HtmlState {
    /// Advances past `text`. Calls `visit` for every byte with the state before it.
    pub(super) fn advance(mut self, text: &str, mut visit: impl FnMut(&Self, usize, u8)) -> Self {
        let bytes = text.as_bytes();
        for (at, &byte) in bytes.iter().enumerate() {
            visit(&self, at, byte);
            self = self.step(bytes, at, byte);
        }
        self
    }

    fn step(self, bytes: &[u8], at: usize, byte: u8) -> Self {
        let ends_here = |text: &[u8]| bytes[..=at].ends_with(text);
        match self {
            Self::Text if byte == b'<' => match bytes.get(at + 1) {
                Some(next) if next.is_ascii_alphabetic() || matches!(next, b'/' | b'!') => {
                    Self::Name(String::new())
                }
                _ => Self::Text,
            },
            Self::Name(name) if byte == b'>' => after_start_tag(&name),
            Self::Name(name) if byte.is_ascii_whitespace() => Self::Tag(name),
            Self::Name(name) if byte == b'/' && !name.is_empty() => Self::Tag(name),
            Self::Name(mut name) => {
                if name.len() < 32 {
                    name.push(byte.to_ascii_lowercase() as char);
                }
                if name == "!--" { Self::Comment } else { Self::Name(name) }
            }
            Self::Tag(name) => match byte {
                b'>' if ends_here(b"/>") && name.starts_with("mj-") => Self::Text,
                b'>' => after_start_tag(&name),
                b'"' | b'\'' => Self::Value(name, byte),
                b'=' if bytes.get(at + 1).is_some_and(|next| !matches!(next, b'"' | b'\'' | b' ' | b'>')) => {
                    Self::Value(name, b' ')
                }
                _ => Self::Tag(name),
            },
            Self::Value(name, b' ') if byte == b'>' => after_start_tag(&name),
            Self::Value(name, b' ') if byte.is_ascii_whitespace() => Self::Tag(name),
            Self::Value(name, quote) if byte == quote && quote != b' ' => Self::Tag(name),
            Self::Comment if ends_here(b"-->") => Self::Text,
            Self::Inside(name) if byte == b'<' => {
                let rest = &bytes[at + 1..];
                let is_end = rest.first() == Some(&b'/')
                    && rest.get(1..=name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes()));
                if is_end { Self::Name(String::new()) } else { Self::Inside(name) }
            }
            same => same,
        }
    }
}

fn after_start_tag(name: &str) -> HtmlState {
    match TEXT_ELEMENTS.iter().find(|element| **element == name) {
        Some(element) => HtmlState::Inside(element),
        None => HtmlState::Text,
    }
}
