//! A composition that owns its parts. Tests specify only what differs from `Sample::plain`.

use std::borrow::Cow;

use postroad_mail::{Attachment, Composition, compose};
use postroad_model::Mailbox;

#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) from: Mailbox,
    pub(crate) sender: Option<Mailbox>,
    pub(crate) reply_to: Vec<Mailbox>,
    pub(crate) to: Vec<Mailbox>,
    pub(crate) cc: Vec<Mailbox>,
    pub(crate) subject: String,
    pub(crate) date: String,
    pub(crate) message_id: String,
    pub(crate) plain: Option<String>,
    pub(crate) html: Option<String>,
    pub(crate) files: Vec<File>,
    pub(crate) headers: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) content_type: String,
    pub(crate) content: Vec<u8>,
    pub(crate) content_id: Option<String>,
}

pub(crate) fn mailbox(text: &str) -> Mailbox {
    Mailbox::parse(text).unwrap()
}

pub(crate) fn file(name: &str, content_type: &str, content: &[u8]) -> File {
    File { name: name.into(), content_type: content_type.into(), content: content.into(), content_id: None }
}

pub(crate) fn image(name: &str, content_id: &str) -> File {
    let content_id = Some(content_id.into());
    File { content_id, ..file(name, "image/png", b"\x89PNG\r\n\x1a\n") }
}

impl Sample {
    pub(crate) fn plain(text: &str) -> Self {
        Self {
            from: mailbox("Ann Lee <ann@example.com>"),
            sender: None,
            reply_to: Vec::new(),
            to: vec![mailbox("bob@example.net")],
            cc: Vec::new(),
            subject: "Hello".into(),
            date: "Sun, 15 Nov 2026 03:00:00 +0000".into(),
            message_id: "1234@rp.example.com".into(),
            plain: Some(text.into()),
            html: None,
            files: Vec::new(),
            headers: Vec::new(),
        }
    }

    pub(crate) fn html(text: &str) -> Self {
        Self { plain: None, html: Some(text.into()), ..Self::plain("") }
    }

    pub(crate) fn compose(&self) -> Vec<u8> {
        let attachments: Vec<Attachment<'_>> = self
            .files
            .iter()
            .map(|file| Attachment {
                name: &file.name,
                content_type: &file.content_type,
                content: Cow::Borrowed(&file.content),
                content_id: file.content_id.as_deref(),
            })
            .collect();
        compose(&Composition {
            sender: self.sender.as_ref(),
            reply_to: &self.reply_to,
            to: &self.to,
            cc: &self.cc,
            plain_body: self.plain.as_deref(),
            html_body: self.html.as_deref(),
            attachments: &attachments,
            headers: &self.headers,
            ..Composition::new(&self.from, &self.subject, &self.date, &self.message_id)
        })
    }

    /// A message with every feature, and with non-ASCII text wherever possible.
    pub(crate) fn everything() -> Self {
        Self {
            from: mailbox("Ünï Cödé <ünï@bücher.example>"),
            sender: Some(mailbox("\"Desk, Front\" <desk@example.com>")),
            reply_to: vec![mailbox("help@example.com"), mailbox("Hilfe für alle <hilfe@example.com>")],
            to: vec![
                mailbox("Bob \"the builder\" O'Neil <bob@example.net>"),
                mailbox("山田太郎 <yamada@example.jp>"),
                mailbox("\"odd local\"@example.net"),
            ],
            cc: vec![mailbox("Dr. Eve <eve@example.org>")],
            subject: "Ihre Bestellung № 42 ist unterwegs – vielen Dank für Ihr Vertrauen, liebe Kundin 🎉"
                .into(),
            plain: Some("Grüße\nund = viel Spaß \n".into()),
            html: Some("<p>Gr\u{fc}\u{df}e <img src=\"cid:logo@x\"></p>".into()),
            files: vec![
                image("Lögo.png", "<logo@x>"),
                file("report.pdf", "application/pdf", &[0, 1, 2, 255, 254, b'\r', b'\n', b'\n']),
                file(
                    "Jahresabschluß, \"final\" 2026.csv",
                    "text/csv; charset=utf-8; header=present",
                    b"a;b\n1;2\n",
                ),
                file("übermäßig langer Dateiname, ".repeat(6).trim_end(), "", b""),
            ],
            headers: vec![
                ("X-Campaign".into(), "autumn".into()),
                ("X-Campaign".into(), "Herbst für alle".into()),
                (
                    "List-Unsubscribe".into(),
                    format!("<https://example.com/u?{}>, <mailto:u@example.com>", "x".repeat(90)),
                ),
                ("X-Long".into(), "word ".repeat(60)),
                ("X-Unbroken".into(), "y".repeat(1_000)),
            ],
            ..Self::plain("")
        }
    }
}
