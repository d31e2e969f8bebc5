//! Content of a message, as the tabs of its page show it; long parts are cut.

use postroad_app::{Extracted, MessageView, extract};

use crate::display::{beginning_on_page, bytes, first_headers};

/// Longest text on a page; the whole is in the download.
const TEXT_BYTES_MAX: usize = 40_000;
/// Maximum number of links on the page.
const LINKS_MAX: usize = 100;

pub(crate) struct AttachmentRow {
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) content_type: String,
    pub(crate) size: String,
}

#[derive(Default)]
pub(crate) struct MessageContent {
    /// Links and codes; empty unless the tab shows them.
    pub(crate) extracted: Extracted,
    /// Whether retention has removed the body.
    pub(crate) is_gone: bool,
    pub(crate) has_html: bool,
    /// The plain-text or the HTML part, if the tab shows one.
    pub(crate) text: Option<String>,
    /// Whether the page shows only the beginning.
    pub(crate) is_cut: bool,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) attachments: Vec<AttachmentRow>,
}

impl MessageContent {
    /// Content of a message whose body retention has removed.
    pub(crate) fn gone() -> Self {
        Self { is_gone: true, ..Self::default() }
    }

    pub(crate) fn read(view: MessageView, tab: &str) -> Self {
        let has_html = view.html_body.is_some();
        let mut content = Self { has_html, ..Self::default() };
        match tab {
            "links" => content.extract(&view),
            "text" => content.set_text(view.plain_body),
            "source" => content.set_text(view.html_body),
            "headers" => {
                let all = view.headers.into_iter();
                let all =
                    all.flat_map(|(name, values)| values.into_iter().map(move |value| (name.clone(), value)));
                (content.headers, content.is_cut) = first_headers(all, TEXT_BYTES_MAX);
            }
            _ => {}
        }
        let attachments = view.attachments.into_iter().enumerate().map(|(at, file)| AttachmentRow {
            number: at + 1,
            name: file.filename,
            content_type: file.content_type,
            size: bytes(file.content.len() as u64),
        });
        content.attachments = attachments.collect();
        content
    }

    fn extract(&mut self, view: &MessageView) {
        self.extracted = extract(view);
        self.is_cut = self.extracted.links.len() > LINKS_MAX;
        self.extracted.links.truncate(LINKS_MAX);
    }

    fn set_text(&mut self, whole: Option<String>) {
        let Some(whole) = whole else { return };
        let text = beginning_on_page(&whole, TEXT_BYTES_MAX);
        self.is_cut = text.len() < whole.len();
        self.text = Some(text.to_owned());
    }
}
