//! Composes a message from its parts: headers in a fixed order, a MIME tree no deeper than needed, in one buffer.
//!
//! The bytes depend only on the input, so composing again gives the same message. Callers validate first, but nothing
//! is trusted here either: no text can add a header line.

use aws_lc_rs::digest;
use postroad_model::{EmailAddress, Limits, Mailbox};

use crate::attachment::Attachment;
use crate::header_block::HeaderBlock;
use crate::header_check::{has_prefix, is_field_name};
use crate::header_line::{HeaderLine, clean, clean_decoded};
use crate::part::{AttachmentPart, TextPart};

/// Everything that makes up one message.
#[derive(Debug, Clone)]
pub struct Composition<'a> {
    pub from: &'a Mailbox,
    /// Written only if its address differs from that of `from`.
    pub sender: Option<&'a Mailbox>,
    pub reply_to: &'a [Mailbox],
    pub to: &'a [Mailbox],
    pub cc: &'a [Mailbox],
    pub subject: &'a str,
    /// RFC 5322 text.
    pub date: &'a str,
    /// Without angle brackets.
    pub message_id: &'a str,
    pub plain_body: Option<&'a str>,
    pub html_body: Option<&'a str>,
    pub attachments: &'a [Attachment<'a>],
    /// Custom headers in order. Headers with a name that is not valid are left out.
    pub headers: &'a [(String, String)],
}

impl<'a> Composition<'a> {
    /// A message without recipients, bodies and custom headers.
    pub fn new(from: &'a Mailbox, subject: &'a str, date: &'a str, message_id: &'a str) -> Self {
        Self {
            from,
            sender: None,
            reply_to: &[],
            to: &[],
            cc: &[],
            subject,
            date,
            message_id,
            plain_body: None,
            html_body: None,
            attachments: &[],
            headers: &[],
        }
    }
}

pub fn compose(composition: &Composition<'_>) -> Vec<u8> {
    let tree = Tree::new(composition);
    let mut out = Vec::with_capacity(tree.size_hint() + header_size_hint(composition));
    write_headers(composition, &mut out);
    out.extend_from_slice(b"MIME-Version: 1.0\r\n");
    tree.write(&mut out);
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// The texts and files of a message that already has its other headers.
#[derive(Debug, Clone)]
pub struct NewContent<'a> {
    /// If set, replaces the existing subject.
    pub subject: Option<&'a str>,
    pub plain_body: Option<&'a str>,
    pub html_body: Option<&'a str>,
    pub attachments: &'a [Attachment<'a>],
}

/// Keeps the headers of a message and replaces its content. Headers that describe the old content are removed.
pub(crate) fn with_new_content(message: &[u8], message_id: &str, content: &NewContent<'_>) -> Vec<u8> {
    let NewContent { subject, plain_body, html_body, attachments } = *content;
    let tree = Tree::of(plain_body, html_body, attachments, message_id);
    let mut out = Vec::with_capacity(tree.size_hint() + 4_096);
    for field in HeaderBlock::new(message) {
        let is_dropped = has_prefix(field.name, "Content-")
            || field.is("MIME-Version")
            || (field.is("Subject") && subject.is_some());
        if !is_dropped {
            out.extend_from_slice(&message[field.start..field.end]);
            // The message may end in its last header, without a line break.
            if !out.ends_with(b"\r\n") {
                out.extend_from_slice(b"\r\n");
            }
        }
    }
    if let Some(subject) = subject {
        write_subject(&mut out, subject);
    }
    out.extend_from_slice(b"MIME-Version: 1.0\r\n");
    tree.write(&mut out);
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn header_size_hint(composition: &Composition<'_>) -> usize {
    let mailboxes = 2 + composition.to.len() + composition.cc.len() + composition.reply_to.len();
    let custom: usize =
        composition.headers.iter().map(|(name, value)| name.len() + 2 * value.len() + 4).sum();
    512 + 80 * mailboxes + 2 * composition.subject.len() + custom
}

fn write_headers(composition: &Composition<'_>, out: &mut Vec<u8>) {
    write_text(out, "Date", &printable(composition.date, 100));
    write_mailboxes(out, "From", std::slice::from_ref(composition.from));
    if let Some(sender) =
        composition.sender.filter(|sender| !is_same_mailbox(&sender.address, &composition.from.address))
    {
        write_mailboxes(out, "Sender", std::slice::from_ref(sender));
    }
    if composition.to.is_empty() && composition.cc.is_empty() {
        out.extend_from_slice(b"To: undisclosed-recipients:;\r\n");
    }
    write_mailboxes(out, "To", composition.to);
    write_mailboxes(out, "Cc", composition.cc);
    write_mailboxes(out, "Reply-To", composition.reply_to);
    write_subject(out, composition.subject);
    // No fold after the colon, even if the Message-ID is long: some receivers do not recognise a folded one.
    let id = printable(composition.message_id, 900).replace(['<', '>', ' '], "");
    write_text(out, "Message-ID", &format!("<{id}>"));
    for (name, value) in composition.headers {
        write_custom(out, name, value);
    }
}

fn write_text(out: &mut Vec<u8>, name: &str, text: &str) {
    let mut line = HeaderLine::new(out, name);
    line.text(text);
    line.finish();
}

fn write_subject(out: &mut Vec<u8>, subject: &str) {
    let subject = clean_decoded(subject);
    let mut line = HeaderLine::new(out, "Subject");
    // Outer spaces, and text that looks like an encoded word, survive only inside an encoded word.
    if subject.starts_with(' ') || subject.ends_with(' ') || subject.contains("=?") {
        line.encoded(&subject);
    } else {
        line.text(&subject);
    }
    line.finish();
}

fn write_custom(out: &mut Vec<u8>, name: &str, value: &str) {
    if !is_field_name(name.as_bytes()) || name.len() > Limits::HEADER_NAME_BYTES_MAX {
        return;
    }
    let mut line = HeaderLine::new(out, name);
    // In a value that is wholly ASCII, encoded words stay as they are: in some headers they have no meaning. Any other
    // value must be encoded in any case, so its encoded words are decoded first.
    let value = if value.is_ascii() { clean(value) } else { clean_decoded(value) };
    line.mixed_text(value.trim_matches(' '));
    line.finish();
}

fn write_mailboxes(out: &mut Vec<u8>, header: &str, mailboxes: &[Mailbox]) {
    let Some((last, _)) = mailboxes.split_last() else { return };
    let mut line = HeaderLine::new(out, header);
    for mailbox in mailboxes {
        let name = mailbox.name.as_deref().map(clean_decoded);
        let name = name.as_deref().map(|name| name.trim_matches(' ')).filter(|name| !name.is_empty());
        let comma = if std::ptr::eq(mailbox, last) { "" } else { "," };
        let (local, domain) = (mailbox.address.local_part(), mailbox.address.domain());
        match name {
            None => line.atom(&format!("{local}@{domain}{comma}")),
            Some(name) => {
                line.phrase(name);
                line.atom(&format!("<{local}@{domain}>{comma}"));
            }
        }
    }
    line.finish();
}

fn is_same_mailbox(a: &EmailAddress, b: &EmailAddress) -> bool {
    a.domain() == b.domain() && a.local_part().eq_ignore_ascii_case(b.local_part())
}

/// The printable ASCII of a text, at most `max` bytes of it.
fn printable(text: &str, max: usize) -> String {
    text.chars().filter(|c| *c == ' ' || c.is_ascii_graphic()).take(max).collect()
}

/// mixed { alternative { plain, related { html, inline… } }, attached… }, each level only if it has two or more parts.
struct Tree<'a> {
    plain: Option<TextPart<'a>>,
    html: Option<TextPart<'a>>,
    inline: Vec<AttachmentPart<'a>>,
    attached: Vec<AttachmentPart<'a>>,
    /// Common start of this message's boundaries, which occurs in no part.
    stem: String,
}

impl<'a> Tree<'a> {
    fn new(composition: &Composition<'a>) -> Self {
        Self::of(
            composition.plain_body,
            composition.html_body,
            composition.attachments,
            composition.message_id,
        )
    }

    fn of(
        plain_body: Option<&'a str>,
        html_body: Option<&'a str>,
        attachments: &'a [Attachment<'a>],
        message_id: &str,
    ) -> Self {
        let html = html_body.map(|body| TextPart::new("html", body));
        let plain = match plain_body {
            // The API requires a body, but a message without one is still valid.
            None if html.is_none() => Some(""),
            body => body,
        };
        let plain = plain.map(|body| TextPart::new("plain", body));
        let (inline, attached) = attachments
            .iter()
            .map(AttachmentPart::new)
            .partition(|part| part.has_content_id() && html.is_some());
        let mut tree = Self { plain, html, inline, attached, stem: String::new() };
        tree.stem = tree.unused_stem(message_id);
        tree
    }

    /// A stem that no part contains. The caller may choose the Message-ID and so know the first candidate. Later
    /// candidates also depend on the content: nobody can write a text that contains its own hash.
    fn unused_stem(&self, message_id: &str) -> String {
        let first = boundary_stem(message_id, &[0]);
        if !self.contains(&first) {
            return first;
        }
        let mut content = digest::Context::new(&digest::SHA256);
        for text in self.verbatim() {
            // The length separates one text from the next.
            content.update(&(text.len() as u64).to_be_bytes());
            content.update(text.as_bytes());
        }
        let content = content.finish();
        let mut attempt: u64 = 0;
        loop {
            let stem = boundary_stem(message_id, &[content.as_ref(), &attempt.to_be_bytes()].concat());
            if !self.contains(&stem) {
                return stem;
            }
            attempt += 1;
        }
    }

    fn contains(&self, stem: &str) -> bool {
        self.verbatim().any(|text| text.contains(stem))
    }

    /// The unencoded texts, where a boundary could occur: `=_` occurs neither in base64 nor in quoted-printable.
    fn verbatim(&self) -> impl Iterator<Item = &str> {
        let texts = self.plain.iter().chain(&self.html).filter_map(TextPart::verbatim);
        texts.chain(self.inline.iter().chain(&self.attached).filter_map(AttachmentPart::verbatim))
    }

    fn size_hint(&self) -> usize {
        let texts: usize = self.plain.iter().chain(&self.html).map(TextPart::size_hint).sum();
        let files: usize = self.inline.iter().chain(&self.attached).map(AttachmentPart::size_hint).sum();
        texts + files + 512
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.attached.is_empty() {
            return self.write_bodies(out);
        }
        let mixed = Multipart::open(out, "mixed", &self.stem, 'm');
        self.write_bodies(out);
        for part in &self.attached {
            mixed.next(out);
            part.write("attachment", out);
        }
        mixed.close(out);
    }

    fn write_bodies(&self, out: &mut Vec<u8>) {
        match (&self.plain, &self.html) {
            (Some(plain), Some(html)) => {
                let alternative = Multipart::open(out, "alternative", &self.stem, 'a');
                plain.write(out);
                alternative.next(out);
                self.write_html(html, out);
                alternative.close(out);
            }
            (Some(plain), None) => plain.write(out),
            (None, Some(html)) => self.write_html(html, out),
            (None, None) => {}
        }
    }

    fn write_html(&self, html: &TextPart<'_>, out: &mut Vec<u8>) {
        if self.inline.is_empty() {
            return html.write(out);
        }
        // RFC 2387 3.1 asks for the type of the root part.
        let related = Multipart::open(out, "related; type=\"text/html\"", &self.stem, 'r');
        html.write(out);
        for part in &self.inline {
            related.next(out);
            part.write("inline", out);
        }
        related.close(out);
    }
}

/// An open multipart level. Parts do not end their last line: the line break before a boundary belongs to the
/// boundary (RFC 2046 5.1.1).
struct Multipart<'a> {
    stem: &'a str,
    letter: char,
}

impl<'a> Multipart<'a> {
    fn open(out: &mut Vec<u8>, subtype: &str, stem: &'a str, letter: char) -> Self {
        let header = format!(
            "Content-Type: multipart/{subtype};\r\n boundary=\"{stem}{letter}\"\r\n\r\n--{stem}{letter}\r\n"
        );
        out.extend_from_slice(header.as_bytes());
        Self { stem, letter }
    }

    fn next(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("\r\n--{}{}\r\n", self.stem, self.letter).as_bytes());
    }

    fn close(self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("\r\n--{}{}--", self.stem, self.letter).as_bytes());
    }
}

/// `=_` and 24 hexadecimal digits of a SHA-256.
fn boundary_stem(message_id: &str, salt: &[u8]) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(message_id.as_bytes());
    context.update(&[0]);
    context.update(salt);
    let hash = context.finish();
    let mut stem = String::with_capacity(32);
    stem.push_str("=_");
    for byte in &hash.as_ref()[..12] {
        for nibble in [byte >> 4, byte & 15] {
            stem.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE_ID: &str = "chosen@caller.example";

    fn stem_of(plain: &str, html: &str) -> String {
        Tree::of(Some(plain), Some(html), &[], MESSAGE_ID).stem
    }

    #[test]
    fn a_caller_who_writes_boundaries_into_the_text_gets_another_boundary() {
        // The stems that depend only on the Message-ID, which the caller chose.
        let guesses: Vec<String> = (0..=u8::MAX).map(|salt| boundary_stem(MESSAGE_ID, &[salt])).collect();
        let hostile = guesses.join("\r\n");
        let stem = stem_of(&hostile, "<p>Hi</p>");
        assert!(!hostile.contains(&stem), "{stem}");
        assert_eq!(stem_of(&hostile, "<p>Hi</p>"), stem, "the same message has the same boundaries");
        // A caller who adds the new boundary changes the text, and so the boundary once more.
        let informed = format!("{hostile}\r\n{stem}");
        let next = stem_of(&informed, "<p>Hi</p>");
        assert!(next != stem && !informed.contains(&next), "{next}");
        // The boundary depends on the HTML body too.
        assert_ne!(stem_of(&hostile, "<p>Ho</p>"), stem);
    }

    #[test]
    fn a_text_without_the_first_boundary_candidate_gets_that_candidate() {
        assert_eq!(stem_of("Hi", "<p>Hi</p>"), boundary_stem(MESSAGE_ID, &[0]));
    }
}
