//! A returned message with its parts by purpose: text for people, fields for programs, the original.

use mail_parser::decoders::html::html_to_text;

use crate::mime_tree::{Leaf, leaves};

use super::headers::Headers;
use super::{address, original};

/// Longer texts are cut: the explanation is shorter, and only the original follows it.
const NOTICE_BYTES_MAX: usize = 256 << 10;
/// Longest status fields, or feedback report: room for the status fields of a thousand recipients.
const FIELDS_BYTES_MAX: usize = 2 << 20;
/// Longest text that is read again for each recipient, perhaps a thousand times.
const EXPLANATION_BYTES_MAX: usize = 16 << 10;
const PARTS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Headers of the returned message itself.
    pub(super) headers: Headers,
    /// The text for people, without the original.
    pub(super) notice: String,
    /// Content of message/delivery-status (RFC 3464) or message/global-delivery-status (RFC 6533).
    pub(super) status: Option<String>,
    /// Content of message/feedback-report (RFC 5965).
    pub(super) feedback: Option<String>,
    /// Headers of the original, if they were returned.
    pub(super) original: Headers,
    /// Whether the original was returned as a separate part: people quote, mail systems enclose.
    pub(super) is_original_enclosed: bool,
    /// The original itself, if it is a report.
    pub(super) enclosed_report: Option<Vec<u8>>,
}

impl Parts {
    pub(super) fn of(message: &[u8]) -> Self {
        let mut parts = Self { headers: Headers::parse(message), ..Self::default() };
        let mut html = None;
        for leaf in leaves(message).iter().take(PARTS_MAX) {
            match leaf.essence().as_str() {
                "message/delivery-status" | "message/global-delivery-status" => {
                    append(&mut parts.status, leaf);
                }
                "message/feedback-report" => append(&mut parts.feedback, leaf),
                "message/rfc822"
                | "message/global"
                | "text/rfc822-headers"
                | "message/global-headers"
                | "message/rfc822-headers"
                    if parts.original.is_empty() =>
                {
                    parts.is_original_enclosed = true;
                    parts.set_original(&leaf.content());
                }
                // A second original is not text for people.
                "text/rfc822-headers" => {}
                "text/html" => {
                    html = html.or_else(|| Some(html_to_text(cut(&leaf.text(), NOTICE_BYTES_MAX))));
                }
                // A multipart that could not be split is treated as text.
                essence if essence.starts_with("text/") || essence.starts_with("multipart/") => {
                    parts.add_text(&leaf.text());
                }
                _ => {}
            }
        }
        if let Some(html) = html.filter(|_| parts.notice.trim().is_empty()) {
            parts.add_text(&html);
        }
        parts
    }

    /// Adds text for people. Text after the original belongs to the original.
    fn add_text(&mut self, text: &str) {
        let (notice, original) = original::split_original(cut(text, NOTICE_BYTES_MAX));
        if !self.original.is_empty() || self.notice.len() + notice.len() > NOTICE_BYTES_MAX {
            return;
        }
        self.notice.push_str(notice);
        self.notice.push_str("\n\n");
        self.set_original(original.trim_start().as_bytes());
    }

    fn set_original(&mut self, original: &[u8]) {
        self.original = Headers::parse(original);
        let kind = self.original.find("content-type").unwrap_or_default().to_ascii_lowercase();
        self.enclosed_report = kind.starts_with("multipart/report").then(|| original.to_vec());
    }

    /// The part of the text that is read again for each recipient.
    pub(super) fn explanation(&self) -> &str {
        cut(&self.notice, EXPLANATION_BYTES_MAX)
    }

    pub(super) fn subject(&self) -> &str {
        self.headers.find("subject").unwrap_or_default()
    }

    /// The first address in From, or the whole value if it has none (`MAILER-DAEMON`).
    pub(super) fn from(&self) -> Option<&str> {
        let from = self.headers.find("from")?;
        Some(address::find_all(from).next().unwrap_or(from))
    }

    /// The first recipient of the original.
    pub(super) fn original_recipient(&self) -> Option<String> {
        self.original.addresses(&["x-hmxmroriginalrecipient", "to", "cc"]).into_iter().next()
    }
}

fn append(text: &mut Option<String>, leaf: &Leaf<'_>) {
    let text = text.get_or_insert_default();
    let more = leaf.text();
    let room = FIELDS_BYTES_MAX.saturating_sub(text.len());
    text.push_str(cut(&more, room));
    text.push_str("\n\n");
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
