//! Options of a message preview: desktop or phone, light or dark, with or without remote pictures.

use crate::query::query;
use crate::visit::Visit;

/// How the preview is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreviewOptions {
    pub(crate) is_phone: bool,
    pub(crate) is_dark: bool,
    pub(crate) has_images: bool,
}

impl PreviewOptions {
    pub(crate) fn read(visit: &Visit) -> Self {
        Self {
            is_phone: visit.query.is_ticked("phone"),
            is_dark: visit.query.is_ticked("dark"),
            has_images: visit.query.is_ticked("images"),
        }
    }

    /// Query string of the page's tab `view`; of the frame's source if `view` is empty.
    fn query(self, view: &str) -> String {
        let on = |is_on: bool| if is_on { "1" } else { "" };
        // The frame's source is the same for a phone; only the page shows it narrower.
        let phone = if view.is_empty() { "" } else { on(self.is_phone) };
        query(&[
            ("view", view),
            ("phone", phone),
            ("dark", on(self.is_dark)),
            ("images", on(self.has_images)),
        ])
    }

    /// Source URL of the frame.
    pub(crate) fn source(self) -> String {
        self.query("")
    }

    pub(crate) fn toggles(self) -> Vec<Toggle> {
        let toggle = |label, is_on, other: Self| Toggle { label, is_on, path: other.query("preview") };
        vec![
            toggle("Desktop", !self.is_phone, Self { is_phone: false, ..self }),
            toggle("Phone", self.is_phone, Self { is_phone: true, ..self }),
            toggle("Light", !self.is_dark, Self { is_dark: false, ..self }),
            toggle("Dark", self.is_dark, Self { is_dark: true, ..self }),
            toggle("Pictures off", !self.has_images, Self { has_images: false, ..self }),
            toggle("Pictures on", self.has_images, Self { has_images: true, ..self }),
        ]
    }
}

/// An option of the preview that can be switched on or off.
pub(crate) struct Toggle {
    pub(crate) label: &'static str,
    pub(crate) is_on: bool,
    pub(crate) path: String,
}
