//! Accepts a finished message (send/raw and SMTP): finds its sender and options, and changes the few bytes that must
//! change. Everything else is kept, because the sender may have signed it.

use std::ops::Range;

use postroad_model::Limits;

use crate::address_list::{AddressListProblem, parse_address_list};
use crate::compose::{NewContent, with_new_content};
use crate::eight_bit::encode_field;
use crate::encoded_word::decode_words;
use crate::header_block::{Field, HeaderBlock};
use crate::header_check::{has_prefix, is_field_name};
use crate::newline::into_crlf;
use crate::trace::is_own_received;

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
    /// Addresses besides `from` and `sender` that a reader may take for the sender: those in Resent-From and
    /// Resent-Sender, and those spelled in encoded words of these two headers, of From or of Sender.
    pub apparent_senders: Vec<String>,
    /// A header that occurs several times but must not (RFC 5322 3.6).
    pub repeated: Option<&'static str>,
    /// The removed control headers: lower-case name and decoded value.
    pub controls: Vec<(String, String)>,
    /// Number of bytes added at the top, before the sender's headers.
    pub added_bytes: usize,
}

/// Values for a message without a date or identifier.
#[derive(Debug, Clone, Copy)]
pub struct RawFallback<'a> {
    /// RFC 5322 text.
    pub date: &'a str,
    /// Without angle brackets.
    pub message_id: &'a str,
}

/// Why a message is refused.
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
    #[error("The {0} header {1}")]
    Resent(&'static str, AddressListProblem),
    #[error("The Message-ID header is not a valid message id")]
    MessageId,
    #[error("The headers of the message are longer than {} bytes", Limits::HEADER_SECTION_BYTES_MAX)]
    HeadersTooLong,
    #[error("The message has more than {} headers", Limits::HEADER_FIELDS_MAX)]
    TooManyHeaders,
    #[error(
        "Line {line} of the message is longer than {} bytes; send long lines as quoted-printable or base64",
        Limits::LINE_BYTES_MAX
    )]
    LineTooLong { line: usize },
    #[error("The message is in a mail loop: it has passed too many servers, or this service too often")]
    Loop,
}

impl RawMessage {
    /// The requested tag, if it is not blank.
    pub fn tag(&self) -> Option<&str> {
        ["x-postroad-tag", "x-postal-tag"].into_iter().find_map(|name| self.control(name))
    }

    /// Replaces texts and files of the message; its headers stay, except headers that describe the content.
    pub fn replace_content(&mut self, content: &NewContent<'_>) {
        self.bytes = with_new_content(&self.bytes, &self.message_id, content);
        if let Some(subject) = content.subject {
            subject.clone_into(&mut self.subject);
        }
    }

    /// The first non-blank value of a control header; `name` is in lower case.
    pub fn control(&self, name: &str) -> Option<&str> {
        let named = self.controls.iter().filter(|(control, _)| control == name);
        named.map(|(_, value)| value.as_str()).find(|value| !value.is_empty())
    }

    /// The `X-Metadata-*` headers: the name after that prefix, in lower case because relays may change the case, and
    /// the value.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        let prefix = METADATA_PREFIX.len();
        let is_metadata = |name: &str| has_prefix(name.as_bytes(), METADATA_PREFIX);
        self.controls
            .iter()
            .filter(move |(name, _)| is_metadata(name))
            .map(move |(name, value)| (&name[prefix..], value.as_str()))
    }
}

/// Prepares a message from HTTP, where options are fields of the request, or a forwarded message. Only `X-Postroad-*`
/// and `X-Postal-Tag` are control headers.
pub fn prepare_raw(bytes: Vec<u8>, fallback: &RawFallback<'_>) -> Result<RawMessage, RawProblem> {
    prepare(bytes, fallback, EntryPoint::Http)
}

/// Prepares a message that came by SMTP, where options can only be headers (metadata, test mode, tracking,
/// idempotency).
pub fn prepare_submission(bytes: Vec<u8>, fallback: &RawFallback<'_>) -> Result<RawMessage, RawProblem> {
    prepare(bytes, fallback, EntryPoint::Smtp)
}

/// The entry point of a message; it determines which headers are control headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryPoint {
    Http,
    Smtp,
}

impl EntryPoint {
    fn is_control(self, field: &Field<'_>) -> bool {
        let is_ours = has_prefix(field.name, "X-Postroad-") || field.is("X-Postal-Tag");
        let is_option = || {
            has_prefix(field.name, METADATA_PREFIX)
                || ["X-Test-Mode", "X-Track-Opens", "X-Track-Clicks", "X-Idempotency-Key"]
                    .into_iter()
                    .any(|name| field.is(name))
        };
        is_ours || (self == Self::Smtp && is_option())
    }
}

fn prepare(
    bytes: Vec<u8>,
    fallback: &RawFallback<'_>,
    entry_point: EntryPoint,
) -> Result<RawMessage, RawProblem> {
    // Convert before the headers are parsed: a bare CR is a line break to some receivers.
    let mut bytes = into_crlf(bytes);
    check_lines(&bytes)?;
    let found = Findings::gather(&bytes, entry_point)?;

    let mut head = Vec::new();
    if !found.has_date {
        head.extend_from_slice(format!("Date: {}\r\n", fallback.date).as_bytes());
    }
    let message_id = found.message_id.unwrap_or_else(|| {
        head.extend_from_slice(format!("Message-ID: <{}>\r\n", fallback.message_id).as_bytes());
        fallback.message_id.to_owned()
    });
    let added_bytes = head.len();
    // Only the bytes up to the last changed header are rewritten; the body is moved at most once.
    let mut copied_to = 0;
    for edit in &found.edits {
        head.extend_from_slice(&bytes[copied_to..edit.replaced.start]);
        head.extend_from_slice(&edit.text);
        copied_to = edit.replaced.end;
    }
    if !head.is_empty() || copied_to > 0 {
        // A vector that grows by itself would double its capacity.
        bytes.reserve_exact(head.len().saturating_sub(copied_to));
        bytes.splice(..copied_to, head);
    }
    Ok(RawMessage {
        bytes,
        message_id,
        subject: found.subject.unwrap_or_default(),
        from: found.from,
        sender: found.sender,
        apparent_senders: found.apparent_senders,
        repeated: found.repeated,
        controls: found.controls,
        added_bytes,
    })
}

/// Headers that occur at most once (RFC 5322 3.6). Receivers refuse a message that repeats such a header, or show
/// another instance than the one that was checked.
const SINGLE_HEADERS: [&str; 8] = ["From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID"];
const METADATA_PREFIX: &str = "X-Metadata-";
/// A message with this many `Received` headers is in a loop (RFC 5321 6.3).
const HOPS_MAX: usize = 50;
/// A message with this many `Received` headers of Postroad is in a loop too: each delivery by Postroad adds one.
const OWN_HOPS_MAX: usize = 5;
/// Longest Message-ID; a longer one does not fit on a line.
const MESSAGE_ID_BYTES_MAX: usize = 900;

/// Results of one pass over the header section.
#[derive(Debug, Default)]
struct Findings {
    has_date: bool,
    message_id: Option<String>,
    subject: Option<String>,
    from: Vec<String>,
    sender: Vec<String>,
    apparent_senders: Vec<String>,
    /// Number of `Received` headers; Postroad wrote `own_hops` of them.
    hops: usize,
    own_hops: usize,
    seen: Vec<&'static str>,
    repeated: Option<&'static str>,
    controls: Vec<(String, String)>,
    /// Changes in the order of their positions, not overlapping.
    edits: Vec<Edit>,
}

/// A header that is removed or rewritten.
#[derive(Debug)]
struct Edit {
    replaced: Range<usize>,
    /// New text; empty if the header is removed.
    text: Vec<u8>,
}

impl Findings {
    fn gather(bytes: &[u8], entry_point: EntryPoint) -> Result<Self, RawProblem> {
        let mut found = Self::default();
        let mut count = 0;
        for field in HeaderBlock::new(bytes) {
            count += 1;
            if count > Limits::HEADER_FIELDS_MAX {
                return Err(RawProblem::TooManyHeaders);
            }
            if field.end > Limits::HEADER_SECTION_BYTES_MAX {
                return Err(RawProblem::HeadersTooLong);
            }
            found.add(&field, bytes, entry_point)?;
        }
        if count == 0 {
            return Err(RawProblem::NoHeaders);
        }
        if found.hops >= HOPS_MAX || found.own_hops >= OWN_HOPS_MAX {
            return Err(RawProblem::Loop);
        }
        if found.from.is_empty() { Err(RawProblem::FromMissing) } else { Ok(found) }
    }

    /// Checks a field and adds its facts. A field with non-ASCII bytes is replaced by its encoded form first.
    fn add(&mut self, field: &Field<'_>, bytes: &[u8], entry_point: EntryPoint) -> Result<(), RawProblem> {
        // If a line has a space before the colon or no colon, or if the first line starts with white space, some
        // programs see a header and others do not.
        if !is_field_name(field.name) || has_blank_fold(field.value) {
            let line = bytes[..field.start].split(|b| *b == b'\n').count();
            return Err(RawProblem::HeaderLine(line));
        }
        if field.value.contains(&0) {
            return Err(RawProblem::Nul);
        }
        let range = field.start..field.end;
        if field.value.is_ascii() {
            return self.add_ascii(field, range, entry_point);
        }
        if field.is("Message-ID") {
            return Err(RawProblem::MessageId);
        }
        let text = encode_field(field);
        // In practice only an address makes a line that long: other text is folded.
        if check_lines(&text).is_err() {
            let line = bytes[..field.start].split(|b| *b == b'\n').count();
            return Err(RawProblem::LineTooLong { line });
        }
        let edits_before = self.edits.len();
        for field in HeaderBlock::new(&text) {
            self.add_ascii(&field, range.clone(), entry_point)?;
        }
        if self.edits.len() == edits_before {
            self.edits.push(Edit { replaced: range, text });
        }
        Ok(())
    }

    /// Adds the facts of an ASCII field; `range` is its position in the message.
    fn add_ascii(
        &mut self,
        field: &Field<'_>,
        range: Range<usize>,
        entry_point: EntryPoint,
    ) -> Result<(), RawProblem> {
        if let Some(name) = SINGLE_HEADERS.into_iter().find(|name| field.is(name)) {
            if self.seen.contains(&name) {
                self.repeated = Some(name);
            }
            self.seen.push(name);
        }
        if field.is("From") {
            let list = parse_address_list(field.value).map_err(RawProblem::From)?;
            extend_bounded(&mut self.from, list.addresses).map_err(RawProblem::From)?;
            extend_bounded(&mut self.apparent_senders, list.spelled_addresses).map_err(RawProblem::From)?;
        } else if field.is("Sender") {
            let list = parse_address_list(field.value).map_err(RawProblem::Sender)?;
            extend_bounded(&mut self.sender, list.addresses).map_err(RawProblem::Sender)?;
            extend_bounded(&mut self.apparent_senders, list.spelled_addresses).map_err(RawProblem::Sender)?;
        } else if let Some(name) = ["Resent-From", "Resent-Sender"].into_iter().find(|name| field.is(name)) {
            let problem = |problem| RawProblem::Resent(name, problem);
            let list = parse_address_list(field.value).map_err(problem)?;
            extend_bounded(&mut self.apparent_senders, list.addresses).map_err(problem)?;
            extend_bounded(&mut self.apparent_senders, list.spelled_addresses).map_err(problem)?;
        } else if field.is("Received") {
            self.hops += 1;
            self.own_hops += usize::from(is_own_received(&field.unfolded()));
        } else if field.is("Subject") {
            self.subject.get_or_insert_with(|| decode_words(&field.unfolded()).into_owned());
        } else if field.is("Date") {
            self.take_or_remove(field, range, |found, _| found.has_date = true);
        } else if field.is("Message-ID") {
            if field.unfolded().len() > MESSAGE_ID_BYTES_MAX
                || !field.unfolded().bytes().all(|b| matches!(b, b' '..=b'~'))
            {
                return Err(RawProblem::MessageId);
            }
            self.take_or_remove(field, range, |found, value| {
                found.message_id.get_or_insert_with(|| value.to_owned());
            });
        } else if field.is("Bcc") || field.is("Resent-Bcc") || field.is("Return-Path") {
            self.remove(range);
        } else if entry_point.is_control(field) {
            let name = String::from_utf8_lossy(field.name).to_ascii_lowercase();
            self.controls.push((name, decode_words(&field.unfolded()).into_owned()));
            self.remove(range);
        }
        Ok(())
    }

    /// Passes the value to `take`. A blank header counts as missing: it is removed, because receivers refuse a message
    /// that has both a blank header and ours.
    fn take_or_remove(&mut self, field: &Field<'_>, range: Range<usize>, take: impl FnOnce(&mut Self, &str)) {
        let value = field.unfolded();
        let value = value.strip_prefix('<').unwrap_or(&value);
        let value = value.strip_suffix('>').unwrap_or(value).trim();
        if value.is_empty() {
            self.remove(range);
        } else {
            take(self, value);
        }
    }

    fn remove(&mut self, range: Range<usize>) {
        self.edits.push(Edit { replaced: range, text: Vec::new() });
    }
}

/// Adds addresses to a list. The limit applies to the whole list, whose addresses may come from several headers.
fn extend_bounded(all: &mut Vec<String>, more: Vec<String>) -> Result<(), AddressListProblem> {
    all.extend(more);
    if all.len() > 2 * Limits::ADDRESSES_PER_LIST_MAX { Err(AddressListProblem::TooMany) } else { Ok(()) }
}

/// Refuses long lines, which relays cut, break or refuse (RFC 5321 4.5.3.1.6). They are not encoded here, because that
/// would change bytes that the sender may have signed.
fn check_lines(bytes: &[u8]) -> Result<(), RawProblem> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len() + 1]);
    for (index, end) in ends.enumerate() {
        // `+ 1` leaves out the CR. The end of the last line lies beyond the bytes, as if it had a CR.
        if end.saturating_sub(start + 1) > Limits::LINE_BYTES_MAX {
            return Err(RawProblem::LineTooLong { line: index + 1 });
        }
        start = end + 1;
    }
    Ok(())
}

/// Whether a continuation line has only white space, which RFC 5322 3.2.2 forbids: some parsers take it for the end of
/// the headers.
fn has_blank_fold(value: &[u8]) -> bool {
    value
        .split(|b| *b == b'\n')
        .skip(1)
        .any(|line| !line.is_empty() && line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r')))
}
