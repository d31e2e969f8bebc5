//! Checks of API values for headers: `headers`, `content_type`, `Message-ID` and `Date`. Each problem's text is a
//! sentence for the author of the request.

use postroad_model::Limits;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::content_type::{CONTENT_TYPE_BYTES_MAX, ContentType};

/// Why a header name, a header value or a content type is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderProblem {
    #[error("A header name must not be empty")]
    NameEmpty,
    #[error("A header name must not be longer than {} bytes", Limits::HEADER_NAME_BYTES_MAX)]
    NameTooLong,
    #[error("A header name may only have printable ASCII characters without spaces and colons")]
    NameSyntax,
    #[error("The header `{0}` is set by the service and cannot be given")]
    NameReserved(String),
    #[error("A header value must not be longer than {0} bytes")]
    ValueTooLong(usize),
    #[error("A header value must not have line breaks")]
    ValueLineBreak,
    #[error("A header value must not have control characters")]
    ValueControl,
    #[error("A content type must not be longer than {CONTENT_TYPE_BYTES_MAX} bytes")]
    ContentTypeTooLong,
    #[error("A content type must read like `type/subtype` or `type/subtype; name=value`")]
    ContentTypeSyntax,
    #[error("An attachment cannot be of type multipart")]
    ContentTypeMultipart,
    #[error("Of the message types an attachment can only be message/rfc822")]
    ContentTypeMessage,
}

/// Names that requests cannot set, besides those that begin with `RESERVED_PREFIX`.
const RESERVED_NAMES: [&str; 8] = [
    "Received",
    "DKIM-Signature",
    "Return-Path",
    "Bcc",
    "Resent-Bcc",
    "Content-Type",
    "Content-Transfer-Encoding",
    "MIME-Version",
];
const RESERVED_PREFIX: &str = "x-postroad-";

pub fn check_header_name(name: &str) -> Result<(), HeaderProblem> {
    if name.is_empty() {
        return Err(HeaderProblem::NameEmpty);
    }
    if name.len() > Limits::HEADER_NAME_BYTES_MAX {
        return Err(HeaderProblem::NameTooLong);
    }
    if !is_field_name(name.as_bytes()) {
        return Err(HeaderProblem::NameSyntax);
    }
    let is_reserved = RESERVED_NAMES.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
        || has_prefix(name.as_bytes(), RESERVED_PREFIX);
    if is_reserved { Err(HeaderProblem::NameReserved(name.to_owned())) } else { Ok(()) }
}

/// RFC 5322 3.6.8 `field-name`.
pub(crate) fn is_field_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|b| b.is_ascii_graphic() && *b != b':')
}

/// Whether a header name starts with `prefix`, in any letter case.
pub(crate) fn has_prefix(name: &[u8], prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

pub fn check_header_value(value: &str, max_bytes: usize) -> Result<(), HeaderProblem> {
    if value.len() > max_bytes {
        return Err(HeaderProblem::ValueTooLong(max_bytes));
    }
    if value.contains(['\r', '\n']) {
        return Err(HeaderProblem::ValueLineBreak);
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(HeaderProblem::ValueControl);
    }
    Ok(())
}

pub fn check_content_type(text: &str) -> Result<(), HeaderProblem> {
    if text.len() > CONTENT_TYPE_BYTES_MAX {
        return Err(HeaderProblem::ContentTypeTooLong);
    }
    let parsed = ContentType::parse(text).ok_or(HeaderProblem::ContentTypeSyntax)?;
    if parsed.is_multipart() {
        return Err(HeaderProblem::ContentTypeMultipart);
    }
    if parsed.is_message() && !parsed.is_rfc822() {
        return Err(HeaderProblem::ContentTypeMessage);
    }
    Ok(())
}

/// Parses a message identifier (RFC 5322 3.6.4), written `<a@b>` or `a@b`, and returns it without brackets.
pub fn parse_message_id(text: &str) -> Option<String> {
    // An id with its brackets is one atom of a header; `header_line::ATOM_BYTES_MAX` is 900 bytes.
    const BYTES_MAX: usize = 898;
    let text = text.trim_matches([' ', '\t']);
    let id = match text.strip_prefix('<') {
        Some(rest) => rest.strip_suffix('>')?,
        None => text,
    };
    let (left, right) = id.split_once('@')?;
    let is_atext = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&b);
    let is_left_valid = !left.is_empty() && left.bytes().all(is_atext);
    let is_literal = |text: &str| {
        text.strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|inner| inner.bytes().all(|b| is_atext(b) || b == b':'))
    };
    let is_right_valid = !right.is_empty() && (right.bytes().all(is_atext) || is_literal(right));
    (id.len() <= BYTES_MAX && is_left_valid && is_right_valid).then(|| id.to_owned())
}

/// Whether `text` is a valid date (RFC 5322 3.3).
pub fn is_valid_date(text: &str) -> bool {
    // 100 bytes leave room for a comment with the name of the time zone, which many programs append.
    text.len() <= 100
        && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
        && OffsetDateTime::parse(text, &Rfc2822).is_ok()
}
