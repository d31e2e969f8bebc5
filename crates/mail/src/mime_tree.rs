//! Finds the leaves of a message's MIME tree, in one pass per level.
//!
//! mail-parser's own tree is not used, because the cost must be linear in the size of a customer's message: mail-parser
//! searches for a missing boundary to the end of the message once per part. mail-parser also returns texts where
//! attachments need bytes.

use std::borrow::Cow;
use std::ops::Range;

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::parsers::MessageStream;
use mail_parser::{ContentType, HeaderValue};

use crate::encoded_word::{decode_charset, decode_words};
use crate::header_block::HeaderBlock;

/// Multiparts on deeper levels are not split.
const DEPTH_MAX: usize = 16;
const LEAVES_MAX: usize = 1_000;
/// Longer header values with parameters are cut, because they are an attack on the parameter parser.
const PARAMETERS_BYTES_MAX: usize = 8 << 10;

/// Longer Content-IDs are ignored: no mail program writes them.
const CONTENT_ID_BYTES_MAX: usize = 255;

/// A part without subparts.
#[derive(Debug)]
pub(crate) struct Leaf<'a> {
    content_type: Option<ContentType<'static>>,
    disposition: Option<ContentType<'static>>,
    transfer_encoding: String,
    /// Without angle brackets.
    content_id: Option<String>,
    /// Content, still encoded.
    body: &'a [u8],
    /// Type of the part if it has no Content-Type: the enclosing multipart determines it (RFC 2046 5.1.5).
    default_type: &'static str,
}

pub(crate) fn leaves(bytes: &[u8]) -> Vec<Leaf<'_>> {
    let mut found = Vec::new();
    walk(bytes, "text/plain", 0, &mut found);
    found
}

fn walk<'a>(bytes: &'a [u8], default_type: &'static str, depth: usize, found: &mut Vec<Leaf<'a>>) {
    let mut leaf = Leaf {
        content_type: None,
        disposition: None,
        transfer_encoding: String::new(),
        content_id: None,
        body: &[],
        default_type,
    };
    let mut block = HeaderBlock::new(bytes);
    for field in &mut block {
        if field.is("Content-Type") && leaf.content_type.is_none() {
            leaf.content_type = parse_parameters(field.value);
        } else if field.is("Content-Disposition") && leaf.disposition.is_none() {
            leaf.disposition = parse_parameters(field.value);
        } else if field.is("Content-Transfer-Encoding") {
            leaf.transfer_encoding = field.unfolded().to_ascii_lowercase();
        } else if field.is("Content-ID") && leaf.content_id.is_none() {
            let id = field.unfolded();
            let id = id.trim().trim_start_matches('<').trim_end_matches('>');
            leaf.content_id = Some(id.to_owned()).filter(|id| (1..=CONTENT_ID_BYTES_MAX).contains(&id.len()));
        }
    }
    leaf.body = block.body();
    if depth < DEPTH_MAX
        && let Some((boundary, child_type)) = leaf.multipart()
    {
        let parts = split_parts(leaf.body, boundary.as_bytes(), LEAVES_MAX.saturating_sub(found.len()));
        if !parts.is_empty() {
            for part in parts {
                walk(&leaf.body[part], child_type, depth + 1, found);
            }
            return;
        }
    }
    found.push(leaf);
}

pub(crate) fn parse_parameters(value: &[u8]) -> Option<ContentType<'static>> {
    let mut line = value[..value.len().min(PARAMETERS_BYTES_MAX)].to_vec();
    // The parser requires a line break at the end of the header.
    line.push(b'\n');
    match MessageStream::new(&line).parse_content_type().into_owned() {
        HeaderValue::ContentType(parsed) => Some(parsed),
        _ => None,
    }
}

/// Positions of the parts between the delimiter lines of a multipart body (RFC 2046 5.1.1). Without a closing delimiter
/// the last part extends to the end; without any delimiter there are no parts. The last of `parts_max` parts also
/// contains all further ones.
pub(crate) fn split_parts(body: &[u8], boundary: &[u8], parts_max: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut part_start = None;
    let mut at = 0;
    for line in body.split_inclusive(|b| *b == b'\n') {
        let line_start = at;
        at += line.len();
        let Some(rest) = line.strip_prefix(b"--").and_then(|rest| rest.strip_prefix(boundary)) else {
            continue;
        };
        let (is_closing, rest) = match rest.strip_prefix(b"--") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        if !rest.trim_ascii().is_empty() {
            continue;
        }
        if let Some(start) = part_start {
            if parts.len() + 1 >= parts_max && !is_closing {
                continue;
            }
            parts.push(start..start + without_last_break(&body[start..line_start]).len());
        }
        part_start = Some(at);
        if is_closing {
            return parts;
        }
    }
    parts.extend(part_start.map(|start| start..body.len()));
    parts
}

/// The line break before a delimiter belongs to the delimiter.
fn without_last_break(part: &[u8]) -> &[u8] {
    part.strip_suffix(b"\r\n").or_else(|| part.strip_suffix(b"\n")).unwrap_or(part)
}

impl Leaf<'_> {
    /// The boundary of a valid multipart, and the default type of the parts between its delimiters.
    fn multipart(&self) -> Option<(String, &'static str)> {
        let content_type =
            self.content_type.as_ref().filter(|t| t.c_type.eq_ignore_ascii_case("multipart"))?;
        let is_digest = content_type.c_subtype.as_deref().is_some_and(|s| s.eq_ignore_ascii_case("digest"));
        let boundary = content_type.attribute("boundary").filter(|boundary| !boundary.is_empty())?;
        Some((boundary.to_owned(), if is_digest { "message/rfc822" } else { "text/plain" }))
    }

    /// `type/subtype` in lower case.
    pub(crate) fn essence(&self) -> String {
        match &self.content_type {
            Some(t) => match &t.c_subtype {
                Some(subtype) => format!("{}/{subtype}", t.c_type).to_ascii_lowercase(),
                None => "application/octet-stream".to_owned(),
            },
            None => self.default_type.to_owned(),
        }
    }

    pub(crate) fn is_attachment(&self) -> bool {
        self.disposition.as_ref().is_some_and(|d| d.c_type.eq_ignore_ascii_case("attachment"))
    }

    /// The name by which HTML refers to this part, without angle brackets.
    pub(crate) fn content_id(&self) -> Option<String> {
        self.content_id.clone()
    }

    pub(crate) fn file_name(&self) -> Option<String> {
        let disposition = self.disposition.as_ref().and_then(|d| d.attribute("filename"));
        let name = disposition.or_else(|| self.content_type.as_ref().and_then(|t| t.attribute("name")));
        name.map(|name| decode_words(name).into_owned()).filter(|name| !name.is_empty())
    }

    /// The decoded content; the raw content if decoding fails.
    pub(crate) fn content(&self) -> Cow<'_, [u8]> {
        let decoded = match self.transfer_encoding.as_str() {
            "base64" => base64_decode(self.body),
            "quoted-printable" => quoted_printable_decode(self.body),
            _ => None,
        };
        decoded.map_or(Cow::Borrowed(self.body), Cow::Owned)
    }

    pub(crate) fn text(&self) -> String {
        let charset = self.content_type.as_ref().and_then(|t| t.attribute("charset"));
        decode_charset(charset, &self.content())
    }
}
