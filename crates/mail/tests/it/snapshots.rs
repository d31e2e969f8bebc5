//! Snapshots of composed messages, byte by byte.

use insta::assert_snapshot;

use crate::samples::{Sample, file, image, mailbox};

fn shown(sample: &Sample) -> String {
    let text = String::from_utf8(sample.compose()).unwrap();
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "a bare line feed");
    assert_eq!(text.matches('\r').count(), text.matches("\r\n").count(), "a bare carriage return");
    text.replace("\r\n", "\n")
}

#[test]
fn a_plain_body_is_a_single_part() {
    assert_snapshot!(shown(&Sample::plain("Hi Bob,\nbye\n")), @r#"
    Date: Sun, 15 Nov 2026 03:00:00 +0000
    From: Ann Lee <ann@example.com>
    To: bob@example.net
    Subject: Hello
    Message-ID: <1234@rp.example.com>
    MIME-Version: 1.0
    Content-Type: text/plain; charset=utf-8
    Content-Transfer-Encoding: 7bit

    Hi Bob,
    bye
    "#);
}

#[test]
fn an_html_body_is_a_single_part() {
    assert_snapshot!(shown(&Sample::html("<p>Grüße</p>")), @r#"
    Date: Sun, 15 Nov 2026 03:00:00 +0000
    From: Ann Lee <ann@example.com>
    To: bob@example.net
    Subject: Hello
    Message-ID: <1234@rp.example.com>
    MIME-Version: 1.0
    Content-Type: text/html; charset=utf-8
    Content-Transfer-Encoding: base64

    PHA+R3LDvMOfZTwvcD4=
    "#);
}

#[test]
fn both_bodies_are_alternatives() {
    let sample = Sample { html: Some("<p>Hi</p>".into()), ..Sample::plain("Hi") };
    assert_snapshot!(shown(&sample), @r#"
    Date: Sun, 15 Nov 2026 03:00:00 +0000
    From: Ann Lee <ann@example.com>
    To: bob@example.net
    Subject: Hello
    Message-ID: <1234@rp.example.com>
    MIME-Version: 1.0
    Content-Type: multipart/alternative;
     boundary="=_eac7d85ac22ed88b9943e577a"

    --=_eac7d85ac22ed88b9943e577a
    Content-Type: text/plain; charset=utf-8
    Content-Transfer-Encoding: 7bit

    Hi
    --=_eac7d85ac22ed88b9943e577a
    Content-Type: text/html; charset=utf-8
    Content-Transfer-Encoding: 7bit

    <p>Hi</p>
    --=_eac7d85ac22ed88b9943e577a--
    "#);
}

#[test]
fn an_inline_image_is_related_to_the_html() {
    let sample = Sample { files: vec![image("a.png", "a@x")], ..Sample::html("<img src=\"cid:a@x\">") };
    assert_snapshot!(shown(&sample), @r#"
    Date: Sun, 15 Nov 2026 03:00:00 +0000
    From: Ann Lee <ann@example.com>
    To: bob@example.net
    Subject: Hello
    Message-ID: <1234@rp.example.com>
    MIME-Version: 1.0
    Content-Type: multipart/related; type="text/html";
     boundary="=_eac7d85ac22ed88b9943e577r"

    --=_eac7d85ac22ed88b9943e577r
    Content-Type: text/html; charset=utf-8
    Content-Transfer-Encoding: 7bit

    <img src="cid:a@x">
    --=_eac7d85ac22ed88b9943e577r
    Content-Type: image/png; name="a.png"
    Content-Disposition: inline; filename="a.png"
    Content-ID: <a@x>
    Content-Transfer-Encoding: base64

    iVBORw0KGgo=
    --=_eac7d85ac22ed88b9943e577r--
    "#);
}

#[test]
fn an_attachment_makes_the_message_multipart_mixed() {
    let sample = Sample { files: vec![file("a.txt", "text/plain", b"hello")], ..Sample::plain("Hi") };
    assert_snapshot!(shown(&sample), @r#"
    Date: Sun, 15 Nov 2026 03:00:00 +0000
    From: Ann Lee <ann@example.com>
    To: bob@example.net
    Subject: Hello
    Message-ID: <1234@rp.example.com>
    MIME-Version: 1.0
    Content-Type: multipart/mixed;
     boundary="=_eac7d85ac22ed88b9943e577m"

    --=_eac7d85ac22ed88b9943e577m
    Content-Type: text/plain; charset=utf-8
    Content-Transfer-Encoding: 7bit

    Hi
    --=_eac7d85ac22ed88b9943e577m
    Content-Type: text/plain; name="a.txt"
    Content-Disposition: attachment; filename="a.txt"
    Content-Transfer-Encoding: base64

    aGVsbG8=
    --=_eac7d85ac22ed88b9943e577m--
    "#);
}

#[test]
fn an_inline_image_without_html_is_an_attachment() {
    let sample = Sample { files: vec![image("a.png", "a@x")], ..Sample::plain("Hi") };
    assert_snapshot!(shown(&sample), @r#"
    Date: Sun, 15 Nov 2026 03:00:00 +0000
    From: Ann Lee <ann@example.com>
    To: bob@example.net
    Subject: Hello
    Message-ID: <1234@rp.example.com>
    MIME-Version: 1.0
    Content-Type: multipart/mixed;
     boundary="=_eac7d85ac22ed88b9943e577m"

    --=_eac7d85ac22ed88b9943e577m
    Content-Type: text/plain; charset=utf-8
    Content-Transfer-Encoding: 7bit

    Hi
    --=_eac7d85ac22ed88b9943e577m
    Content-Type: image/png; name="a.png"
    Content-Disposition: attachment; filename="a.png"
    Content-ID: <a@x>
    Content-Transfer-Encoding: base64

    iVBORw0KGgo=
    --=_eac7d85ac22ed88b9943e577m--
    "#);
}

#[test]
fn one_message_can_have_every_feature() {
    assert_snapshot!(shown(&Sample::everything()), @r#"
    Date: Sun, 15 Nov 2026 03:00:00 +0000
    From: =?utf-8?B?w5xuw68gQ8O2ZMOp?= <ünï@xn--bcher-kva.example>
    Sender: "Desk, Front" <desk@example.com>
    To: "Bob \"the builder\" O'Neil" <bob@example.net>,
     =?utf-8?B?5bGx55Sw5aSq6YOO?= <yamada@example.jp>, "odd local"@example.net
    Cc: "Dr. Eve" <eve@example.org>
    Reply-To: help@example.com, =?utf-8?Q?Hilfe_f=C3=BCr_alle?=
     <hilfe@example.com>
    Subject: =?utf-8?Q?Ihre_Bestellung_=E2=84=96_42_ist_unterwegs_=E2=80=93_vi?=
     =?utf-8?Q?elen_Dank_f=C3=BCr_Ihr_Vertrauen=2C_liebe_Kundin_=F0=9F=8E=89?=
    Message-ID: <1234@rp.example.com>
    X-Campaign: autumn
    X-Campaign: Herbst =?utf-8?Q?f=C3=BCr?= alle
    List-Unsubscribe: <https://example.com/u?xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx>,
     <mailto:u@example.com>
    X-Long: word word word word word word word word word word word word word word
     word word word word word word word word word word word word word word word
     word word word word word word word word word word word word word word word
     word word word word word word word word word word word word word word word
     word
    X-Unbroken: =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy?=
     =?utf-8?Q?yyy?=
    MIME-Version: 1.0
    Content-Type: multipart/mixed;
     boundary="=_eac7d85ac22ed88b9943e577m"

    --=_eac7d85ac22ed88b9943e577m
    Content-Type: multipart/alternative;
     boundary="=_eac7d85ac22ed88b9943e577a"

    --=_eac7d85ac22ed88b9943e577a
    Content-Type: text/plain; charset=utf-8
    Content-Transfer-Encoding: base64

    R3LDvMOfZQ0KdW5kID0gdmllbCBTcGHDnyANCg==
    --=_eac7d85ac22ed88b9943e577a
    Content-Type: multipart/related; type="text/html";
     boundary="=_eac7d85ac22ed88b9943e577r"

    --=_eac7d85ac22ed88b9943e577r
    Content-Type: text/html; charset=utf-8
    Content-Transfer-Encoding: quoted-printable

    <p>Gr=C3=BC=C3=9Fe <img src=3D"cid:logo@x"></p>
    --=_eac7d85ac22ed88b9943e577r
    Content-Type: image/png; name="=?utf-8?B?TMO2Z28ucG5n?="
    Content-Disposition: inline; filename*=UTF-8''L%C3%B6go.png
    Content-ID: <logo@x>
    Content-Transfer-Encoding: base64

    iVBORw0KGgo=
    --=_eac7d85ac22ed88b9943e577r--
    --=_eac7d85ac22ed88b9943e577a--
    --=_eac7d85ac22ed88b9943e577m
    Content-Type: application/pdf; name="report.pdf"
    Content-Disposition: attachment; filename="report.pdf"
    Content-Transfer-Encoding: base64

    AAEC//4NCgo=
    --=_eac7d85ac22ed88b9943e577m
    Content-Type: text/csv; charset=utf-8; header=present;
     name="=?utf-8?B?SmFocmVzYWJzY2hsdcOfLCAiZmluYWwiIDIwMjYuY3N2?="
    Content-Disposition: attachment;
     filename*=UTF-8''Jahresabschlu%C3%9F%2C%20%22final%22%202026.csv
    Content-Transfer-Encoding: base64

    YTtiCjE7Mgo=
    --=_eac7d85ac22ed88b9943e577m
    Content-Type: application/octet-stream;
     name="=?utf-8?B?w7xiZXJtw6TDn2lnIGxhbmdlciBEYXRlaW5hbWUsIMO8YmVybcOkw59p?=
     =?utf-8?B?ZyBsYW5nZXIgRGF0ZWluYW1lLCDDvGJlcm3DpMOfaWcgbGFuZ2VyIERhdGVp?=
     =?utf-8?B?bmFtZSwgw7xiZXJtw6TDn2lnIGxhbmdlciBEYXRlaW5hbWUsIMO8YmVybcOk?=
     =?utf-8?B?w59pZyBsYW5nZXIgRGF0ZWluYW1lLCDDvGJlcm3DpMOfaWcgbGFuZ2VyIERh?=
     =?utf-8?B?dGVpbmFtZSw=?="
    Content-Disposition: attachment;
     filename*0*=UTF-8''%C3%BCberm%C3%A4%C3%9Fig%20langer%20Dateiname%2C%20;
     filename*1*=%C3%BCberm%C3%A4%C3%9Fig%20langer%20Dateiname%2C%20%C3%BCberm;
     filename*2*=%C3%A4%C3%9Fig%20langer%20Dateiname%2C%20%C3%BCberm%C3%A4;
     filename*3*=%C3%9Fig%20langer%20Dateiname%2C%20%C3%BCberm%C3%A4%C3%9Fig%20;
     filename*4*=langer%20Dateiname%2C%20%C3%BCberm%C3%A4%C3%9Fig%20langer%20Da;
     filename*5*=teiname%2C
    Content-Transfer-Encoding: base64


    --=_eac7d85ac22ed88b9943e577m--
    "#);
}

#[test]
fn without_to_and_cc_the_recipients_are_undisclosed() {
    let sample = Sample { to: Vec::new(), ..Sample::plain("Hi") };
    assert_snapshot!(shown(&sample), @r#"
    Date: Sun, 15 Nov 2026 03:00:00 +0000
    From: Ann Lee <ann@example.com>
    To: undisclosed-recipients:;
    Subject: Hello
    Message-ID: <1234@rp.example.com>
    MIME-Version: 1.0
    Content-Type: text/plain; charset=utf-8
    Content-Transfer-Encoding: 7bit

    Hi
    "#);
}

#[test]
fn with_cc_alone_there_is_no_to() {
    let sample = Sample { to: Vec::new(), cc: vec![mailbox("c@example.com")], ..Sample::plain("Hi") };
    assert_snapshot!(shown(&sample), @r#"
    Date: Sun, 15 Nov 2026 03:00:00 +0000
    From: Ann Lee <ann@example.com>
    Cc: c@example.com
    Subject: Hello
    Message-ID: <1234@rp.example.com>
    MIME-Version: 1.0
    Content-Type: text/plain; charset=utf-8
    Content-Transfer-Encoding: 7bit

    Hi
    "#);
}

#[test]
fn the_sender_is_written_only_if_it_is_somebody_else() {
    let same = Sample { sender: Some(mailbox("Other Name <ANN@Example.com>")), ..Sample::plain("Hi") };
    assert!(!shown(&same).contains("Sender:"));
    let other = Sample { sender: Some(mailbox("desk@example.com")), ..Sample::plain("Hi") };
    assert!(shown(&other).contains("\nSender: desk@example.com\n"));
}

#[test]
fn long_lines_and_non_ascii_text_are_encoded() {
    let short = format!("{}\n", "x".repeat(997));
    assert!(shown(&Sample::plain(&short)).contains("7bit"));
    let long = format!("{}\n", "x".repeat(998));
    assert!(shown(&Sample::plain(&long)).contains("quoted-printable"));
    assert!(shown(&Sample::plain(&"ж".repeat(500))).contains("base64"));
    assert!(shown(&Sample::plain("a\u{0}b")).contains("base64"));
}

#[test]
fn a_long_list_of_recipients_is_folded() {
    let to = (0..50).map(|n| mailbox(&format!("Person Number {n} <person{n}@example.com>"))).collect();
    let text = shown(&Sample { to, ..Sample::plain("Hi") });
    assert!(text.lines().all(|line| line.len() <= 78), "{text}");
    // The recipients, and the author in From.
    assert_eq!(text.matches("@example.com>").count(), 51);
}

#[test]
fn words_that_a_client_encoded_are_encoded_again() {
    let sample = Sample {
        from: mailbox("=?utf-8?b?w5xuw68=?= <ann@example.com>"),
        subject: "=?iso-8859-1?q?Gr=FC=DFe?= an =?utf-8?q?alle?=".into(),
        ..Sample::plain("Hi")
    };
    let text = shown(&sample);
    assert!(text.contains("From: =?utf-8?B?w5xuw68=?= <ann@example.com>\n"), "{text}");
    assert!(text.contains("Subject: =?utf-8?B?R3LDvMOfZSBhbiBhbGxl?=\n"), "{text}");
}

#[test]
fn composing_twice_gives_the_same_bytes() {
    assert_eq!(Sample::everything().compose(), Sample::everything().compose());
}

#[test]
fn a_boundary_never_occurs_in_the_content() {
    let sample = Sample { html: Some("<p>Hi</p>".into()), ..Sample::plain("Hi") };
    let boundary =
        |text: &str| text.split("boundary=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let first = boundary(&shown(&sample));
    let hostile = Sample { plain: Some(format!("--{first}\nContent-Type: text/html\n\nforged")), ..sample };
    let text = shown(&hostile);
    assert_ne!(boundary(&text), first);
    assert_eq!(text.matches(&format!("\n--{}\n", boundary(&text))).count(), 2, "{text}");
}

#[test]
fn a_message_in_a_message_is_not_encoded() {
    let inner = b"From: a@x.test\nSubject: s\n\nbody";
    let text = shown(&Sample { files: vec![file("m.eml", "message/rfc822", inner)], ..Sample::plain("Hi") });
    assert!(text.contains("Content-Type: message/rfc822; name=\"m.eml\"\n"), "{text}");
    assert!(text.contains("7bit\n\nFrom: a@x.test\nSubject: s\n\nbody\n--"), "{text}");

    let inner = "From: a@x.test\nSubject: ü\n\nbody".as_bytes();
    let text = shown(&Sample { files: vec![file("m.eml", "message/rfc822", inner)], ..Sample::plain("Hi") });
    assert!(text.contains("Content-Type: application/octet-stream; name=\"m.eml\"\n"), "{text}");
}

#[test]
fn parameters_of_a_content_type_stay_except_name_and_boundary() {
    let content_type = "Text/CSV; boundary=x; header=present; NAME=\"old\"; name*0=older";
    let text = shown(&Sample { files: vec![file("new.csv", content_type, b"")], ..Sample::plain("Hi") });
    assert!(text.contains("Content-Type: Text/CSV; header=present; name=\"new.csv\"\n"), "{text}");
}
