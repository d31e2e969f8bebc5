//! Micro-benchmarks of hot pure functions: `micro NAME ITERATIONS` repeats one, usually on a 10 kB message, and prints
//! the seconds; `micro` alone lists the names. `cargo xtask bench micro [--instructions]` prints a table.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use postroad_app::templates::StandaloneTemplate;
use postroad_mail::{
    Canonical, Composition, DkimKey, RewritePlan, RewriteSettings, Signer, TrackKey, TrackedRecipient,
    compose,
};
use postroad_model::{DomainName, EmailAddress, Mailbox, MessageId, ServerId, Timestamp};
use postroad_smtp::server::{ServerConfig, ServerSession};
use postroad_smtp::{Body, ClientConfig, ClientSession, Event, HeloName, OutgoingMessage, TlsMode};
use postroad_store::{TemplateContent, TemplateTexts};
use serde_json::json;

const BODY_BYTES: usize = 10_000;
const WRITE_BYTES: usize = 64 << 10;

/// One function: prepared once, then called repeatedly.
type BenchedFunction = (&'static str, fn() -> anyhow::Result<Box<dyn FnMut()>>);

const FUNCTIONS: [BenchedFunction; 9] = [
    ("compose", prepare_compose),
    ("dkim-canonical", prepare_canonicalization),
    ("dkim-sign-rsa-2048", prepare_rsa_signature),
    ("dkim-sign-ed25519", prepare_ed25519_signature),
    ("rewrite-plan", prepare_rewrite_plan),
    ("rewrite-copy", prepare_rewrite_copy),
    ("smtp-server-message", prepare_smtp_server),
    ("smtp-client-message", prepare_smtp_client),
    ("template-render-30-kb", prepare_template),
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, iterations] = &arguments[..] else {
        for (name, _) in FUNCTIONS {
            println!("{name}");
        }
        return Ok(());
    };
    let Some((_, prepare)) = FUNCTIONS.iter().find(|(known, _)| known == name) else {
        bail!("no part {name}")
    };
    let (mut run, iterations) = (prepare()?, iterations.parse::<u64>().context("a number of iterations")?);
    let begun = Instant::now();
    for _ in 0..iterations {
        run();
    }
    println!("{}", begun.elapsed().as_secs_f64());
    Ok(())
}

fn html() -> String {
    let line = "<p>Order <b>4711</b>: <a href=\"https://shop.example/orders/4711?from=mail&amp;x=1\">see it</a></p>\n";
    line.repeat(BODY_BYTES / line.len())
}

fn mailboxes() -> anyhow::Result<(Mailbox, Mailbox)> {
    Ok((Mailbox::parse("Shop <shop@example.test>")?, Mailbox::parse("ann@example.com")?))
}

fn composition<'a>((from, to): &'a (Mailbox, Mailbox), html: &'a str) -> Composition<'a> {
    let date = "Sun, 15 Nov 2026 10:00:00 +0000";
    Composition {
        to: std::slice::from_ref(to),
        html_body: Some(html),
        ..Composition::new(from, "Your order", date, "4711@example.test")
    }
}

fn message() -> anyhow::Result<Vec<u8>> {
    Ok(compose(&composition(&mailboxes()?, &html())))
}

/// A mail of 30 kB with a table of 100 rows.
fn prepare_template() -> anyhow::Result<Box<dyn FnMut()>> {
    let row =
        "<tr><td>{{ row.title }}</td><td>{{ row.count }}</td><td>{{ row.price|currency('EUR') }}</td></tr>";
    let filling =
        "<p>Text that all mails of this kind have in common, as in most mails of shops.</p>\n".repeat(296);
    let html = format!(
        "<h1>Hello {{{{ name }}}}</h1>{filling}<table>{{% for row in rows %}}{row}{{% endfor %}}</table>"
    );
    let texts = TemplateTexts {
        subject: Some("Order {{ number }}".to_owned()),
        html_body: Some(html),
        plain_body: Some("Hello {{ name }}".to_owned()),
        ..TemplateTexts::default()
    };
    let content = TemplateContent { texts, ..TemplateContent::default() };
    let Ok(template) = StandaloneTemplate::build(content) else { bail!("the template has a mistake") };
    let rows: Vec<_> =
        (0..100).map(|n| json!({"title": format!("Blue shoes {n}"), "count": n, "price": 9.5})).collect();
    let serde_json::Value::Object(model) = json!({"name": "Ann", "number": 4711, "rows": rows}) else {
        bail!("the model is an object")
    };
    let html = template.render(&model, Some("de")).ok().and_then(|made| made.html_body).unwrap_or_default();
    ensure!((28_000..34_000).contains(&html.len()), "the mail has {} bytes", html.len());
    Ok(Box::new(move || {
        black_box(template.render(black_box(&model), Some("de")).is_ok());
    }))
}

fn prepare_compose() -> anyhow::Result<Box<dyn FnMut()>> {
    let (mailboxes, html) = (mailboxes()?, html());
    Ok(Box::new(move || {
        black_box(compose(&composition(&mailboxes, black_box(&html))));
    }))
}

fn prepare_canonicalization() -> anyhow::Result<Box<dyn FnMut()>> {
    let message = message()?;
    Ok(Box::new(move || {
        black_box(Canonical::of(black_box(&message)));
    }))
}

fn prepare_rsa_signature() -> anyhow::Result<Box<dyn FnMut()>> {
    let key = DkimKey::generate()?;
    prepare_signature(Signer::rsa("s1", DomainName::parse("example.test")?, key.private_pkcs8_der())?)
}

fn prepare_ed25519_signature() -> anyhow::Result<Box<dyn FnMut()>> {
    let key = DkimKey::generate_ed25519()?;
    prepare_signature(Signer::ed25519("s1", DomainName::parse("example.test")?, key.private_pkcs8_der())?)
}

fn prepare_signature(signer: Signer) -> anyhow::Result<Box<dyn FnMut()>> {
    let canonical = Canonical::of(&message()?);
    Ok(Box::new(move || {
        black_box(signer.sign(black_box(&canonical), Timestamp::from_micros(1_800_000_000_000_000)));
    }))
}

fn prepare_rewrite_plan() -> anyhow::Result<Box<dyn FnMut()>> {
    let message = message()?;
    Ok(Box::new(move || {
        black_box(plan(black_box(&message)));
    }))
}

fn prepare_rewrite_copy() -> anyhow::Result<Box<dyn FnMut()>> {
    let (message, key) = (message()?, TrackKey::new(&[7; 32]));
    let plan = plan(&message);
    Ok(Box::new(move || {
        let recipient = TrackedRecipient { key: &key, server_id: ServerId(3), message_id: MessageId(77) };
        black_box(plan.write(black_box(&message), &recipient));
    }))
}

fn plan(message: &[u8]) -> RewritePlan {
    let settings = RewriteSettings {
        base_url: "https://track.example.test",
        opens: true,
        clicks: true,
        excluded_hosts: &[],
    };
    RewritePlan::of(message, &settings)
}

/// One session with one message of 10 kB, in pieces as from a socket.
fn prepare_smtp_server() -> anyhow::Result<Box<dyn FnMut()>> {
    let config = Arc::new(ServerConfig::new(host_name()?));
    let message = message()?;
    let transaction = [
        &b"EHLO client.example\r\nMAIL FROM:<shop@example.test>\r\nRCPT TO:<ann@example.com>\r\nDATA\r\n"[..],
        &message,
        b".\r\n",
    ]
    .concat();
    Ok(Box::new(move || {
        let mut session = ServerSession::new(Arc::clone(&config));
        for piece in transaction.chunks(16 << 10) {
            session.feed(black_box(piece));
            while let Some(event) = session.next_event() {
                black_box(&event);
                session.accept();
            }
        }
        black_box(session.take_output());
    }))
}

/// One transaction with 10 kB, including the replies.
fn prepare_smtp_client() -> anyhow::Result<Box<dyn FnMut()>> {
    let config = ClientConfig { tls: TlsMode::Never, ..ClientConfig::new(host_name()?) };
    let mut session = ClientSession::new(config);
    let mut out = Vec::with_capacity(2 * WRITE_BYTES);
    session.feed(b"220 mx.example\r\n");
    session.fill_output(&mut out, WRITE_BYTES);
    session.feed(b"250-mx.example\r\n250-PIPELINING\r\n250 8BITMIME\r\n");
    while session.next_event().is_some() {}
    let (body, from, to) = (
        Bytes::from(message()?),
        EmailAddress::parse("shop@example.test")?,
        EmailAddress::parse("ann@example.com")?,
    );
    Ok(Box::new(move || {
        let body = Body::parse(vec![body.clone()]).expect("a composed message");
        let message = OutgoingMessage {
            mail_from: Some(from.clone()),
            rcpt_to: to.clone(),
            body,
            has_utf8_header: false,
        };
        session.send(message).expect("the session is ready");
        for reply in [&b"250 ok\r\n250 ok\r\n354 go\r\n"[..], b"250 taken\r\n"] {
            loop {
                out.clear();
                let written = session.fill_output(&mut out, WRITE_BYTES);
                black_box(&out);
                let is_finishing = matches!(session.next_event(), Some(Event::Finishing));
                if written == 0 && !is_finishing {
                    break;
                }
            }
            session.feed(reply);
        }
        while session.next_event().is_some() {}
    }))
}

fn host_name() -> anyhow::Result<HeloName> {
    Ok(DomainName::parse("mx.example")?.into())
}
