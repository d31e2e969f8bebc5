//! Taking in a finished message (send/raw and SMTP): who it is from, what it asks of us, and the few bytes that
//! must change. Everything else is kept as it came, because the sender may have signed it.

use std::ops::Range;

use crate::address_list::{AddressListProblem, parse_address_list};
use crate::encoded_word::decode_words;
use crate::header_block::{Field, HeaderBlock};
use crate::header_check::{has_prefix, is_field_name};
use crate::newline::into_crlf;

/// A message that can be stored and sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawMessage {
    pub bytes: Vec<u8>,
    /// Without angle brackets.
    pub message_id: String,
    /// Decoded; empty if there is none.
    pub subject: String,
    /// Every address of every From header. Never empty.
    pub from: Vec<String>,
    /// Every address of every Sender header.
    pub sender: Vec<String>,
    /// A header that stands several times and must not (RFC 5322 3.6).
    pub repeated: Option<&'static str>,
    /// The control headers that were taken out: lower-case name and decoded value.
    pub controls: Vec<(String, String)>,
    /// How many bytes were put on top; behind them stands only what the sender gave.
    pub added_bytes: usize,
}

/// What a message without a date or an identifier gets.
#[derive(Debug, Clone, Copy)]
pub struct RawFallback<'a> {
    /// RFC 5322 text.
    pub date: &'a str,
    /// Without angle brackets.
    pub message_id: &'a str,
}

/// Why a message is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RawProblem {
    #[error("The message is empty or has no headers")]
    NoHeaders,
    #[error("Line {0} of the message is not a valid header line")]
    HeaderLine(usize),
    #[error("The headers of the message have a NUL byte")]
    Nul,
    #[error("The message has no From header")]
    FromMissing,
    #[error("The From header {0}")]
    From(AddressListProblem),
    #[error("The Sender header {0}")]
    Sender(AddressListProblem),
    #[error("The Message-ID header is not a valid message id")]
    MessageId,
}

impl RawMessage {
    /// The tag the message asks for, if it is not blank.
    pub fn tag(&self) -> Option<&str> {
        ["x-postroad-tag", "x-postal-tag"].into_iter().find_map(|name| self.control(name))
    }

    /// The first value of a control header that is not blank; `name` in lower case.
    pub fn control(&self, name: &str) -> Option<&str> {
        let named = self.controls.iter().filter(|(control, _)| control == name);
        named.map(|(_, value)| value.as_str()).find(|value| !value.is_empty())
    }

    /// The `X-Metadata-*` headers: the rest of the name, in lower case because hosts on the way may change the case,
    /// and the value.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        let prefix = METADATA_PREFIX.len();
        let is_metadata = |name: &str| has_prefix(name.as_bytes(), METADATA_PREFIX);
        self.controls
            .iter()
            .filter(move |(name, _)| is_metadata(name))
            .map(move |(name, value)| (&name[prefix..], value.as_str()))
    }
}

/// A message by HTTP, where wishes are fields of the request: `X-Postroad-*` and `X-Postal-Tag` are its control headers.
pub fn prepare_raw(bytes: Vec<u8>, fallback: &RawFallback<'_>) -> Result<RawMessage, RawProblem> {
    prepare(bytes, fallback, Door::Http)
}

/// A message by SMTP, where headers are the only place for wishes (metadata, test mode, tracking, idempotency).
pub fn prepare_submission(bytes: Vec<u8>, fallback: &RawFallback<'_>) -> Result<RawMessage, RawProblem> {
    prepare(bytes, fallback, Door::Smtp)
}

/// Which door a message came through; it decides what a control header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Http,
    Smtp,
}

impl Door {
    fn is_control(self, field: &Field<'_>) -> bool {
        let is_ours = has_prefix(field.name, "X-Postroad-") || field.is("X-Postal-Tag");
        let is_wish = || {
            has_prefix(field.name, METADATA_PREFIX)
                || ["X-Test-Mode", "X-Track-Opens", "X-Track-Clicks", "X-Idempotency-Key"]
                    .into_iter()
                    .any(|name| field.is(name))
        };
        is_ours || (self == Self::Smtp && is_wish())
    }
}

fn prepare(bytes: Vec<u8>, fallback: &RawFallback<'_>, door: Door) -> Result<RawMessage, RawProblem> {
    // Before the headers are looked at: a bare CR is a line break to some receivers.
    let mut bytes = into_crlf(bytes);
    let found = Findings::gather(&bytes, door)?;

    let mut head = Vec::new();
    if !found.has_date {
        head.extend_from_slice(format!("Date: {}\r\n", fallback.date).as_bytes());
    }
    let message_id = found.message_id.unwrap_or_else(|| {
        head.extend_from_slice(format!("Message-ID: <{}>\r\n", fallback.message_id).as_bytes());
        fallback.message_id.to_owned()
    });
    let added_bytes = head.len();
    // Only the bytes up to the last removed header are written anew; the body moves at most once.
    let mut kept_from = 0;
    for removed in &found.removed {
        head.extend_from_slice(&bytes[kept_from..removed.start]);
        kept_from = removed.end;
    }
    if !head.is_empty() || kept_from > 0 {
        bytes.splice(..kept_from, head);
    }
    Ok(RawMessage {
        bytes,
        message_id,
        subject: found.subject.unwrap_or_default(),
        from: found.from,
        sender: found.sender,
        repeated: found.repeated,
        controls: found.controls,
        added_bytes,
    })
}

/// RFC 5322 3.6: these stand once at most. Receivers refuse repetitions, or show another one than we checked.
const ONCE: [&str; 8] = ["From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID"];
const METADATA_PREFIX: &str = "X-Metadata-";
/// Longer ones do not fit a line.
const MESSAGE_ID_BYTES_MAX: usize = 900;

/// What one walk over the header section brings.
#[derive(Debug, Default)]
struct Findings {
    has_date: bool,
    message_id: Option<String>,
    subject: Option<String>,
    from: Vec<String>,
    sender: Vec<String>,
    seen: Vec<&'static str>,
    repeated: Option<&'static str>,
    controls: Vec<(String, String)>,
    /// In order, not overlapping.
    removed: Vec<Range<usize>>,
}

impl Findings {
    fn gather(bytes: &[u8], door: Door) -> Result<Self, RawProblem> {
        let mut found = Self::default();
        let mut fields = HeaderBlock::new(bytes).peekable();
        if fields.peek().is_none() {
            return Err(RawProblem::NoHeaders);
        }
        for field in fields {
            found.take(&field, bytes, door)?;
        }
        if found.from.is_empty() { Err(RawProblem::FromMissing) } else { Ok(found) }
    }

    fn take(&mut self, field: &Field<'_>, bytes: &[u8], door: Door) -> Result<(), RawProblem> {
        // A space before the colon, a line without one, a first line that starts with white space: some programs
        // see a header there and some do not.
        if !is_field_name(field.name) || has_blank_fold(field.value) {
            let line = bytes[..field.start].split(|b| *b == b'\n').count();
            return Err(RawProblem::HeaderLine(line));
        }
        if field.value.contains(&0) {
            return Err(RawProblem::Nul);
        }
        if let Some(name) = ONCE.into_iter().find(|name| field.is(name)) {
            if self.seen.contains(&name) {
                self.repeated = Some(name);
            }
            self.seen.push(name);
        }
        if field.is("From") {
            self.from.extend(parse_address_list(field.value).map_err(RawProblem::From)?);
        } else if field.is("Sender") {
            self.sender.extend(parse_address_list(field.value).map_err(RawProblem::Sender)?);
        } else if field.is("Subject") {
            self.subject.get_or_insert_with(|| decode_words(&field.unfolded()).into_owned());
        } else if field.is("Date") {
            self.take_or_remove(field, |found, _| found.has_date = true);
        } else if field.is("Message-ID") {
            if field.unfolded().len() > MESSAGE_ID_BYTES_MAX
                || !field.unfolded().bytes().all(|b| matches!(b, b' '..=b'~'))
            {
                return Err(RawProblem::MessageId);
            }
            self.take_or_remove(field, |found, value| {
                found.message_id.get_or_insert_with(|| value.to_owned());
            });
        } else if field.is("Bcc") || field.is("Resent-Bcc") || field.is("Return-Path") {
            self.removed.push(field.start..field.end);
        } else if door.is_control(field) {
            let name = String::from_utf8_lossy(field.name).to_ascii_lowercase();
            self.controls.push((name, decode_words(&field.unfolded()).into_owned()));
            self.removed.push(field.start..field.end);
        }
        Ok(())
    }

    /// A blank header counts as missing, and gives way to ours: two of a kind would get the message refused.
    fn take_or_remove(&mut self, field: &Field<'_>, take: impl FnOnce(&mut Self, &str)) {
        let value = field.unfolded();
        let value = value.strip_prefix('<').unwrap_or(&value);
        let value = value.strip_suffix('>').unwrap_or(value).trim();
        if value.is_empty() {
            self.removed.push(field.start..field.end);
        } else {
            take(self, value);
        }
    }
}

/// A continuation line of white space alone (RFC 5322 3.2.2 forbids them): the end of the headers to some.
fn has_blank_fold(value: &[u8]) -> bool {
    value
        .split(|b| *b == b'\n')
        .skip(1)
        .any(|line| !line.is_empty() && line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r')))
}
