//! A request takes at most three times its own bytes of memory, plus 1 MB (`Limits`). A counting allocator measures
//! this for every field that a client can fill; therefore this is a separate test binary with a single test.

#![cfg(test)]

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use peak_alloc::PeakAlloc;
use postroad_app::send::{
    AttachmentDraft, ListEntry, ListUnsubscribe, MessageDraft, RawDraft, SendContext, TemplateDraft,
};
use postroad_app::templates::TemplateFields;
use postroad_app::{App, Caller, Peer};
use postroad_model::{DomainName, Limits, SystemClock, split_address_list};
use postroad_store::{Database, Role, Settings, Store};
use postroad_testkit::{random_bytes, random_text};
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes of each case: large enough that the fixed 1 MB of the rule does not hide an excess.
const BYTES: usize = 1 << 20;
const FIXED_BYTES: usize = 1 << 20;
/// Incompressible content is measured with more bytes, because it comes close to the limit.
const RANDOM_BYTES: usize = 6 << 20;
const FROM: &str = "shop@example.test";

type FillMessage = for<'a> fn(&'a str, &mut MessageDraft<'a>);
type FillAttachment = for<'a> fn(&'a str, &mut AttachmentDraft<'a>);

#[tokio::test]
async fn a_request_takes_at_most_three_times_its_bytes_and_a_megabyte() {
    let service = Service::start().await;
    // The first calls fill caches that stay.
    for text in ["hello", &repeated_to_case_size("hello")] {
        service.measure_message("warm-up", text, |text, draft| draft.plain_body = Some(text.into())).await;
    }
    service.excesses.lock().unwrap().clear();
    address_fields(&service).await;
    text_fields(&service).await;
    attachments(&service).await;
    raw_messages(&service).await;
    incompressible_content(&service).await;
    renderings(&service).await;
    let excesses: Vec<String> = service.excesses.into_inner().unwrap();
    assert!(excesses.is_empty(), "{excesses:#?}");
}

async fn address_fields(service: &Service) {
    let fields: [(&str, FillMessage); 6] = [
        ("to", |text, draft| draft.to = split(text)),
        ("cc", |text, draft| draft.cc = split(text)),
        ("bcc", |text, draft| draft.bcc = split(text)),
        ("from", |text, draft| draft.from = Some(text.into())),
        ("sender", |text, draft| draft.sender = Some(text.into())),
        ("reply_to", |text, draft| draft.reply_to = Some(text.into())),
    ];
    let mut texts: Vec<String> =
        [",", "a,", "\"\",", "a@example.com,", "<,", "x:;,", "é,"].map(repeated_to_case_size).into();
    texts.push(format!("\"{}\" <{FROM}>", repeated_to_case_size("x")));
    texts.push(format!("{} <{FROM}>", repeated_to_case_size("=?utf-8?q?=40?= ")));
    texts.push(format!("a@{}", repeated_to_case_size("a.")));
    for (field, fill) in fields {
        // The three lists are read by the same function, so two texts are enough for `cc` and `bcc`.
        let count = if field.ends_with("cc") { 2 } else { texts.len() };
        for text in &texts[..count] {
            service.measure_message(&format!("{field} {:?}", start(text)), text, fill).await;
        }
    }
}

async fn text_fields(service: &Service) {
    let fields: [(&str, FillMessage); 13] = [
        ("subject", |text, draft| draft.subject = Some(text.into())),
        ("tag", |text, draft| draft.tag = Some(text.into())),
        ("plain_body", |text, draft| draft.plain_body = Some(text.into())),
        ("html_body", |text, draft| draft.html_body = Some(text.into())),
        ("name of a header", |text, draft| draft.headers = vec![(text.to_owned(), "x".to_owned())]),
        ("value of a header", |text, draft| draft.headers = vec![("X-A".to_owned(), text.to_owned())]),
        ("template", |text, draft| {
            draft.template = Some(TemplateDraft { name: Some(text.into()), ..TemplateDraft::default() });
        }),
        ("key of metadata", |text, draft| draft.metadata = vec![(text.to_owned(), "x".to_owned())]),
        ("value of metadata", |text, draft| draft.metadata = vec![("x".to_owned(), text.to_owned())]),
        ("send_at", |text, draft| draft.send_at = Some(text.into())),
        ("expires_at", |text, draft| draft.expires_at = Some(text.into())),
        ("ip_pool", |text, draft| draft.ip_pool = Some(text.into())),
        ("list_unsubscribe", |text, draft| {
            let list = ListUnsubscribe { url: Some(text.into()), mailto: Some(text.into()), one_click: true };
            draft.list_unsubscribe = Some(list);
        }),
    ];
    let texts: Vec<String> =
        ["x", "\n", "é\n", "=\n", " \n", "~/", "\u{7f}", "=?utf-8?q?a?= "].map(repeated_to_case_size).into();
    for (field, fill) in fields {
        for text in &texts {
            service.measure_message(&format!("{field} {:?}", start(text)), text, fill).await;
        }
    }
    let pairs: Vec<(String, String)> = (0..10_000).map(|at| (format!("K{at}"), "v".repeat(80))).collect();
    let (headers, metadata) = (pairs.clone(), pairs);
    service.measure_draft("many headers", BYTES, MessageDraft { headers, ..valid_draft() }).await;
    service.measure_draft("much metadata", BYTES, MessageDraft { metadata, ..valid_draft() }).await;
}

async fn attachments(service: &Service) {
    let fields: [(&str, FillAttachment); 4] = [
        ("name", |text, attachment| attachment.name = Some(text.into())),
        ("content_type", |text, attachment| attachment.content_type = Some(text.into())),
        ("content_id", |text, attachment| attachment.content_id = Some(text.into())),
        ("data", |text, attachment| attachment.data = Some(text.into())),
    ];
    for (field, fill) in fields {
        for text in ["a/b;", "é", "QUJD\n"] {
            service
                .measure_attachment(
                    &format!("{field} {text:?} of an attachment"),
                    &repeated_to_case_size(text),
                    fill,
                )
                .await;
        }
    }
    for content in ["\n", "\0é", "a line\r\n", "From: a@example.com\n\n"] {
        let dense = BASE64_STANDARD.encode(&repeated_to_case_size(content)[..BYTES / 4 * 3]);
        let broken =
            dense.as_bytes().chunks(76).map(|line| str::from_utf8(line).unwrap()).collect::<Vec<_>>();
        for data in [broken.join("\r\n"), dense] {
            service
                .measure_attachment("data", &data, |text, attachment| attachment.data = Some(text.into()))
                .await;
            let as_message: FillAttachment = |text, attachment| {
                attachment.data = Some(text.into());
                attachment.content_type = Some("message/rfc822".into());
            };
            service.measure_attachment(&format!("a message {content:?}"), &data, as_message).await;
        }
    }
}

async fn raw_messages(service: &Service) {
    let from = format!("From: {FROM}\r\n");
    let in_from = ["x:;,\r\n ", "a@b.c,\r\n ", "(\r\n ", "é\r\n ", "=?utf-8?q?a=40b.example?=\r\n ", "x:;,"];
    let in_head = [
        "To: é@x.example\r\n",
        "a:\r\n",
        "X-Postroad-Tag:\r\n",
        "X-Metadata-A: 1\r\n",
        "Bcc: x\r\n",
        "Received: by x\r\n",
        "Date:\r\n",
        "From: a@b.example\r\n",
    ];
    let in_field = ["é\r\n ", "=?utf-8?q?a?=\r\n ", "a@b.c,\r\n "];
    let in_body = ["\n", "\r", "a line\n", "a line that is clean\r\n", "x", "--b\r\n", "\n.\r\n"];
    let mut messages = vec![repeated_to_case_size("x"), repeated_to_case_size("\r\n")];
    messages.extend(in_from.map(|piece| format!("From: {} <{FROM}>\r\n\r\nx", repeated_to_case_size(piece))));
    messages.extend(in_head.map(|piece| format!("{from}{}\r\nx", repeated_to_case_size(piece))));
    for field in ["Subject", "Sender", "Resent-From", "Message-ID", "Content-Type"] {
        messages.extend(
            in_field.map(|piece| format!("{from}{field}: {}\r\n\r\nx", repeated_to_case_size(piece))),
        );
    }
    messages.extend(in_body.map(|piece| {
        format!("{from}Content-Type: multipart/mixed; boundary=b\r\n\r\n{}", repeated_to_case_size(piece))
    }));
    for message in messages {
        let data = BASE64_STANDARD.encode(&message);
        service.measure_raw(&format!("raw {:?}", start(&message)), FROM, "ann@example.com", &data).await;
    }
    let list = repeated_to_case_size("a@b.c,");
    service.measure_raw("fields of send/raw", &list, &list, &list).await;
}

/// Passes the request as the API does for a large one: as an owned copy that is freed once the message is
/// composed. Therefore the request is part of the measurement.
async fn incompressible_content(service: &Service) {
    for line_end in [" ", "\n", "\r\n", "\u{7f}"] {
        let text = random_text(RANDOM_BYTES, line_end);
        let half = &text[..text.floor_char_boundary(RANDOM_BYTES / 2)];
        for (name, plain, html) in [
            ("plain", Some(&text[..]), None),
            ("html", None, Some(&text[..])),
            ("both", Some(half), Some(half)),
        ] {
            let draft = MessageDraft {
                plain_body: plain.map(Cow::Borrowed),
                html_body: html.map(Cow::Borrowed),
                ..valid_draft()
            };
            service
                .measure_owned_draft(&format!("random {name} body with {line_end:?}"), text.len(), draft)
                .await;
        }
    }
    let data = BASE64_STANDARD.encode(random_bytes(RANDOM_BYTES / 4 * 3));
    for count in [1, 10] {
        let data = &data[..data.len() / count / 4 * 4];
        let attachment = || AttachmentDraft {
            name: Some("a.bin".into()),
            data: Some(data.into()),
            ..AttachmentDraft::default()
        };
        let attachments = (0..count).map(|_| attachment()).collect();
        let draft = MessageDraft { attachments, ..valid_draft() };
        service.measure_owned_draft(&format!("{count} random attachments"), data.len() * count, draft).await;
    }
    for line_end in ["\r\n", "\n"] {
        let mut message = format!("From: {FROM}\r\nContent-Transfer-Encoding: 8bit\r\n\r\n").into_bytes();
        for line in random_bytes(RANDOM_BYTES / 4 * 3).chunks_mut(100) {
            line.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b'x');
            message.extend_from_slice(line);
            message.extend_from_slice(line_end.as_bytes());
        }
        let data = BASE64_STANDARD.encode(message);
        service
            .measure_raw(&format!("random raw message with {line_end:?}"), FROM, "ann@example.com", &data)
            .await;
    }
}

/// A template can turn a small request into a large mail. Its texts have at most 5 MiB together, and the mail takes at
/// most five times that, whatever the template does.
async fn renderings(service: &Service) {
    const PEAK_BYTES_MAX: usize = 5 * (5 << 20);
    let doubling = format!("{{% set x = text %}}{}{{{{ x }}}}", "{% set x = x ~ x %}".repeat(20));
    let sources = [
        "{% for a in range(40) %}{{ text }}{% endfor %}",
        "{% for a in range(10000) %}{{ text }}{% endfor %}",
        "{% for a in list %}{% for b in list %}{{ b }}{% endfor %}{% endfor %}",
        "{{ list|join(text) }}",
        "{{ text|replace('x', text) }}",
        "{{ list|join(',')|upper|lower|title|trim }}",
        &doubling,
    ];
    let numbers: Vec<u32> = (0..5_000).collect();
    for (at, source) in sources.into_iter().enumerate() {
        let alias = format!("t{at}");
        let text = |text: &str| Some(Some(text.to_owned()));
        let fields = TemplateFields {
            alias: text(&alias),
            name: Some(alias.clone()),
            subject: text("x"),
            html_body: text(source),
            ..TemplateFields::default()
        };
        service
            .app
            .create_template(&service.caller, fields, true, None)
            .await
            .expect("the template compiles");
        let serde_json::Value::Object(model) =
            serde_json::json!({"text": "x".repeat(100_000), "list": numbers})
        else {
            unreachable!()
        };
        let template = TemplateDraft { name: Some(alias.into()), model, locale: None };
        let draft =
            MessageDraft { plain_body: None, html_body: None, template: Some(template), ..valid_draft() };
        let peak_bytes = peak_bytes_of(Box::pin(service.app.send_message(service.context(), draft))).await;
        service.check_limit(source, peak_bytes, PEAK_BYTES_MAX, 100_000);
    }
}

struct Service {
    app: App,
    caller: Caller,
    excesses: Mutex<Vec<String>>,
    _folder: TempDir,
}

impl Service {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let settings = Settings::small(Database::Sqlite(folder.path().join("postroad.db")));
        let role = Role::Node { identity: "test".into() };
        let store = Store::open(settings, role, Arc::new(SystemClock)).await.unwrap();
        let hostname = DomainName::parse("mail.example.test").unwrap();
        let app = App::new(store, Arc::new(SystemClock), Limits::default(), hostname);
        let setup = app.dev_setup().await.unwrap();
        let peer = Peer { address: IpAddr::from([127, 0, 0, 1]), tls: true };
        let caller = app
            .authenticate(Some(&setup.api_key), peer, postroad_app::access::Operation::SendMessage)
            .await
            .unwrap();
        Self { app, caller, excesses: Mutex::default(), _folder: folder }
    }

    fn context(&self) -> SendContext {
        SendContext { caller: self.caller.clone(), test: false, idempotency: None, warnings: Vec::new() }
    }

    /// The request itself is in memory before the measurement, so the work may take twice its size and 1 MB.
    async fn measure<T>(&self, name: &str, request_bytes: usize, work: impl Future<Output = T>) {
        let peak_bytes = peak_bytes_of(work).await;
        self.check_limit(name, peak_bytes, 2 * request_bytes + FIXED_BYTES, request_bytes);
    }

    fn check_limit(&self, name: &str, peak_bytes: usize, max: usize, request_bytes: usize) {
        if peak_bytes > max {
            let text = format!("{name}: {peak_bytes} bytes for a request of {request_bytes}");
            self.excesses.lock().unwrap().push(text);
        }
    }

    async fn measure_draft(&self, name: &str, request_bytes: usize, draft: MessageDraft<'_>) {
        let sending = Box::pin(self.app.send_message(self.context(), draft));
        self.measure(name, request_bytes, sending).await;
    }

    async fn measure_owned_draft(&self, name: &str, request_bytes: usize, draft: MessageDraft<'_>) {
        let sending = Box::pin(async {
            let sent = self.app.send_message(self.context(), draft.into_owned()).await;
            sent.expect("a refused message would measure nothing")
        });
        let peak_bytes = peak_bytes_of(sending).await;
        self.check_limit(name, peak_bytes, 3 * request_bytes + FIXED_BYTES, request_bytes);
    }

    async fn measure_message(&self, name: &str, text: &str, fill: FillMessage) {
        // Length of the text as JSON.
        let request_bytes = serde_json::to_string(text).unwrap().len();
        let mut draft = valid_draft();
        fill(text, &mut draft);
        self.measure_draft(name, request_bytes, draft).await;
    }

    async fn measure_attachment(&self, name: &str, text: &str, fill: FillAttachment) {
        let mut attachment = AttachmentDraft {
            name: Some("a.bin".into()),
            data: Some("QUJD".into()),
            ..AttachmentDraft::default()
        };
        fill(text, &mut attachment);
        self.measure_draft(name, text.len(), MessageDraft { attachments: vec![attachment], ..valid_draft() })
            .await;
    }

    async fn measure_raw(&self, name: &str, mail_from: &str, rcpt_to: &str, data: &str) {
        let draft = RawDraft {
            mail_from: mail_from.into(),
            rcpt_to: vec![entry(rcpt_to)],
            data: data.into(),
            bounce: false,
        };
        let sending = Box::pin(self.app.send_raw(self.context(), draft));
        self.measure(name, data.len(), sending).await;
    }
}

/// Peak of the memory that the work takes, in bytes.
async fn peak_bytes_of<T>(work: impl Future<Output = T>) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    work.await;
    ALLOCATOR.peak_usage().saturating_sub(before)
}

/// Repeats `piece` to the length of a case.
fn repeated_to_case_size(piece: &str) -> String {
    piece.repeat(BYTES / piece.len())
}

fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(60)]
}

/// Splits a list given as one text, as the API does.
fn split(text: &str) -> Vec<ListEntry<'_>> {
    split_address_list(text).take(Limits::ADDRESSES_PER_LIST_MAX + 1).map(entry).collect()
}

fn entry(text: &str) -> ListEntry<'_> {
    ListEntry { pointer: "/to".to_owned(), text: Cow::Borrowed(text) }
}

fn valid_draft<'a>() -> MessageDraft<'a> {
    MessageDraft {
        to: vec![entry("ann@example.com")],
        from: Some(FROM.into()),
        subject: Some("Hello".into()),
        plain_body: Some("Hello there".into()),
        ..MessageDraft::default()
    }
}
