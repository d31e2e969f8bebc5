//! Messages of every kind, as `view` returns them for the API's `messages/message`.

use postroad_mail::{MessageView, view};
use proptest::prelude::*;

use crate::samples::Sample;

fn view_text(text: &str) -> MessageView {
    view(text.as_bytes())
}

#[test]
fn bodies_that_do_not_exist_are_not_made_up() {
    let plain = view(&Sample::plain("Hi").compose());
    assert_eq!((plain.plain_body.as_deref(), plain.html_body), (Some("Hi\r\n"), None));
    let html = view(&Sample::html("<p>").compose());
    assert_eq!((html.plain_body, html.html_body.as_deref()), (None, Some("<p>\r\n")));
}

#[test]
fn headers_are_decoded_and_grouped_in_order() {
    let seen = view_text(
        "Received: b\nReceived: a\n  folded\nSUBJECT: =?utf-8?q?=C3=BC?=\nX : obsolete\njunk\nReceived: c\n\nbody",
    );
    let wanted = [("received", vec!["b", "a  folded", "c"]), ("subject", vec!["ü"]), ("x", vec!["obsolete"])];
    let wanted =
        wanted.map(|(name, values)| (name.to_owned(), values.into_iter().map(str::to_owned).collect()));
    assert_eq!(seen.headers, wanted);
    assert_eq!(seen.plain_body.as_deref(), Some("body"));
}

#[test]
fn charsets_are_read() {
    let latin = b"Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\ngr=FCn=\n!";
    assert_eq!(view(latin).plain_body.as_deref(), Some("grün!"));
    let japanese = b"Content-Type: text/plain; charset=iso-2022-jp\n\n\x1b$B%O%m!<\x1b(B";
    assert_eq!(view(japanese).plain_body.as_deref(), Some("ハロー"));
    assert_eq!(view(b"A: b\n\ngr\xfcn").plain_body.as_deref(), Some("grün"));
}

#[test]
fn attachments_keep_their_bytes_and_their_names() {
    let seen = view_text(
        "Content-Type: multipart/mixed; boundary=b\n\npreamble\n--b\n\nbody\n--b\n\
         Content-Type: text/csv; charset=iso-8859-1; name=\"=?utf-8?q?=C3=BC?=.csv\"\n\
         Content-Transfer-Encoding: base64\n\n/A==\n--b\nContent-Type: IMAGE/PNG\n\nx\n--b\n\
         Content-Disposition: attachment; filename*=utf-8''%C3%A4.txt\n\nfile\n--b--\nepilogue",
    );
    assert_eq!(seen.plain_body.as_deref(), Some("body"));
    let files: Vec<_> = seen
        .attachments
        .iter()
        .map(|a| (a.filename.as_str(), a.content_type.as_str(), &a.content[..]))
        .collect();
    assert_eq!(
        files,
        [
            ("ü.csv", "text/csv", &b"\xfc"[..]),
            ("attachment-2", "image/png", b"x"),
            ("ä.txt", "text/plain", b"file"),
        ]
    );
}

#[test]
fn a_bounce_shows_its_parts() {
    let seen = view_text(
        "Content-Type: multipart/report; report-type=delivery-status; boundary=\"b b\"\n\n--b b\n\nSorry\n\
         --b b\nContent-Type: message/delivery-status\n\nStatus: 5.1.1\n\n--b b\nContent-Type: message/rfc822\n\n\
         From: a@x.test\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\ninner\n--c--\n--b b--\n",
    );
    assert_eq!(seen.plain_body.as_deref(), Some("Sorry"));
    let types: Vec<&str> = seen.attachments.iter().map(|a| a.content_type.as_str()).collect();
    assert_eq!(types, ["message/delivery-status", "message/rfc822"]);
    assert!(seen.attachments[1].content.starts_with(b"From: a@x.test\n"));
    assert!(seen.attachments[1].content.ends_with(b"--c--"));
}

#[test]
fn broken_messages_show_what_there_is() {
    assert_eq!(view_text(""), MessageView { plain_body: Some(String::new()), ..MessageView::default() });
    let no_end = view_text(
        "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nbody\n--b\nContent-Type: text/html\n\n<p>",
    );
    assert_eq!((no_end.plain_body.as_deref(), no_end.html_body.as_deref()), (Some("body"), Some("<p>")));
    let no_parts = view_text("Content-Type: multipart/mixed; boundary=b\n\njust text");
    assert_eq!(no_parts.attachments[0].content, b"just text");
    let bad_base64 = view_text("Content-Transfer-Encoding: base64\n\n***");
    assert_eq!(bad_base64.plain_body.as_deref(), Some("***"));
    let bad_quotes = view_text("Content-Transfer-Encoding: quoted-printable\n\na=zz");
    assert_eq!(bad_quotes.plain_body.as_deref(), Some("a=zz"));
}

#[test]
fn deeply_nested_and_very_many_parts_are_limited() {
    let level = "Content-Type: multipart/mixed; boundary=b#\n\n--b#\n";
    let nested: String = (0..2_000).map(|n| level.replace('#', &n.to_string())).collect();
    assert_eq!(view(nested.as_bytes()).attachments.len(), 1);
    let missing = "--b\nContent-Type: multipart/mixed; boundary=none\n\nx\n".repeat(40_000);
    let wide = view(format!("Content-Type: multipart/mixed; boundary=b\n\n{missing}").as_bytes());
    assert_eq!(wide.attachments.len(), 1_000);
}

proptest! {
    #[test]
    fn any_bytes_can_be_viewed(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        view(&bytes);
    }

    #[test]
    fn anything_like_a_message_can_be_viewed(pieces in proptest::collection::vec(prop_oneof![
        Just("Content-Type: "), Just("Content-Disposition: "), Just("Content-Transfer-Encoding: "), Just("multipart/mixed"),
        Just("; boundary=b"), Just("; boundary=\"b"), Just("text/html"), Just("; charset=utf-16"), Just("; charset="),
        Just("base64"), Just("quoted-printable"), Just("\n"), Just("\r\n"), Just("\n\n"), Just("--b"), Just("--b--"),
        Just("="), Just("=\n"), Just("=3D"), Just("QUJD"), Just("; name*0*=utf-8''%"), Just("; name*1=x"), Just("\""),
        Just("\\"), Just("("), Just(")"), Just(" "), Just("\t"), Just(";"), Just("=?utf-7?q?+?="), Just("=?shift_jis?b?gQ?="),
        Just("ü"), Just("\0"), Just("filename="), Just("*"), Just("'"),
    ], 0..40)) {
        let text = pieces.concat();
        view(text.as_bytes());
        view(format!("Content-Type: multipart/mixed; boundary=b\n\n--b\n{text}").as_bytes());
    }
}
