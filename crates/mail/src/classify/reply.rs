//! A parsed SMTP refusal: basic code, enhanced code (RFC 3463), text. Lines are joined, and the codes that each line
//! repeats are removed from the text.

use std::fmt;

use super::code_number::parse_number;

/// Longer replies are cut: no refusal needs more, and the text comes from a remote host.
const TEXT_BYTES_MAX: usize = 4096;

/// A refusing reply: 4xx or 5xx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    code: u16,
    enhanced: Option<EnhancedCode>,
    text: String,
}

/// `5.1.1` and the like. The first digit is 4 or 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnhancedCode {
    pub class: u16,
    pub subject: u16,
    pub detail: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyProblem {
    #[error(
        "this does not begin with an SMTP reply code; write it as the server sent it, such as `550 5.1.1 User unknown`"
    )]
    NoCode,
    #[error("{0} is not a refusal: only replies from 400 to 599 have a bounce class")]
    NoRefusal(u16),
}

impl Reply {
    /// Builds a reply from its code and its lines; each line may begin with the code and the enhanced code.
    pub fn new(code: u16, text: &str) -> Result<Self, ReplyProblem> {
        if !(400..600).contains(&code) {
            return Err(ReplyProblem::NoRefusal(code));
        }
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        let mut enhanced = None;
        let mut words: Vec<&str> = Vec::new();
        for line in text.lines() {
            // Relays that quote a reply repeat its code.
            let line = without_code(line, code).trim();
            match split_enhanced(line) {
                Some((found, rest)) if enhanced.is_none_or(|first| first == found) => {
                    enhanced = Some(found);
                    words.extend(rest.split_whitespace());
                }
                _ => words.extend(line.split_whitespace()),
            }
        }
        let text = words.join(" ");
        let enhanced = enhanced.or_else(|| find_qmail_code(&text));
        Ok(Self { code, enhanced, text: without_repeats(text, code, enhanced) })
    }

    /// Parses a reply as shown in a log or a delivery report: `550 5.1.1 …`, several lines `550-…`, with or without
    /// `smtp;` before it.
    pub fn parse(text: &str) -> Result<Self, ReplyProblem> {
        let text = text.trim_start();
        let text = match text.get(..5) {
            Some(prefix) if prefix.eq_ignore_ascii_case("smtp;") => text[5..].trim_start(),
            _ => text,
        };
        let (code, _) = text.lines().next().and_then(split_code).ok_or(ReplyProblem::NoCode)?;
        let lines: Vec<&str> = text.lines().map(|line| without_code(line, code)).collect();
        Self::new(code, &lines.join("\n"))
    }

    pub fn code(&self) -> u16 {
        self.code
    }

    pub fn enhanced(&self) -> Option<EnhancedCode> {
        self.enhanced
    }

    /// The text on one line, without the codes that begin each line or are repeated inside.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl EnhancedCode {
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(parse_number);
        let (class, subject, detail) = (parts.next()??, parts.next()??, parts.next()??);
        let is_good = matches!(class, 4 | 5) && parts.next().is_none();
        is_good.then_some(Self { class, subject, detail })
    }
}

impl fmt::Display for EnhancedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.class, self.subject, self.detail)
    }
}

/// `550-text`, `550 text` or `550` alone.
fn split_code(line: &str) -> Option<(u16, &str)> {
    let line = line.trim();
    let (digits, rest) = line.split_at_checked(3)?;
    let is_code = digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_code || !(rest.is_empty() || rest.starts_with([' ', '-', '\t'])) {
        return None;
    }
    Some((digits.parse().ok()?, rest.get(1..).unwrap_or_default()))
}

/// The line without the code. A wrapped line has none and stays as it is.
fn without_code(line: &str, code: u16) -> &str {
    split_code(line).filter(|(found, _)| *found == code).map_or(line, |(_, rest)| rest)
}

/// `5.1.1 text`; Cisco writes `#5.1.1`.
fn split_enhanced(line: &str) -> Option<(EnhancedCode, &str)> {
    let line = line.strip_prefix('#').unwrap_or(line);
    let end = line.find(|c: char| c.is_whitespace()).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    Some((EnhancedCode::parse(word.trim_end_matches([':', ',', '.', ';']))?, rest))
}

/// qmail and its successors put the code at the end: `sorry, no mailbox here by that name (#5.1.1)`.
fn find_qmail_code(text: &str) -> Option<EnhancedCode> {
    text.match_indices("(#").find_map(|(at, _)| {
        let inside = &text[at + 2..];
        let end = inside.find(|c: char| c != '.' && !c.is_ascii_digit())?;
        EnhancedCode::parse(&inside[..end])
    })
}

/// Removes codes such as `550-5.7.26` from the middle of sentences. A system that joins the lines of a reply leaves
/// such codes there.
fn without_repeats(text: String, code: u16, enhanced: Option<EnhancedCode>) -> String {
    let Some(enhanced) = enhanced else { return text };
    ['-', ' '].into_iter().fold(text, |text, separator| {
        let repeat = format!(" {code}{separator}{enhanced} ");
        if text.contains(&repeat) { text.replace(&repeat, " ") } else { text }
    })
}
