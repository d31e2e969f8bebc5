//! Tracked messages: which bytes change, and which do not.

use postroad_mail::{RewritePlan, RewriteSettings, TrackKey, TrackKind, TrackedRecipient, view};
use postroad_model::{MessageId, ServerId};
use proptest::prelude::*;

const BASE: &str = "https://track.example.net";

fn key() -> TrackKey {
    TrackKey::new(&[7; 32])
}

fn settings<'a>(opens: bool, clicks: bool) -> RewriteSettings<'a> {
    RewriteSettings { base_url: BASE, opens, clicks, excluded_hosts: &[] }
}

fn rewritten_by(message: &[u8], settings: &RewriteSettings<'_>) -> Vec<u8> {
    let key = key();
    let recipient = TrackedRecipient { key: &key, server_id: ServerId(3), message_id: MessageId(77) };
    RewritePlan::of(message, settings).write(message, &recipient)
}

fn rewritten(message: &[u8]) -> Vec<u8> {
    rewritten_by(message, &settings(true, true))
}

/// Restores the links and removes the pixels. Returns the text, the targets of the links and the number of pixels.
fn strip_tracking(text: &str) -> (String, Vec<String>, usize) {
    let (mut out, mut targets, mut pixels) = (String::new(), Vec::new(), 0);
    let mut rest = text;
    let pixel = format!("<img src=\"{BASE}/o/");
    loop {
        let link = rest.find(&format!("{BASE}/c/"));
        let open = rest.find(&pixel);
        match (link, open) {
            (Some(link), open) if open.is_none_or(|open| link < open) => {
                out.push_str(&rest[..link]);
                rest = &rest[link + BASE.len() + 3..];
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
                    .unwrap_or(rest.len());
                let TrackKind::Click { target } = key().parse(&rest[..end]).expect("a token of ours").kind
                else {
                    panic!("no click")
                };
                out.push_str(&target);
                targets.push(target);
                rest = &rest[end..];
            }
            (_, Some(open)) => {
                out.push_str(&rest[..open]);
                rest = rest[open..].split_once('>').unwrap().1;
                pixels += 1;
            }
            (_, None) => {
                out.push_str(rest);
                return (out, targets, pixels);
            }
        }
    }
}

fn html_message(html: &str) -> Vec<u8> {
    format!("Subject: x\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{html}")
        .into_bytes()
}

#[test]
fn only_urls_change_in_html() {
    let html = r##"<!DOCTYPE html>
<html><HEAD><link rel=stylesheet href="https://example.com/style.css"></HEAD>
<!--[if mso]><a href="https://example.com/outlook">x</a><![endif]-->
<body  bgcolor='#fff' >
<A   HREF = "https://example.com/a?b=1"   class=big  >A</A>
<a href='https://example.com/b' title="it's">B</a><a href=https://example.com/c>C</a>
<a href="mailto:a@example.com">m</a><a href="tel:+491">t</a><a href="#top">top</a><a name=x>n</a>
<a href="https://example.com/kept" data-postroad-notrack>kept</a>
<a
	href="https://example.com/d"/>D</a><map><area shape="rect" href="https://example.com/e"></map>
<img src="https://example.com/pic.png"><p onclick="go('https://example.com/js')">https://example.com/text
<script>var a = '<a href="https://example.com/script">';</script><style>a{background:url(https://example.com/s)}</style>
<textarea><a href="https://example.com/textarea"></textarea><![CDATA[ <a href="https://example.com/cdata"> ]]>
<a href="https://example.com/f" href="https://example.com/g">two</a>
</p></div></ table><a href="https://example.com/h"
</BODY ></html>
"##;
    let out = rewritten(&html_message(html));
    let out = String::from_utf8(out).unwrap();
    let (restored, targets, pixels) = strip_tracking(&out);
    assert_eq!(restored.as_bytes(), html_message(html));
    let paths: Vec<&str> = targets.iter().map(|target| target.rsplit('/').next().unwrap()).collect();
    // In HTML a CDATA section is a comment up to its first `>`.
    assert_eq!(paths, ["a?b=1", "b", "c", "d", "e", "f", "h"]);
    assert_eq!(pixels, 1);
}

#[test]
fn the_tracking_pixel_is_before_the_end_of_the_html_body() {
    let out = String::from_utf8(rewritten(&html_message("<body>Hi</body></html>\r\n"))).unwrap();
    assert!(out.contains("<body>Hi<img src="), "{out}");
    assert!(out.ends_with("border:0\"></body></html>\r\n"), "{out}");
    let out = String::from_utf8(rewritten(&html_message("<p>Hi</p>\r\n"))).unwrap();
    assert!(out.contains("<p>Hi</p><img src=") && out.ends_with("border:0\">\r\n"), "{out}");
    let out = String::from_utf8(rewritten(&html_message("<body>Hi<!-- </body> --> there"))).unwrap();
    assert!(out.contains("--> there<img src="), "{out}");
}

#[test]
fn urls_with_character_references_lead_where_a_browser_would_go() {
    let html = "<a href=\"https://example.com/?a=1&amp;b=2&#x26;c=3\">x</a><a href='https://example.com/?&copy;'>y</a>";
    let out = String::from_utf8(rewritten_by(&html_message(html), &settings(false, true))).unwrap();
    let (_, targets, _) = strip_tracking(&out);
    assert_eq!(targets, ["https://example.com/?a=1&b=2&c=3"]);
    assert!(out.contains("'https://example.com/?&copy;'"));
}

#[test]
fn opens_and_clicks_are_tracked_independently() {
    let message = html_message("<body><a href=\"https://example.com/\">x</a></body>");
    let opens = String::from_utf8(rewritten_by(&message, &settings(true, false))).unwrap();
    assert!(opens.contains("href=\"https://example.com/\"") && opens.contains("/o/"));
    let clicks = String::from_utf8(rewritten_by(&message, &settings(false, true))).unwrap();
    assert!(clicks.contains("/c/") && !clicks.contains("/o/"));
    assert_eq!(rewritten_by(&message, &settings(false, false)), message);
}

#[test]
fn excluded_hosts_and_unsubscribe_links_are_left_alone() {
    let html = "<a href=\"https://static.example.com/x\">1</a><a href=\"https://example.com/leave?u=2\">2</a>\
                <a href=\"https://example.com/unsubscribe/9\">3</a><a href=\"https://example.com/buy\">4</a>";
    let mut message =
        b"List-Unsubscribe: <mailto:x@example.com>,\r\n <https://example.com/leave?u=1>\r\n".to_vec();
    message.extend(html_message(html));
    let excluded = ["static.example.com".to_owned()];
    let settings = RewriteSettings { excluded_hosts: &excluded, ..settings(false, true) };
    let out = String::from_utf8(rewritten_by(&message, &settings)).unwrap();
    assert_eq!(strip_tracking(&out).1, ["https://example.com/buy"]);
}

/// A message with parts of every kind, including attachments and an enclosed message.
fn nested_message() -> Vec<u8> {
    "Subject: x\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"m m\"\r\n\r\npreamble https://example.com/pre\r\n\
     --m m\r\nContent-Type: multipart/alternative; boundary=alt\r\n\r\n\
     --alt\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
     See https://example.com/pl=\r\nain?a=3D1 =C3=BC\r\n\
     --alt\r\nX-Odd:  kept  \r\nContent-Type: text/html;\r\n\tcharset=\"utf-8\"\r\nContent-Transfer-Encoding: base64\r\n\r\n\
     PGEgaHJlZj0iaHR0cHM6Ly9leGFtcGxlLmNvbS9odG1sIj54PC9hPg==\r\n\
     --alt--\r\n\r\n\
     --m m\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename=a.html\r\n\r\n\
     <a href=\"https://example.com/attached\">x</a>\r\n\
     --m m\r\nContent-Type: text/plain; name=\"notes.txt\"\r\n\r\nhttps://example.com/notes\r\n\
     --m m\r\nContent-Type: message/rfc822\r\n\r\nContent-Type: text/html\r\n\r\n<a href=\"https://example.com/inner\">x</a>\r\n\
     --m m\r\nContent-Type: multipart/signed; boundary=sig\r\n\r\n--sig\r\nContent-Type: text/plain\r\n\r\nhttps://example.com/signed\r\n--sig--\r\n\
     --m m--\r\nepilogue https://example.com/post\r\n"
        .to_owned()
        .into_bytes()
}

#[test]
fn parts_keep_their_encoding_and_attachments_are_not_touched() {
    let message = nested_message();
    let out = rewritten(&message);
    let found = view(&out);
    let (plain, html) = (found.plain_body.unwrap(), found.html_body.unwrap());
    let (plain, targets, _) = strip_tracking(&plain);
    assert_eq!(
        (plain.as_str(), targets[0].as_str()),
        ("See https://example.com/plain?a=1 ü", "https://example.com/plain?a=1")
    );
    let (html, _, pixels) = strip_tracking(&html);
    assert_eq!((html.as_str(), pixels), ("<a href=\"https://example.com/html\">x</a>", 1));
    let text = String::from_utf8(out).unwrap();
    let original = String::from_utf8(message).unwrap();
    for kept in [
        "preamble https://example.com/pre\r\n",
        "X-Odd:  kept  \r\nContent-Type: text/html;\r\n\tcharset=\"utf-8\"\r\nContent-Transfer-Encoding: base64\r\n\r\n",
    ] {
        assert!(text.contains(kept), "{text}");
    }
    // Not a byte changes after the end of the alternative.
    let tail = &original[original.find("--alt--").unwrap()..];
    assert!(text.ends_with(tail), "{text}");
}

#[test]
fn parts_of_an_attachment_are_left_alone() {
    let inner = "--i\r\nContent-Type: text/html\r\n\r\n<a href=\"https://example.com/a\">x</a>\r\n--i--\r\n";
    let message = |disposition: &str| {
        format!(
            "Content-Type: multipart/mixed; boundary=o\r\n\r\n--o\r\nContent-Type: multipart/mixed; boundary=i\r\n\
             Content-Disposition: {disposition}\r\n\r\n{inner}--o--\r\n"
        )
    };
    let attached = message("attachment");
    assert_eq!(rewritten(attached.as_bytes()), attached.as_bytes());
    let shown = message("inline");
    assert_ne!(rewritten(shown.as_bytes()), shown.as_bytes());
}

#[test]
fn signed_or_encrypted_mail_is_left_alone() {
    for kind in ["signed", "encrypted", "Signed"] {
        let message = format!(
            "Content-Type: multipart/{kind}; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<a href=\"https://example.com\">x</a>\r\n--b--\r\n"
        );
        assert_eq!(rewritten(message.as_bytes()), message.as_bytes());
    }
    let smime =
        b"Content-Type: application/pkcs7-mime; smime-type=signed-data\r\n\r\nhttps://example.com\r\n";
    assert_eq!(rewritten(smime), smime);
    let inline = "Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
                  -----BEGIN PGP SIGNED MESSAGE-----\r\nHash: SHA512\r\n\r\nhttps://example.com/?a=3D1\r\n\
                  -----BEGIN PGP SIGNATURE-----\r\n\r\niQ=3D=3D\r\n-----END PGP SIGNATURE-----\r\n";
    assert_eq!(rewritten(inline.as_bytes()), inline.as_bytes());
}

#[test]
fn only_urls_change_in_charsets_other_than_utf_8() {
    let message = |charset: &str, text: &[u8]| {
        let head =
            format!("Content-Type: text/html; charset={charset}\r\nContent-Transfer-Encoding: 8bit\r\n\r\n");
        [head.as_bytes(), text].concat()
    };
    // Charsets that extend ASCII. In Shift_JIS and GB 18030, ASCII bytes also occur inside other characters; all these
    // bytes stay.
    for (charset, bytes) in [
        ("iso-8859-1", &b"\xfc\xe4"[..]),
        ("shift_jis", b"\x83\x5c\x95\x5c"),
        ("gb18030", b"\x81\x30\x81\x30"),
    ] {
        let text = [bytes, b"<a href=\"https://example.com/\">", bytes, b"</a>"].concat();
        let out = rewritten_by(&message(charset, &text), &settings(false, true));
        let body = &out[message(charset, b"").len()..];
        assert!(body.starts_with(bytes) && body.ends_with(&[bytes, b"</a>"].concat()), "{charset}");
        assert!(body.windows(28).any(|window| window == b"https://track.example.net/c/"), "{charset}");
        let odd = message(charset, &[b"<a href=\"https://example.com/", bytes, b"\">x</a>"].concat());
        assert_eq!(rewritten_by(&odd, &settings(false, true)), odd, "{charset}");
    }
    for charset in ["utf-16", "iso-2022-jp", "utf-7", "x-unknown"] {
        let original = message(charset, b"<a href=\"https://example.com/\">x</a>");
        assert_eq!(rewritten(&original), original, "{charset}");
    }
}

#[test]
fn a_line_that_grows_too_long_is_encoded() {
    let html = format!("<p>{}<a href=\"https://example.com/\">x</a></p>\r\n", "x".repeat(940));
    let message = format!(
        "Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\nX-After: y\r\n\r\n{html}"
    );
    let out = rewritten(message.as_bytes());
    let text = String::from_utf8_lossy(&out);
    assert!(text.starts_with("Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\nX-After: y\r\n\r\n"), "{text}");
    assert_eq!(strip_tracking(&view(&out).html_body.unwrap()).0, html);
    let bare = format!("Content-Type: text/html\r\n\r\n{html}");
    let out = rewritten(bare.as_bytes());
    assert!(
        out.starts_with(b"Content-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n")
    );
}

#[test]
fn links_differ_between_recipients_and_are_always_the_same_for_one() {
    let message = nested_message();
    let plan = RewritePlan::of(&message, &settings(true, true));
    let key = key();
    let copy = |id| {
        plan.write(
            &message,
            &TrackedRecipient { key: &key, server_id: ServerId(3), message_id: MessageId(id) },
        )
    };
    assert_eq!(copy(1), copy(1));
    assert_ne!(copy(1), copy(2));
}

#[test]
fn large_parts_and_broken_encodings_are_left_alone() {
    let large = html_message(&format!("<a href=\"https://example.com\">x</a>{}", "x \r\n".repeat(1_400_000)));
    assert_eq!(rewritten(&large), large);
    let broken = b"Content-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<a href==\"https://example.com\">x</a>=ZZ";
    assert_eq!(rewritten(broken), broken);
    let unknown = b"Content-Type: text/html\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\n<a href=\"https://example.com\">x</a>";
    assert_eq!(rewritten(unknown), unknown);
}

proptest! {
    #[test]
    fn only_urls_change_in_any_html(pieces in prop::collection::vec(prop::sample::select(vec![
        "<a href=\"https://example.com/1\">", "<a href='https://example.com/2'", "<a href=https://example.com/3 ", ">", "</a>",
        "<!--", "-->", "<![CDATA[", "]]>", "<script>", "</script>", "<style>", "</style>", "<title>", "<body>", "</body>", "</html>",
        "\"", "'", "=", "&amp;", "<", "/", "x", " ", "\r\n", "é", "<svg>", "<a/href=\"https://example.com/4\"/>", "<textarea>", "<plaintext>",
        "<table><a href=\"https://example.com/5\"><tr>", "\u{0}",
    ]), 0..40)) {
        let html = pieces.concat();
        let message = html_message(&html);
        let out = rewritten(&message);
        let is_encoded = out.windows(16).any(|window| window == b"quoted-printable");
        // If a line became too long, the part is encoded; then the decoded text is compared.
        let (text, original) = if is_encoded {
            (view(&out).html_body.unwrap(), html.clone())
        } else {
            (String::from_utf8(out).unwrap(), String::from_utf8(message).unwrap())
        };
        let (restored, targets, pixels) = strip_tracking(&text);
        prop_assert_eq!(restored, original);
        prop_assert!(pixels <= 1);
        prop_assert!(targets.iter().all(|target| target.starts_with("https://example.com/")));
    }

    #[test]
    fn any_message_can_be_rewritten(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        rewritten(&bytes);
        let mut message = b"Content-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n".to_vec();
        message.extend(&bytes);
        rewritten(&message);
    }
}
