//! A strict reader of address lists, for deciding who a raw message claims to be from.
//!
//! Mail programs disagree about malformed lists, and forgers live off the difference: what one program takes for
//! the address is a name or a comment to the next. So this reader accepts the plain grammar of RFC 5322 3.4 and
//! refuses everything that anybody could read otherwise. No address in an accepted list goes unreported.

use crate::encoded_word::decode_words;
use crate::header_block::unfold;

/// Why a list of addresses is refused. The text follows the name of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressListProblem {
    #[error("has no address")]
    Empty,
    #[error("has bytes that are neither ASCII nor UTF-8")]
    Bytes,
    #[error("has a control character or an invisible one")]
    Control,
    #[error("has a quote, comment or angle bracket that is not closed")]
    Unclosed,
    #[error("could be read as a different address by other software")]
    Ambiguous,
    #[error("is not a list of addresses as RFC 5322 writes them")]
    Syntax,
}

/// The bare addresses of a header value, group members included.
pub(crate) fn parse_address_list(value: &[u8]) -> Result<Vec<String>, AddressListProblem> {
    let text = std::str::from_utf8(value).map_err(|_| AddressListProblem::Bytes)?;
    let text = unfold(text.into());
    // Encoded words are only ever display names here, but a NUL or line break in one has fooled mail clients.
    if text.chars().any(is_hidden) || decode_words(&text).chars().any(is_hidden) {
        return Err(AddressListProblem::Control);
    }
    let tokens = tokenise(&text)?;
    if tokens.is_empty() {
        return Err(AddressListProblem::Empty);
    }
    let mut reader = Reader { tokens: &tokens, at: 0, addresses: Vec::new() };
    reader.list()?;
    if reader.addresses.is_empty() {
        return Err(AddressListProblem::Empty);
    }
    Ok(reader.addresses)
}

fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind<'a>,
    /// No white space or comment stands before it.
    is_glued: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind<'a> {
    /// Letters, digits and such, with dots.
    Word(&'a str),
    /// With its quotes.
    Quoted(&'a str),
    Special(u8),
}

fn tokenise(text: &str) -> Result<Vec<Token<'_>>, AddressListProblem> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let (mut at, mut is_glued) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        let kind = match byte {
            b' ' | b'\t' => {
                at += 1;
                is_glued = false;
                continue;
            }
            b'(' => {
                at += comment_length(&bytes[start..])?;
                is_glued = false;
                continue;
            }
            b'"' => {
                at += quoted_length(&bytes[start..])?;
                Kind::Quoted(&text[start..at])
            }
            b'<' | b'>' | b'@' | b',' | b':' | b';' => {
                at += 1;
                Kind::Special(*byte)
            }
            byte if is_word_byte(*byte) => {
                at += bytes[start..].iter().take_while(|b| is_word_byte(**b)).count();
                Kind::Word(&text[start..at])
            }
            b')' => return Err(AddressListProblem::Unclosed),
            _ => return Err(AddressListProblem::Syntax),
        };
        tokens.push(Token { kind, is_glued });
        is_glued = true;
    }
    Ok(tokens)
}

/// RFC 5322 `atext` and the dot; RFC 6532 adds everything beyond ASCII.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte)
}

fn comment_length(bytes: &[u8]) -> Result<usize, AddressListProblem> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'\\' => at += 1,
            // To a reader that knows no comments this would be an address.
            b'<' | b'>' | b'@' => return Err(AddressListProblem::Ambiguous),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Ok(at);
        }
    }
    Err(AddressListProblem::Unclosed)
}

fn quoted_length(bytes: &[u8]) -> Result<usize, AddressListProblem> {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return Ok(at + 1),
            b'\\' => at += 1,
            // Likewise for a reader that looks for the first angle bracket.
            b'<' | b'>' => return Err(AddressListProblem::Ambiguous),
            _ => {}
        }
        at += 1;
    }
    Err(AddressListProblem::Unclosed)
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    addresses: Vec<String>,
}

impl<'a> Reader<'a> {
    fn list(&mut self) -> Result<(), AddressListProblem> {
        loop {
            let start = self.at;
            self.skip_words();
            if self.at > start && self.takes(b':') {
                self.group()?;
            } else {
                self.mailbox(start)?;
            }
            if self.at == self.tokens.len() {
                return Ok(());
            }
            self.separator()?;
        }
    }

    /// The members of `name: a, b;` behind the colon.
    fn group(&mut self) -> Result<(), AddressListProblem> {
        if self.takes(b';') {
            return Ok(());
        }
        loop {
            let start = self.at;
            self.skip_words();
            self.mailbox(start)?;
            if self.takes(b';') {
                return Ok(());
            }
            if self.at == self.tokens.len() {
                return Err(AddressListProblem::Unclosed);
            }
            self.separator()?;
        }
    }

    /// `local@domain` or `name <local@domain>`, whose first words, from `start` on, are read already.
    fn mailbox(&mut self, start: usize) -> Result<(), AddressListProblem> {
        if self.takes(b'<') {
            self.address()?;
            let is_closed = self.is_glued() && self.takes(b'>');
            return if is_closed { Ok(()) } else { Err(AddressListProblem::Unclosed) };
        }
        if self.kind() != Some(Kind::Special(b'@')) {
            return Err(AddressListProblem::Syntax);
        }
        match self.at - start {
            0 => Err(AddressListProblem::Syntax),
            1 => {
                self.at = start;
                // The first word of an address without brackets may have white space before it.
                self.address_from_word()
            }
            // `some name a@x`
            _ => Err(AddressListProblem::Ambiguous),
        }
    }

    /// The address between angle brackets.
    fn address(&mut self) -> Result<(), AddressListProblem> {
        if self.is_glued() { self.address_from_word() } else { Err(AddressListProblem::Syntax) }
    }

    fn address_from_word(&mut self) -> Result<(), AddressListProblem> {
        let local = match self.kind() {
            Some(Kind::Word(word)) if is_dot_atom(word) => word,
            // `"a@x"@y` has two domains to somebody.
            Some(Kind::Quoted(text)) if text.contains('@') => return Err(AddressListProblem::Ambiguous),
            Some(Kind::Quoted(text)) => text,
            _ => return Err(AddressListProblem::Syntax),
        };
        self.at += 1;
        if !self.is_glued() || !self.takes(b'@') || !self.is_glued() {
            return Err(AddressListProblem::Syntax);
        }
        let Some(Kind::Word(domain)) =
            self.kind().filter(|kind| matches!(kind, Kind::Word(d) if is_dot_atom(d)))
        else {
            return Err(AddressListProblem::Syntax);
        };
        self.at += 1;
        // Some clients decode before they parse, and show what the encoded word says as the address.
        if local.contains("=?") || domain.contains("=?") {
            return Err(AddressListProblem::Ambiguous);
        }
        self.addresses.push(format!("{local}@{domain}"));
        Ok(())
    }

    fn skip_words(&mut self) {
        while matches!(self.kind(), Some(Kind::Word(_) | Kind::Quoted(_))) {
            self.at += 1;
        }
    }

    /// What follows a complete mailbox. Anything but a comma is a second reading: `a@x <b@y>`, `<a@x><b@y>`.
    fn separator(&mut self) -> Result<(), AddressListProblem> {
        if self.takes(b',') { Ok(()) } else { Err(AddressListProblem::Ambiguous) }
    }

    fn kind(&self) -> Option<Kind<'a>> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn is_glued(&self) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.is_glued)
    }

    fn takes(&mut self, special: u8) -> bool {
        let is_next = self.kind() == Some(Kind::Special(special));
        self.at += usize::from(is_next);
        is_next
    }
}

fn is_dot_atom(word: &str) -> bool {
    word.split('.').all(|atom| !atom.is_empty())
}
