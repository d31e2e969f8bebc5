//! `postroad explain reply`, as people and scripts use it.

use std::process::Output;

use postroad_testkit::daemon;
use serde_json::{Value, json};

use crate::world::program;

fn explain(args: &[&str]) -> Output {
    daemon::command(program(), &[]).args(["explain", "reply"]).args(args).output().unwrap()
}

fn explain_json(reply: &str) -> Value {
    let output = explain(&[reply, "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_reply_is_explained_in_a_few_lines() {
    let output = explain(&["550 5.1.1 <jo@example.com>: User unknown"]);
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "class: bad_mailbox, there is no such mailbox\n\
         permanent: yes, the message is given up\n\
         hard: yes, the address is dead and will be suppressed\n\
         throttle: no\n\
         rule: bad-mailbox-code\n"
    );
}

#[test]
fn scripts_get_json() {
    assert_eq!(
        explain_json("550 5.1.1 User unknown"),
        json!({
            "code": 550, "enhanced_code": "5.1.1", "phase": null, "class": "bad_mailbox",
            "permanent": true, "hard": true, "throttle": false, "signal": null, "rule": "bad-mailbox-code",
        })
    );
    assert_eq!(
        explain_json("421 Service not available"),
        json!({
            "code": 421, "enhanced_code": null, "phase": null, "class": "other",
            "permanent": false, "hard": false, "throttle": true, "signal": "too_fast", "rule": "basic-421",
        })
    );
}

#[test]
fn the_explanation_depends_on_the_phase() {
    let explain_in_phase = |phase: &str| {
        let output = explain(&["550 User unknown", "--phase", phase, "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["phase"], phase);
        (answer["class"].as_str().unwrap().to_owned(), answer["hard"].as_bool().unwrap())
    };
    assert_eq!(explain_in_phase("rcpt"), ("bad_mailbox".to_owned(), true));
    for phase in ["connect", "mail", "data"] {
        assert_eq!(explain_in_phase(phase), ("policy".to_owned(), false), "{phase}");
    }
    let unknown = explain(&["550 No", "--phase", "quit"]);
    assert!(!unknown.status.success());
}

#[test]
fn several_lines_are_one_reply() {
    let answer = explain_json(
        "550-5.7.26 This mail has been blocked because the\r\n550 5.7.26 sender is unauthenticated.\r\n",
    );
    assert_eq!(answer["class"], "auth_failure");
    assert_eq!(answer["enhanced_code"], "5.7.26");
}

#[test]
fn replies_that_cannot_be_explained_get_a_hint() {
    for (nonsense, hint) in [
        ("user unknown", "such as `550 5.1.1 User unknown`"),
        ("", "such as `550 5.1.1 User unknown`"),
        ("250 2.0.0 OK", "only replies from 400 to 599"),
    ] {
        let output = explain(&[nonsense, "--json"]);
        assert!(!output.status.success() && output.stdout.is_empty());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(hint), "{error}");
    }
}
