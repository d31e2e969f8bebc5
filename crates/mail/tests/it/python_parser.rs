//! Composed messages are parsed by Python's email package (`email.policy.default`), as a second opinion. It must find
//! no defects except those that `check_mime.py` allows.

use std::io::Write as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postroad_model::Mailbox;
use serde_json::{Value, json};

use crate::samples::{Sample, file, image, mailbox};

/// Python's view of each composed sample. One process parses all: starting it costs more than parsing.
fn parse_with_python(samples: &[Sample]) -> Vec<Value> {
    let messages: Vec<String> = samples.iter().map(|sample| STANDARD.encode(sample.compose())).collect();
    let mut python = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/check_mime.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is installed");
    let input = serde_json::to_vec(&messages).unwrap();
    python.stdin.take().unwrap().write_all(&input).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn mailboxes(list: &[Mailbox]) -> Value {
    let pair = |m: &Mailbox| {
        json!([
            m.name.clone().unwrap_or_default(),
            format!("{}@{}", m.address.local_part(), m.address.domain())
        ])
    };
    list.iter().map(pair).collect()
}

fn check(sample: &Sample, seen: &Value) {
    let context = || format!("{seen:#}\n{}", String::from_utf8_lossy(&sample.compose()));
    assert_eq!(seen["defects"], json!([]), "{}", context());
    assert!(seen["longest_line"].as_u64().unwrap() <= 998, "{}", context());
    assert_eq!(seen["subject"], json!(sample.subject), "{}", context());
    assert_eq!(seen["from"], mailboxes(std::slice::from_ref(&sample.from)), "{}", context());
    assert_eq!(seen["sender"], mailboxes(sample.sender.as_slice()), "{}", context());
    assert_eq!(seen["reply_to"], mailboxes(&sample.reply_to), "{}", context());
    assert_eq!(seen["to"], mailboxes(&sample.to), "{}", context());
    assert_eq!(seen["cc"], mailboxes(&sample.cc), "{}", context());
    assert_eq!(seen["date"], json!("2026-11-15T03:00:00+00:00"));
    assert_eq!(seen["message_id"], json!("<1234@rp.example.com>"));
    let custom: Vec<Value> = sample
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("X-"))
        .map(|(name, value)| json!([name, value.trim()]))
        .collect();
    assert_eq!(seen["custom"], json!(custom), "{}", context());
    for (body, wanted) in [("plain", &sample.plain), ("html", &sample.html)] {
        let same = match (seen[body].as_str(), wanted) {
            (Some(seen), Some(wanted)) => {
                seen.replace("\r\n", "\n").trim_end_matches('\n') == wanted.trim_end_matches('\n')
            }
            (seen, wanted) => seen.is_none() && wanted.is_none(),
        };
        assert!(same, "{body}: {}", context());
    }
    for wanted in &sample.files {
        let is_inline = sample.html.is_some() && wanted.content_id.is_some();
        let bare_id = wanted.content_id.as_deref().map(|id| id.trim_matches(['<', '>']));
        let leaf = json!({
            "type": wanted.content_type.split(';').next().filter(|t| !t.is_empty()).unwrap_or("application/octet-stream"),
            "disposition": if is_inline { "inline" } else { "attachment" },
            "name": wanted.name,
            "cid": bare_id.map(|id| format!("<{id}>")),
            "content": STANDARD.encode(&wanted.content),
        });
        assert!(seen["leaves"].as_array().unwrap().contains(&leaf), "{leaf:#} {}", context());
    }
}

#[test]
fn python_sees_what_was_composed() {
    let with_subject = |subject: &str| Sample { subject: subject.into(), ..Sample::plain("Hi") };
    let with_name = |name: &str| {
        let from = Mailbox { name: Some(name.into()), ..mailbox("ann@example.com") };
        Sample { from: from.clone(), to: vec![from.clone(), from], ..Sample::plain("Hi") }
    };
    let with_file =
        |name: &str| Sample { files: vec![file(name, "image/gif", &[7; 1_000])], ..Sample::plain("Hi") };
    let samples = [
        Sample::everything(),
        Sample::plain("a\nb\n\n"),
        Sample::plain("trailing space \nand tab\t\nFrom here\n.\n"),
        Sample::html(&"<p>lang und öde</p>".repeat(200)),
        Sample { html: Some("<p>Hi</p>".into()), ..Sample::plain("日本語\n".repeat(50).as_str()) },
        Sample { files: vec![image("a.png", "a@x")], ..Sample::html("<img src=\"cid:a@x\">") },
        Sample { files: vec![image("a.png", "<a@x>")], ..Sample::plain("no html") },
        with_subject(""),
        with_subject("a subject of many words ".repeat(20).trim_end()),
        with_subject(&"x".repeat(998)),
        with_subject(&"ü".repeat(400)),
        with_subject(
            "two  spaces   and three, and a rather long line so that it has to be folded  somewhere",
        ),
        with_name("Ann"),
        with_name("Dr. Ann \"Annie\" Lee, PhD (retired) \\o/"),
        with_name("a@b.example"),
        with_name("Very Long Name ".repeat(10).trim_end()),
        with_name("Long, with \"quotes\" ".repeat(8).trim_end()),
        // Short enough for one encoded word: some versions of Python show a space between two encoded words of a
        // display name.
        with_name("Ζωή Παπαδοπούλου"),
        with_file("a b.gif"),
        with_file("quote\" back\\slash.gif"),
        with_file("résumé.gif"),
        with_file(&format!("{}.gif", "a".repeat(200))),
        with_file(&format!("{}.gif", "長い名前".repeat(20))),
    ];
    for (sample, seen) in samples.iter().zip(parse_with_python(&samples)) {
        check(sample, &seen);
    }
}

#[test]
fn the_mime_tree_is_no_deeper_than_needed() {
    let inline = || vec![image("a.png", "a@x")];
    let attached = || vec![file("a.txt", "text/x-a", b"a")];
    let both = || [inline(), attached()].concat();
    let alternative = |files| Sample { files, html: Some("<p>".into()), ..Sample::plain("Hi") };
    let cases = [
        (Sample::plain("Hi"), json!("text/plain")),
        (Sample::html("<p>"), json!("text/html")),
        (alternative(vec![]), json!(["multipart/alternative", "text/plain", "text/html"])),
        (
            Sample { files: inline(), ..Sample::html("<p>") },
            json!(["multipart/related", "text/html", "image/png"]),
        ),
        (
            Sample { files: attached(), ..Sample::html("<p>") },
            json!(["multipart/mixed", "text/html", "text/x-a"]),
        ),
        (
            alternative(inline()),
            json!(["multipart/alternative", "text/plain", ["multipart/related", "text/html", "image/png"]]),
        ),
        (
            alternative(both()),
            json!([
                "multipart/mixed",
                ["multipart/alternative", "text/plain", ["multipart/related", "text/html", "image/png"]],
                "text/x-a"
            ]),
        ),
    ];
    let samples: Vec<Sample> = cases.iter().map(|(sample, _)| sample.clone()).collect();
    for ((_, wanted), seen) in cases.iter().zip(parse_with_python(&samples)) {
        assert_eq!(&seen["structure"], wanted);
    }
}
