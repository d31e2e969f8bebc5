//! Messages from customers: accepted raw and by SMTP, shown, rewritten for tracking, prepared for signing.

use postroad_mail::{
    Canonical, RawFallback, RewritePlan, RewriteSettings, TrackKey, TrackedRecipient, find_from_domain,
    has_utf8_header, prepare_raw, prepare_submission, view,
};
use postroad_model::{MessageId, ServerId};

use super::{Target, texts};

pub(super) const TARGET: Target = Target {
    name: "mime",
    run,
    seeds,
    frames: &[
        "{}",
        "From: {}\r\n\r\nx",
        "From: a@b.c\r\nSubject: {}\r\n\r\nx",
        "From: a@b.c\r\nContent-Type: {}\r\n\r\nx",
        "From: a@b.c\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{}",
        "From: a@b.c\r\nContent-Type: text/html\r\n\r\n{}",
        "From: a@b.c\r\nContent-Type: text/html\r\n\r\n<a href=\"{}\">x</a>",
        "From: a@b.c\r\nContent-Transfer-Encoding: base64\r\n\r\n{}",
        "From: a@b.c\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{}",
        "From: a@b.c\r\nList-Unsubscribe: {}\r\n\r\nhttp://a.example/",
        "From: a@b.c\r\n{}\r\n\r\nx",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "From: Shop <shop@example.test>\r\nTo: a@example.com\r\nSubject: =?utf-8?B?w6TDtsO8?=\r\nDate: Mon, 16 Nov 2026 \
         00:00:00 +0000\r\nMessage-ID: <1@example.test>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; \
         boundary=\"b\"\r\n\r\n--b\r\nContent-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\nContent-Type: \
         text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nHello =C3=A4 \
         https://example.com/x=\r\n\r\n--c\r\nContent-Type: text/html\r\n\r\n<p><a href=\"https://example.com/?a=1&amp;b\">x</a></p>\
         \r\n--c--\r\n--b\r\nContent-Type: application/pdf; name=\"a.pdf\"\r\nContent-Disposition: attachment; \
         filename*=utf-8''a%20b.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nSGVsbG8=\r\n--b--\r\n",
        "From: a@example.test\nSender: b@example.test\nX-Postroad-Tag: t\nX-Track-Clicks: yes\nX-Metadata-Order: 7\n\nbare line feeds",
        "From: a@example.test\r\nResent-From: b@example.test\r\nReceived: from x by y\r\nBcc: c@example.test\r\n\r\n\
         Content-Type: message/rfc822\r\n\r\nFrom: x\r\n\r\nbody",
    ])
}

fn run(bytes: &[u8]) {
    let fallback = RawFallback { date: "Mon, 16 Nov 2026 00:00:00 +0000", message_id: "id@example.test" };
    let _ = prepare_submission(bytes.to_vec(), &fallback);
    let prepared = prepare_raw(bytes.to_vec(), &fallback);
    let message = prepared.as_ref().map_or(bytes, |prepared| &prepared.bytes);
    let _ = (view(message), find_from_domain(message), has_utf8_header(message), Canonical::of(message));
    let key = TrackKey::new(&[7; 32]);
    let settings = RewriteSettings {
        base_url: "https://track.example.test",
        opens: true,
        clicks: true,
        excluded_hosts: &[],
    };
    let plan = RewritePlan::of(message, &settings);
    let recipient = TrackedRecipient { key: &key, server_id: ServerId(1), message_id: MessageId(2) };
    let written = plan.write(message, &recipient);
    if plan.is_empty() {
        assert!(written == message, "a message with nothing to rewrite is left as it is");
    }
}
