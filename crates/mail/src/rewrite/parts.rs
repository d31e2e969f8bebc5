//! Finds the texts of a message that may be rewritten, and their positions.

use std::ops::Range;

use encoding_rs::{Encoding, UTF_8};
use mail_parser::ContentType;

use super::settings::PART_BYTES_MAX;
use crate::header_block::HeaderBlock;
use crate::mime_tree::{parse_parameters, split_parts};

const DEPTH_MAX: usize = 16;
const PARTS_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Html,
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferEncoding {
    /// 7bit, 8bit or binary: the text is not encoded.
    Identity,
    QuotedPrintable,
    Base64,
}

/// A text that may be rewritten. All ranges are positions in the whole message.
#[derive(Debug)]
pub(super) struct TextPart {
    pub(super) kind: TextKind,
    pub(super) encoding: TransferEncoding,
    pub(super) charset: &'static Encoding,
    /// The Content-Transfer-Encoding header, or the empty range where one can be inserted.
    pub(super) encoding_field: Range<usize>,
    /// Position of the text, still encoded.
    pub(super) body: Range<usize>,
}

/// Finds texts, except those of attachments, of enclosed messages, and of signed or encrypted parts.
pub(super) fn find_texts(message: &[u8]) -> Vec<TextPart> {
    let mut found = Vec::new();
    walk(message, 0..message.len(), 0, &mut found);
    found
}

fn walk(message: &[u8], part: Range<usize>, depth: usize, found: &mut Vec<TextPart>) {
    let (bytes, offset) = (&message[part.clone()], part.start);
    let (mut content_type, mut disposition) = (None, None);
    let mut encoding = Some(TransferEncoding::Identity);
    let mut encoding_field = None;
    let mut block = HeaderBlock::new(bytes);
    for field in &mut block {
        if field.is("Content-Type") && content_type.is_none() {
            content_type = parse_parameters(field.value);
        } else if field.is("Content-Disposition") && disposition.is_none() {
            disposition = parse_parameters(field.value);
        } else if field.is("Content-Transfer-Encoding") {
            // With two of these headers, it is unknown which one a reader uses.
            encoding = if encoding_field.is_none() { read_encoding(&field.unfolded()) } else { None };
            encoding_field = Some(offset + field.start..offset + field.end);
        }
    }
    let body = offset + block.body_start()..part.end;
    let is_file = is_file(content_type.as_ref(), disposition.as_ref());
    if let Some(boundary) = content_type.as_ref().and_then(rewritable_boundary) {
        if depth < DEPTH_MAX && !is_file {
            let room = PARTS_MAX.saturating_sub(found.len());
            for inner in split_parts(&message[body.clone()], boundary.as_bytes(), room) {
                walk(message, body.start + inner.start..body.start + inner.end, depth + 1, found);
            }
        }
        return;
    }
    let (Some(kind), Some(encoding), Some(charset)) =
        (text_kind(content_type.as_ref()), encoding, charset(content_type.as_ref()))
    else {
        return;
    };
    if body.len() > PART_BYTES_MAX || found.len() >= PARTS_MAX || is_file {
        return;
    }
    let end = offset + block.fields_end();
    found.push(TextPart {
        kind,
        encoding,
        charset,
        encoding_field: encoding_field.unwrap_or(end..end),
        body,
    });
}

/// The boundary of a multipart whose parts may be changed: they are neither signed nor encrypted nor enclosed messages.
fn rewritable_boundary(content_type: &ContentType<'_>) -> Option<String> {
    let subtype = content_type.c_subtype.as_deref().unwrap_or_default().to_ascii_lowercase();
    let is_sealed = matches!(subtype.as_str(), "signed" | "encrypted" | "digest");
    let is_multipart = content_type.c_type.eq_ignore_ascii_case("multipart");
    let boundary = content_type.attribute("boundary").filter(|boundary| !boundary.is_empty())?;
    (is_multipart && !is_sealed).then(|| boundary.to_owned())
}

/// Kind of a text; a part without a type is plain text (RFC 2045 5.2).
fn text_kind(content_type: Option<&ContentType<'_>>) -> Option<TextKind> {
    let Some(content_type) = content_type else { return Some(TextKind::Plain) };
    if !content_type.c_type.eq_ignore_ascii_case("text") {
        return None;
    }
    match content_type.c_subtype.as_deref()?.to_ascii_lowercase().as_str() {
        "html" => Some(TextKind::Html),
        "plain" => Some(TextKind::Plain),
        _ => None,
    }
}

/// The charset, if it is a superset of ASCII: in other charsets a URL cannot be found by its letters.
fn charset(content_type: Option<&ContentType<'_>>) -> Option<&'static Encoding> {
    match content_type.and_then(|content_type| content_type.attribute("charset")) {
        Some(label) => Encoding::for_label_no_replacement(label.as_bytes())
            .filter(|encoding| encoding.is_ascii_compatible()),
        None => Some(UTF_8),
    }
}

fn read_encoding(value: &str) -> Option<TransferEncoding> {
    match value.trim().to_ascii_lowercase().as_str() {
        "" | "7bit" | "8bit" | "binary" => Some(TransferEncoding::Identity),
        "quoted-printable" => Some(TransferEncoding::QuotedPrintable),
        "base64" => Some(TransferEncoding::Base64),
        _ => None,
    }
}

/// Whether a part is an attachment or has a file name: the sender's file must arrive unchanged.
fn is_file(content_type: Option<&ContentType<'_>>, disposition: Option<&ContentType<'_>>) -> bool {
    disposition
        .is_some_and(|d| d.c_type.eq_ignore_ascii_case("attachment") || d.attribute("filename").is_some())
        || content_type.is_some_and(|t| t.attribute("name").is_some())
}
