//! Attachments of a message.

use std::borrow::Cow;

/// A file attached to the message; with a `content_id` and an HTML body it is an inline image of that body.
#[derive(Debug, Clone)]
pub struct Attachment<'a> {
    pub name: &'a str,
    /// May have parameters.
    pub content_type: &'a str,
    pub content: Cow<'a, [u8]>,
    /// With or without angle brackets.
    pub content_id: Option<&'a str>,
}
