//! One leaf of the MIME tree: a text body or an attachment, with its headers and its transfer encoding.

use std::borrow::Cow;

use mail_builder::encoders::{Base64Encoder, QuotedPrintableEncoder};
use mail_builder::headers::Header as _;
use mail_builder::headers::content_type::ContentType as ParameterHeader;
use postroad_model::Limits;

use crate::attachment::Attachment;
use crate::content_type::{ContentType, parameter_name};
use crate::header_line::{HeaderLine, clean, quoted};
use crate::newline::{crlf_length, crlf_pieces, lines};

const DISPOSITION: &str = "Content-Disposition";

/// A text body with its encoding. Line endings become CRLF when the part is written.
#[derive(Debug)]
pub(crate) struct TextPart<'a> {
    subtype: &'static str,
    text: &'a str,
    encoding: Encoding,
    /// An upper bound, so that the message is written into one allocation.
    encoded_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    SevenBit,
    QuotedPrintable,
    Base64,
}

impl<'a> TextPart<'a> {
    pub(crate) fn new(subtype: &'static str, text: &'a str) -> Self {
        let (encoding, encoded_bytes) = choose_encoding(text);
        Self { subtype, text, encoding, encoded_bytes }
    }

    /// Upper bound of the bytes that `write` adds.
    pub(crate) fn size_hint(&self) -> usize {
        128 + self.encoded_bytes
    }

    /// The text that is unencoded in the message, where a boundary could occur.
    pub(crate) fn verbatim(&self) -> Option<&str> {
        (self.encoding == Encoding::SevenBit).then_some(self.text)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Content-Type: text/");
        out.extend_from_slice(self.subtype.as_bytes());
        out.extend_from_slice(b"; charset=utf-8\r\n");
        match self.encoding {
            Encoding::SevenBit => write_seven_bit(self.text, out),
            Encoding::QuotedPrintable => write_quoted_printable(self.text, out),
            Encoding::Base64 => write_base64_text(self.text, out),
        }
    }
}

/// The encoding of a text, and an upper bound of its size: base64 if it has control characters, else 7bit if it is
/// ASCII in short lines, else the shorter one of quoted-printable and base64.
fn choose_encoding(text: &str) -> (Encoding, usize) {
    let length = crlf_length(text);
    // 76 characters and a line break for each line.
    let base64_bytes = length.div_ceil(BASE64_LINE_BYTES) * 78;
    if has_controls(text) {
        return (Encoding::Base64, base64_bytes);
    }
    if text.is_ascii() && has_short_lines(text) {
        return (Encoding::SevenBit, length);
    }
    let is_escaped = |b: &u8| u8::from(*b >= 127) | u8::from(*b == b'=');
    // The sum of a chunk of 128 fits into a byte.
    let escaped: usize =
        text.as_bytes().chunks(128).map(|chunk| usize::from(chunk.iter().map(is_escaped).sum::<u8>())).sum();
    let quoted_length = length + 2 * escaped;
    let base64_length = length.div_ceil(3) * 4;
    // A line of 76 characters costs 3 more bytes in quoted-printable (`=` and CRLF), and 2 more in base64.
    if quoted_length * 79 / 76 <= base64_length * 78 / 76 {
        // White space at the end of a line is escaped, and an escape is not cut by a soft line break.
        let line_ends = text.as_bytes().windows(2).filter(|window| is_white_line_end(window)).count();
        let quoted_bytes = (quoted_length + 2 * line_ends) * 76 / 71 + 128;
        (Encoding::QuotedPrintable, quoted_bytes)
    } else {
        (Encoding::Base64, base64_bytes)
    }
}

fn is_white_line_end(window: &[u8]) -> bool {
    matches!(window, [b' ' | b'\t', b'\r' | b'\n'])
}

/// Whether the text has control characters: NUL is forbidden in SMTP, and mail servers change others.
fn has_controls(text: &str) -> bool {
    // No early exit, so that the compiler can vectorise the loop.
    let is_control =
        |b: u8| u8::from(b < b' ') & u8::from(b != b'\t') & u8::from(b != b'\r') & u8::from(b != b'\n');
    text.bytes().fold(0, |found, b| found | is_control(b) | u8::from(b == 127)) != 0
}

fn has_short_lines(text: &str) -> bool {
    lines(text).all(|line| line.len() < Limits::LINE_BYTES_MAX)
}

fn write_seven_bit(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Transfer-Encoding: 7bit\r\n\r\n");
    crlf_pieces(text, |piece| out.extend_from_slice(piece));
}

fn write_quoted_printable(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Transfer-Encoding: quoted-printable\r\n\r\n");
    // Each piece begins with a line or a line break, so each piece can have its own encoder.
    crlf_pieces(text, |piece| {
        QuotedPrintableEncoder::new().preserve_line_breaks().encode_into(piece, out);
    });
}

/// Bytes encoded in one line of base64.
const BASE64_LINE_BYTES: usize = 57;

fn write_base64_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(BASE64_HEADER);
    let start = out.len();
    let mut carried = Vec::with_capacity(BASE64_LINE_BYTES);
    crlf_pieces(text, |piece| {
        let (first, rest) =
            piece.split_at(piece.len().min((BASE64_LINE_BYTES - carried.len()) % BASE64_LINE_BYTES));
        carried.extend_from_slice(first);
        if carried.len() == BASE64_LINE_BYTES {
            Base64Encoder::new().wrap_lines().encode_into(&carried, out);
            carried.clear();
        }
        let (whole, last) = rest.split_at(rest.len() / BASE64_LINE_BYTES * BASE64_LINE_BYTES);
        Base64Encoder::new().wrap_lines().encode_into(whole, out);
        carried.extend_from_slice(last);
    });
    Base64Encoder::new().wrap_lines().encode_into(&carried, out);
    cut_last_break(start, out);
}

const BASE64_HEADER: &[u8] = b"Content-Transfer-Encoding: base64\r\n\r\n";

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(BASE64_HEADER);
    let start = out.len();
    Base64Encoder::new().wrap_lines().encode_into(bytes, out);
    cut_last_break(start, out);
}

/// Removes the last line ending, which belongs to the boundary or is added again at the end of the message.
fn cut_last_break(start: usize, out: &mut Vec<u8>) {
    if out.len() > start {
        out.truncate(out.len() - 2);
    }
}

/// An attachment with its encoding.
#[derive(Debug)]
pub(crate) struct AttachmentPart<'a> {
    attachment: &'a Attachment<'a>,
    content_type: ContentType<'a>,
    content_id: Option<String>,
    /// Set for an attached message, which must not be encoded.
    message: Option<&'a str>,
}

impl<'a> AttachmentPart<'a> {
    pub(crate) fn new(attachment: &'a Attachment<'a>) -> Self {
        let octets = || ContentType { essence: "application/octet-stream", parameters: Vec::new() };
        let mut content_type =
            ContentType::parse(attachment.content_type).filter(|t| !t.is_multipart()).unwrap_or_else(octets);
        let mut message = None;
        if content_type.is_message() {
            // RFC 2046 5.2.1 forbids encoding a message/rfc822 part. A message in 7 bits is attached as it is. Any
            // other becomes application/octet-stream, which mail clients open if the file name ends in `.eml`.
            message = std::str::from_utf8(&attachment.content)
                .ok()
                .filter(|_| content_type.is_rfc822())
                .filter(|text| choose_encoding(text).0 == Encoding::SevenBit);
            if message.is_none() {
                content_type = octets();
            }
        }
        let content_id = attachment.content_id.map(clean_content_id).filter(|id| !id.is_empty());
        Self { attachment, content_type, content_id, message }
    }

    pub(crate) fn has_content_id(&self) -> bool {
        self.content_id.is_some()
    }

    pub(crate) fn size_hint(&self) -> usize {
        let content = match self.message {
            Some(text) => crlf_length(text),
            None => self.attachment.content.len().div_ceil(BASE64_LINE_BYTES) * 78,
        };
        // Names of 255 bytes are written twice and encoded.
        content + 4_096
    }

    pub(crate) fn verbatim(&self) -> Option<&str> {
        self.message
    }

    pub(crate) fn write(&self, disposition: &'static str, out: &mut Vec<u8>) {
        let name = file_name(self.attachment.name);
        self.write_content_type(&name, out);
        out.extend_from_slice(DISPOSITION.as_bytes());
        out.extend_from_slice(b": ");
        ParameterHeader::new(disposition)
            .attribute("filename", name.as_ref())
            .write_header(out, DISPOSITION.len() + 2);
        if let Some(id) = &self.content_id {
            out.extend_from_slice(format!("Content-ID: <{id}>\r\n").as_bytes());
        }
        match self.message {
            Some(text) => write_seven_bit(text, out),
            None => write_base64(&self.attachment.content, out),
        }
    }

    /// Writes the Content-Type with the file name, because some clients, such as Outlook, look nowhere else. A
    /// non-ASCII name is written as such clients write it, in encoded words between quotes; the Content-Disposition
    /// follows RFC 2231.
    fn write_content_type(&self, name: &str, out: &mut Vec<u8>) {
        let mut line = HeaderLine::new(out, "Content-Type");
        line.atom(self.content_type.essence);
        let is_left_out = |parameter: &&&str| {
            let name = parameter_name(parameter).split('*').next().unwrap_or_default();
            name.eq_ignore_ascii_case("name") || name.eq_ignore_ascii_case("boundary")
        };
        for parameter in self.content_type.parameters.iter().filter(|parameter| !is_left_out(parameter)) {
            line.glue(";");
            line.atom(parameter);
        }
        line.glue(";");
        if name.is_ascii() && !name.contains("=?") {
            line.atom(&format!("name={}", quoted(name)));
        } else {
            line.encoded_between("name=\"", name, "\"");
        }
        line.finish();
    }
}

/// A file name that fits on a line and cannot break it. The API has already refused longer names.
fn file_name(name: &str) -> Cow<'_, str> {
    let end = name.floor_char_boundary(Limits::FILE_NAME_BYTES_MAX);
    clean(&name[..end])
}

/// The text between the angle brackets of a Content-ID.
fn clean_content_id(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic() && !matches!(c, '<' | '>')).take(256).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(part: &TextPart<'_>) -> String {
        let mut out = Vec::new();
        part.write(&mut out);
        assert!(out.len() <= part.size_hint(), "{} bytes of {}", out.len(), part.size_hint());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_text_cut_into_pieces_is_encoded_like_an_uncut_one() {
        let long = "x".repeat(70_000);
        for line in [
            "é".to_owned(),
            "one line é ".to_owned(),
            "\t".to_owned(),
            format!("{long} é "),
            "ééé".repeat(30_000),
        ] {
            for count in [1, 2, 40_000 / line.len().min(40_000)] {
                let text = format!("{line}\n").repeat(count) + "é";
                let crlf = text.replace('\n', "\r\n");
                // The second text has CRLF already, so it is not cut into pieces.
                assert_eq!(written(&TextPart::new("plain", &text)), written(&TextPart::new("plain", &crlf)));
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_is_longer_than_its_size_hint(text in "[a =\t\né\u{7f}]{0,300}") {
            written(&TextPart::new("plain", &text));
        }
    }
}
