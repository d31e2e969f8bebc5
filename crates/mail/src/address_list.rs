//! A strict parser of address lists, for deciding who a message claims to be from.
//!
//! Mail programs disagree about malformed lists, and forgers exploit the difference: what one program takes for the
//! address is a name or a comment to another. So this parser accepts the plain grammar of RFC 5322 3.4 and refuses
//! everything that could be parsed differently. It reports every address in an accepted list.

use postroad_model::{DomainName, Limits};

use crate::encoded_word::decode_words;
use crate::header_block::unfold;

/// Why a list of addresses is refused. Callers write the error text after the name of the header.
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
    #[error("has too many addresses or groups; at most {ADDRESSES_MAX} addresses are allowed")]
    TooMany,
}

/// The addresses that a header value claims a message is from.
#[derive(Debug, Default)]
pub(crate) struct AddressList {
    /// The bare addresses, group members included. Never empty.
    pub(crate) addresses: Vec<String>,
    /// Addresses that a reader sees in encoded words or non-ASCII text, as `find_spelled_addresses` returns them.
    pub(crate) spelled_addresses: Vec<String>,
}

/// Maximum number of addresses in one header.
const ADDRESSES_MAX: usize = Limits::ADDRESSES_PER_LIST_MAX;
/// Maximum number of addresses and groups together: groups may be empty, so `ADDRESSES_MAX` does not limit them.
const ENTRIES_MAX: usize = 1_000;

pub(crate) fn parse_address_list(value: &[u8]) -> Result<AddressList, AddressListProblem> {
    let text = std::str::from_utf8(value).map_err(|_| AddressListProblem::Bytes)?;
    let text = unfold(text.into());
    // In an address list, encoded words are only display names, but a NUL or line break in one has fooled mail clients.
    if text.chars().any(is_forbidden) || decode_words(&text).chars().any(is_forbidden) {
        return Err(AddressListProblem::Control);
    }
    let mut reader = Reader { tokens: Tokens::new(&text), next: None, addresses: Vec::new(), entries: 0 };
    reader.step()?;
    if reader.next.is_none() {
        return Err(AddressListProblem::Empty);
    }
    reader.list()?;
    if reader.addresses.is_empty() {
        return Err(AddressListProblem::Empty);
    }
    let spelled_addresses = find_spelled_addresses(&text);
    if spelled_addresses.len() > ADDRESSES_MAX {
        return Err(AddressListProblem::TooMany);
    }
    Ok(AddressList { addresses: reader.addresses, spelled_addresses })
}

/// Every address that the value of a header like From contains or shows.
pub fn find_addresses(value: &str) -> Result<Vec<String>, AddressListProblem> {
    let list = parse_address_list(value.as_bytes())?;
    Ok(list.addresses.into_iter().chain(list.spelled_addresses).collect())
}

/// Addresses that a reader sees in a header value with encoded words or non-ASCII text:
/// `=?utf-8?q?ceo=40bank.example?= <a@good.example>` looks to every reader as if it came from the bank. Only the domain
/// matters: the local part is always `x`. Returns at most `ADDRESSES_MAX` + 1 addresses, and none for ASCII without
/// encoded words, which everybody reads the same way.
pub fn find_spelled_addresses(text: &str) -> Vec<String> {
    let decoded = decode_words(text);
    if text.is_ascii() && decoded == text {
        return Vec::new();
    }
    // Invisible characters must not hide an address. Joiners may be a part of a domain (RFC 5892 A.1 and A.2).
    let decoded: String = decoded.chars().filter(|c| !is_invisible(*c) || is_joiner(*c)).collect();
    let is_at = |c: char| matches!(c, '@' | '\u{ff20}' | '\u{fe6b}');
    let is_dot = |c: char| matches!(c, '.' | '\u{2024}' | '\u{3002}' | '\u{fe52}' | '\u{ff0e}' | '\u{ff61}');
    let mut found = Vec::new();
    for (at, sign) in decoded.match_indices(is_at) {
        let before = decoded[..at].trim_end_matches(is_joiner).chars().next_back();
        if before.is_none_or(|c| c.is_whitespace() || matches!(c, '<' | '(' | ',' | ';' | ':')) {
            continue;
        }
        let after_sign = &decoded[at + sign.len()..];
        let is_host = |c: char| c.is_alphanumeric() || is_dot(c) || is_joiner(c) || matches!(c, '-' | '_');
        let host = &after_sign[..after_sign.find(|c| !is_host(c)).unwrap_or(after_sign.len())];
        let host = host.trim_matches(|c| is_dot(c) || is_joiner(c) || matches!(c, '-' | '_'));
        if host.contains(is_dot) {
            let needs_joiners = host.contains(is_joiner) && DomainName::parse(host).is_ok();
            let host = if needs_joiners { host.to_owned() } else { host.replace(is_joiner, "") };
            found.push(format!("x@{host}"));
            if found.len() > ADDRESSES_MAX {
                break;
            }
        }
    }
    found
}

/// The characters of `is_forbidden` and `is_joiner`, and other invisible characters and very narrow spaces. Honest
/// names may contain those others, so they are not forbidden.
fn is_invisible(c: char) -> bool {
    is_forbidden(c)
        || is_joiner(c)
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{2006}' | '\u{2008}'..='\u{200a}' | '\u{202f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Control characters, zero-width spaces, line separators and changes of direction: headers with them are refused.
/// Excludes the characters of `is_joiner`, which emoji and Persian names contain.
fn is_forbidden(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c, '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Invisible characters that some scripts and composed emoji need.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    /// Whether the token directly follows another token, without white space or a comment between them.
    is_glued: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// Letters, digits and other `atext`, with dots.
    Word(&'a str),
    /// A quoted string, with its quotes.
    Quoted(&'a str),
    /// A comment, with its parentheses.
    Comment(&'a str),
    Special(u8),
}

/// Reads one token after the other, without collecting them.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    is_after_comment: bool,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, is_after_comment: false }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Token<'a>>, AddressListProblem> {
        let bytes = self.text.as_bytes();
        let mut is_glued = self.at > 0 && !self.is_after_comment;
        while let Some(byte) = bytes.get(self.at) {
            let start = self.at;
            let kind = match byte {
                b' ' | b'\t' => {
                    self.at += 1;
                    is_glued = false;
                    continue;
                }
                b'(' => {
                    self.at += comment_length(&bytes[start..])?;
                    Kind::Comment(&self.text[start..self.at])
                }
                b'"' => {
                    self.at += quoted_length(&bytes[start..])?;
                    Kind::Quoted(&self.text[start..self.at])
                }
                b'<' | b'>' | b'@' | b',' | b':' | b';' => {
                    self.at += 1;
                    Kind::Special(*byte)
                }
                byte if is_word_byte(*byte) => {
                    self.at += bytes[start..].iter().take_while(|b| is_word_byte(**b)).count();
                    Kind::Word(&self.text[start..self.at])
                }
                b')' => return Err(AddressListProblem::Unclosed),
                _ => return Err(AddressListProblem::Syntax),
            };
            self.is_after_comment = matches!(kind, Kind::Comment(_));
            return Ok(Some(Token { kind, is_glued }));
        }
        Ok(None)
    }
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
            // A parser that does not know comments would see an address here.
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
            // A parser that looks for the first angle bracket would see an address here.
            b'<' | b'>' => return Err(AddressListProblem::Ambiguous),
            _ => {}
        }
        at += 1;
    }
    Err(AddressListProblem::Unclosed)
}

struct Reader<'a> {
    tokens: Tokens<'a>,
    /// The token that was read but not processed yet.
    next: Option<Token<'a>>,
    addresses: Vec<String>,
    entries: usize,
}

/// The words before a special character: a name, or the local part of an address.
#[derive(Clone, Copy)]
struct Words<'a> {
    first: Option<Kind<'a>>,
    count: usize,
}

impl<'a> Reader<'a> {
    fn list(&mut self) -> Result<(), AddressListProblem> {
        loop {
            let words = self.words()?;
            if words.count > 0 && self.skip_if(b':')? {
                self.group()?;
            } else {
                self.mailbox(words)?;
            }
            if self.next.is_none() {
                return Ok(());
            }
            self.separator()?;
        }
    }

    /// The members of `name: a, b;` after the colon.
    fn group(&mut self) -> Result<(), AddressListProblem> {
        if self.skip_if(b';')? {
            return Ok(());
        }
        loop {
            let words = self.words()?;
            self.mailbox(words)?;
            if self.skip_if(b';')? {
                return Ok(());
            }
            if self.next.is_none() {
                return Err(AddressListProblem::Unclosed);
            }
            self.separator()?;
        }
    }

    /// `local@domain` or `name <local@domain>`, whose first words were already read.
    fn mailbox(&mut self, words: Words<'a>) -> Result<(), AddressListProblem> {
        if self.skip_if(b'<')? {
            self.address()?;
            let is_closed = self.is_glued() && self.skip_if(b'>')?;
            return if is_closed { Ok(()) } else { Err(AddressListProblem::Unclosed) };
        }
        if self.kind() != Some(Kind::Special(b'@')) {
            return Err(AddressListProblem::Syntax);
        }
        match (words.count, words.first) {
            // The first word of an address without brackets may have white space before it.
            (1, Some(word)) => self.address_from(word),
            (0, _) | (_, None) => Err(AddressListProblem::Syntax),
            // `some name a@x`
            _ => Err(AddressListProblem::Ambiguous),
        }
    }

    /// The address between angle brackets.
    fn address(&mut self) -> Result<(), AddressListProblem> {
        match self.next {
            Some(Token { kind: word @ (Kind::Word(_) | Kind::Quoted(_)), is_glued: true }) => {
                self.step()?;
                self.address_from(word)
            }
            _ => Err(AddressListProblem::Syntax),
        }
    }

    /// The address that begins with a word that was already read.
    fn address_from(&mut self, word: Kind<'a>) -> Result<(), AddressListProblem> {
        let local = match word {
            Kind::Word(word) if is_dot_atom(word) => word,
            // Some parsers see two domains in `"a@x"@y`.
            Kind::Quoted(text) if text.contains('@') => return Err(AddressListProblem::Ambiguous),
            Kind::Quoted(text) => text,
            _ => return Err(AddressListProblem::Syntax),
        };
        if !self.is_glued() || !self.skip_if(b'@')? || !self.is_glued() {
            return Err(AddressListProblem::Syntax);
        }
        let Some(Kind::Word(domain)) =
            self.kind().filter(|kind| matches!(kind, Kind::Word(d) if is_dot_atom(d)))
        else {
            return Err(AddressListProblem::Syntax);
        };
        self.step()?;
        // Some clients decode encoded words before they parse the list, and show the decoded text as the address.
        if local.contains("=?") || domain.contains("=?") {
            return Err(AddressListProblem::Ambiguous);
        }
        if self.addresses.len() == ADDRESSES_MAX {
            return Err(AddressListProblem::TooMany);
        }
        self.addresses.push(format!("{local}@{domain}"));
        Ok(())
    }

    fn words(&mut self) -> Result<Words<'a>, AddressListProblem> {
        let mut words = Words { first: None, count: 0 };
        while let Some(kind @ (Kind::Word(_) | Kind::Quoted(_))) = self.kind() {
            words.first.get_or_insert(kind);
            words.count += 1;
            self.step()?;
        }
        Ok(words)
    }

    /// Checks the token after a complete mailbox or group. All but a comma is ambiguous: `a@x <b@y>`, `<a@x><b@y>`.
    fn separator(&mut self) -> Result<(), AddressListProblem> {
        self.entries += 1;
        if self.entries >= ENTRIES_MAX {
            return Err(AddressListProblem::TooMany);
        }
        if self.skip_if(b',')? { Ok(()) } else { Err(AddressListProblem::Ambiguous) }
    }

    /// Goes to the next token that is not a comment.
    fn step(&mut self) -> Result<(), AddressListProblem> {
        loop {
            self.next = self.tokens.next()?;
            if !matches!(self.kind(), Some(Kind::Comment(_))) {
                return Ok(());
            }
        }
    }

    fn kind(&self) -> Option<Kind<'a>> {
        self.next.map(|token| token.kind)
    }

    fn is_glued(&self) -> bool {
        self.next.is_some_and(|token| token.is_glued)
    }

    /// Skips the next token if it is this special character; returns whether it was.
    fn skip_if(&mut self, special: u8) -> Result<bool, AddressListProblem> {
        let is_next = self.kind() == Some(Kind::Special(special));
        if is_next {
            self.step()?;
        }
        Ok(is_next)
    }
}

fn is_dot_atom(word: &str) -> bool {
    word.split('.').all(|atom| !atom.is_empty())
}
