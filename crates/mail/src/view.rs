//! A message as people see it: bodies, attachments and decoded headers.
//!
//! Accepts any bytes. Parts that cannot be decoded are shown as they are, never refused.

use std::collections::HashMap;

use crate::encoded_word::decode_words;
use crate::header_block::HeaderBlock;
use crate::header_check::is_field_name;
use crate::mime_tree::{Leaf, leaves};

/// The visible parts of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageView {
    /// The first text/plain part that is not a file.
    pub plain_body: Option<String>,
    /// The first text/html part that is not a file.
    pub html_body: Option<String>,
    /// Every other part, including inline images.
    pub attachments: Vec<AttachmentView>,
    /// Lower-case names in the order of their first use, each with its decoded values in order.
    pub headers: Vec<(String, Vec<String>)>,
}

/// A file in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentView {
    /// File name; `attachment-N` if the message names none.
    pub filename: String,
    /// `type/subtype` in lower case.
    pub content_type: String,
    /// For an inline image: its name in `cid:` URLs of the HTML.
    pub content_id: Option<String>,
    pub content: Vec<u8>,
}

pub fn view(bytes: &[u8]) -> MessageView {
    let mut view = MessageView { headers: headers(bytes), ..MessageView::default() };
    let leaves = leaves(bytes);
    let is_single = leaves.len() == 1;
    for leaf in leaves {
        let essence = leaf.essence();
        // A single part may have a file name and still be the whole text.
        let is_file = leaf.is_attachment() || (!is_single && leaf.file_name().is_some());
        match essence.as_str() {
            "text/plain" if !is_file && view.plain_body.is_none() => view.plain_body = Some(leaf.text()),
            "text/html" if !is_file && view.html_body.is_none() => view.html_body = Some(leaf.text()),
            _ => view.attachments.push(attachment(&leaf, essence, view.attachments.len() + 1)),
        }
    }
    view
}

fn attachment(leaf: &Leaf<'_>, content_type: String, number: usize) -> AttachmentView {
    AttachmentView {
        filename: leaf.file_name().unwrap_or_else(|| format!("attachment-{number}")),
        content_type,
        content_id: leaf.content_id(),
        content: leaf.content().into_owned(),
    }
}

fn headers(bytes: &[u8]) -> Vec<(String, Vec<String>)> {
    let mut headers: Vec<(String, Vec<String>)> = Vec::new();
    let mut indexes: HashMap<String, usize> = HashMap::new();
    for field in HeaderBlock::new(bytes) {
        // Obsolete syntax has white space before the colon.
        let name = field.name.trim_ascii_end();
        if !is_field_name(name) {
            continue;
        }
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let value = decode_words(&field.unfolded()).into_owned();
        let index = *indexes.entry(name).or_insert_with_key(|name| {
            headers.push((name.clone(), Vec::new()));
            headers.len() - 1
        });
        headers[index].1.push(value);
    }
    headers
}
