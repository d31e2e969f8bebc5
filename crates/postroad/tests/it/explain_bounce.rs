//! `postroad explain bounce`, as people and scripts use it.

use std::io::Write;
use std::process::{Output, Stdio};

use postroad_testkit::daemon;
use serde_json::{Value, json};

use crate::world::program;

const BOUNCE: &str = "From: MAILER-DAEMON@mx.example.net\r\nSubject: Undelivered Mail Returned to Sender\r\n\
    Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\r\nSorry.\r\n--b\r\n\
    Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.net\r\n\r\n\
    Final-Recipient: rfc822; jo@example.com\r\nAction: failed\r\nStatus: 5.1.1\r\n\
    Diagnostic-Code: smtp; 550 5.1.1 User unknown\r\n\r\n\
    Final-Recipient: rfc822; al@example.com\r\nAction: failed\r\nStatus: 5.2.2\r\n\
    Diagnostic-Code: smtp; 552 5.2.2 Mailbox full\r\n\r\n\
    Final-Recipient: rfc822; bo@example.com\r\nAction: delivered\r\nStatus: 2.0.0\r\n\r\n--b--\r\n";

/// Runs the command with the message on standard input.
fn explain(message: &str, args: &[&str]) -> Output {
    let mut child = daemon::command(program(), &[])
        .args(["explain", "bounce", "-"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn lines(output: &Output) -> Vec<Value> {
    output
        .stdout
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect()
}

#[test]
fn scripts_get_one_line_for_each_recipient_that_failed() {
    let expected = [
        json!({
            "recipient": "jo@example.com", "status": "5.1.1", "code": 550, "class": "bad_mailbox",
            "permanent": true, "hard": true, "kind": "bounce", "rule": "bad-mailbox-code",
        }),
        json!({
            "recipient": "al@example.com", "status": "5.2.2", "code": 552, "class": "full",
            "permanent": true, "hard": false, "kind": "bounce", "rule": "mailbox-full-code",
        }),
    ];
    assert_eq!(lines(&explain(BOUNCE, &["--json"])), expected);
}

#[test]
fn a_file_is_read_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bounce.eml");
    std::fs::write(&file, BOUNCE).unwrap();
    let output =
        daemon::command(program(), &[]).args(["explain", "bounce", "--json"]).arg(&file).output().unwrap();
    assert_eq!(output.stdout, explain(BOUNCE, &["--json"]).stdout);
    let missing = daemon::command(program(), &[])
        .args(["explain", "bounce"])
        .arg(folder.path().join("none"))
        .output()
        .unwrap();
    assert!(!missing.status.success() && missing.stdout.is_empty());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot read"));
}

#[test]
fn people_get_a_few_lines() {
    let output = explain(BOUNCE, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with(
            "recipient: jo@example.com\n\
             kind: bounce\n\
             class: bad_mailbox, there is no such mailbox\n\
             permanent: yes, the other side gave up\n\
             hard: yes, the address is dead and will be suppressed\n\
             code: 550 5.1.1\n\
             rule: bad-mailbox-code\n\
             said: 550 5.1.1 User unknown\n\n"
        ),
        "{text}"
    );
}

#[test]
fn mail_that_is_no_bounce_is_reported_by_its_kind() {
    let away = "From: jo@example.com\r\nSubject: Out of office\r\nAuto-Submitted: auto-replied\r\n\r\nBack on Monday.\r\n";
    let expected = json!({
        "recipient": "jo@example.com", "status": null, "code": null, "class": null,
        "permanent": false, "hard": false, "kind": "auto_reply", "rule": null,
    });
    assert_eq!(lines(&explain(away, &["--json"])), [expected]);
    let delivered = BOUNCE.replace("Action: failed", "Action: delivered");
    assert!(lines(&explain(&delivered, &["--json"])).is_empty());
    assert_eq!(lines(&explain("hello", &["--json"]))[0]["kind"], "other");
}
