//! Links and pixels of tracked messages: found once for all recipients of a send, written for each of them.
//!
//! Inside a text, only URLs of links are replaced, and one pixel is inserted into HTML. A text that cannot be parsed
//! with certainty is not changed. Outside the texts all bytes stay, except the Content-Transfer-Encoding of a text that
//! needs another encoding, for example because a line becomes too long.

mod entities;
mod html;
mod parts;
mod plain;
mod settings;
mod target;
mod transfer;
mod web_address;

use std::ops::Range;

use memchr::memmem;
use postroad_model::{MessageId, ServerId};

use crate::header_block::HeaderBlock;
use crate::track::{TrackKey, TrackKind};
use parts::{TextKind, TextPart};
use settings::LinkRules;
pub use settings::RewriteSettings;

/// A text that contains this is signed or encrypted (RFC 9580 6.2, 7), so it is not rewritten.
const PGP_ARMOUR: &[u8] = b"-----BEGIN PGP ";

/// A URL as browsers read it from an attribute; `None` if it is uncertain how they read the text.
pub(crate) fn decode_reference(value: &str) -> Option<String> {
    entities::decode(value).map(Into::into)
}

/// The URLs of a plain text that mail programs turn into links.
pub(crate) fn find_web_addresses(text: &str) -> Vec<String> {
    let urls = plain::find_urls(text.as_bytes()).filter_map(|range| text.get(range));
    urls.take(settings::LINKS_MAX).map(str::to_owned).collect()
}

/// Text that is inserted at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Insertion {
    /// Tracking URL that replaces the URL of a link to this target.
    Link(String),
    Pixel,
}

/// The positions at which a message is rewritten.
#[derive(Debug)]
pub struct RewritePlan {
    base_url: String,
    texts: Vec<Text>,
}

#[derive(Debug)]
struct Text {
    part: TextPart,
    /// The decoded content.
    content: Vec<u8>,
    /// Positions in order, with the text to insert.
    insertions: Vec<(Range<usize>, Insertion)>,
}

/// The recipient whose copy is written, and the key of the tokens in the links of that copy.
#[derive(Debug, Clone, Copy)]
pub struct TrackedRecipient<'a> {
    pub key: &'a TrackKey,
    pub server_id: ServerId,
    pub message_id: MessageId,
}

impl RewritePlan {
    pub fn of(message: &[u8], settings: &RewriteSettings<'_>) -> Self {
        let base_url = settings.base_url.to_owned();
        if !settings.opens && !settings.clicks {
            return Self { base_url, texts: Vec::new() };
        }
        let rules = LinkRules::new(&base_url, settings.excluded_hosts, unsubscribe_urls(message));
        let rules = Some(&rules).filter(|_| settings.clicks);
        let texts = parts::find_texts(message).into_iter().filter_map(|part| {
            let content = transfer::decode(&message[part.body.clone()], part.encoding)?;
            if memmem::find(&content, PGP_ARMOUR).is_some() {
                return None;
            }
            let insertions = match (part.kind, rules) {
                (TextKind::Html, rules) => {
                    html::find_insertions(&content, part.charset, rules, settings.opens)
                }
                (TextKind::Plain, Some(rules)) => plain::find_insertions(&content, rules),
                (TextKind::Plain, None) => Vec::new(),
            };
            (!insertions.is_empty()).then(|| Text { part, content: content.into_owned(), insertions })
        });
        Self { base_url, texts: texts.collect() }
    }

    /// Whether the message has nothing to rewrite.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The recipient's copy of the message that the plan was made for. The same input gives the same bytes.
    pub fn write(&self, message: &[u8], recipient: &TrackedRecipient<'_>) -> Vec<u8> {
        let insertions: usize = self.texts.iter().map(|text| text.insertions.len()).sum();
        let mut out = Vec::with_capacity(message.len() + message.len() / 8 + insertions * 256);
        let mut copied = 0;
        for text in &self.texts {
            let content = self.content_for(text, recipient);
            let encoding = transfer::choose(&content, text.part.encoding);
            if encoding != text.part.encoding {
                let field = &text.part.encoding_field;
                out.extend_from_slice(&message[copied..field.start]);
                out.extend_from_slice(transfer::header(encoding));
                copied = field.end;
            }
            let body = &text.part.body;
            out.extend_from_slice(&message[copied..body.start]);
            transfer::encode(&content, encoding, &mut out);
            copied = body.end;
        }
        out.extend_from_slice(&message[copied..]);
        out
    }

    /// The content of a text with the recipient's own links and pixel.
    fn content_for(&self, text: &Text, recipient: &TrackedRecipient<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.content.len() + text.insertions.len() * 160);
        let mut copied = 0;
        for (range, insertion) in &text.insertions {
            out.extend_from_slice(&text.content[copied..range.start]);
            out.extend_from_slice(self.text_to_insert(insertion, recipient).as_bytes());
            copied = range.end;
        }
        out.extend_from_slice(&text.content[copied..]);
        out
    }

    /// Text to insert. Its URL contains only letters, digits and `-._~:/`, so that it needs no escaping inside any
    /// quotes.
    fn text_to_insert(&self, insertion: &Insertion, recipient: &TrackedRecipient<'_>) -> String {
        let token = |kind: &TrackKind| recipient.key.token(recipient.server_id, recipient.message_id, kind);
        let base = &self.base_url;
        match insertion {
            Insertion::Link(target) => {
                format!("{base}/c/{}", token(&TrackKind::Click { target: target.clone() }))
            }
            Insertion::Pixel => format!(
                "<img src=\"{base}/o/{}\" alt=\"\" width=\"1\" height=\"1\" border=\"0\" \
                 style=\"width:1px;height:1px;border:0\">",
                token(&TrackKind::Open)
            ),
        }
    }
}

/// Maximum number of URLs of `List-Unsubscribe` that are read.
const UNSUBSCRIBE_URLS_MAX: usize = 10;

/// The URLs of the `List-Unsubscribe` header (RFC 2369).
fn unsubscribe_urls(message: &[u8]) -> Vec<String> {
    let fields = HeaderBlock::new(message).filter(|field| field.is("List-Unsubscribe"));
    let mut urls = Vec::new();
    for field in fields {
        let value = field.unfolded().into_owned();
        let targets = value.split('<').skip(1).filter_map(|rest| rest.split_once('>'));
        urls.extend(targets.take(UNSUBSCRIBE_URLS_MAX).map(|(target, _)| target.replace([' ', '\t'], "")));
    }
    urls.truncate(UNSUBSCRIBE_URLS_MAX);
    urls
}
