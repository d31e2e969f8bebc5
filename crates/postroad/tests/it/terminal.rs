//! The command line's output: untrusted text on the terminal, errors as JSON, shell completions and the manual page.

use std::process::Output;

use postroad_testkit::daemon;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{World, both_engines, program};

/// Clears the screen, changes the colour (by the 8-bit CSI), rings the bell, deletes, and turns text right to left.
pub(crate) const ESCAPES: &str = "\u{1b}[2J\u{9b}31m\u{7}\u{7f}\u{202e}";

fn run(args: &[&str]) -> Output {
    daemon::command(program(), &[]).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn assert_harmless(shown: &str) {
    let is_dangerous = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!shown.contains(is_dangerous), "{shown:?}");
}

/// Output of an `admin` command without `--json`.
pub(crate) fn admin_text(world: &World, args: &[&str]) -> String {
    command_text(world, "admin", args)
}

/// Output of a `queue` command without `--json`.
pub(crate) fn queue_text(world: &World, args: &[&str]) -> String {
    command_text(world, "queue", args)
}

fn command_text(world: &World, command: &str, args: &[&str]) -> String {
    let output = daemon::command(program(), &[])
        .arg(command)
        .args(args)
        .arg("--data-dir")
        .arg(world.data_dir())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_bounce_cannot_send_escapes_to_the_terminal() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("bounce.eml");
    let bounce = format!(
        "From: mailer-daemon@isp.example\r\nSubject: failed\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain\r\n\r\nNo.\r\n\
         --b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.isp.example\r\n\r\n\
         Final-Recipient: rfc822; a@isp.example\r\nAction: failed\r\nStatus: 5.1.1\r\n\
         Diagnostic-Code: smtp; 550 5.1.1 no {ESCAPES} such user\r\n\r\n--b--\r\n"
    );
    std::fs::write(&file, bounce).unwrap();
    for json in [false, true] {
        let mut args = vec!["explain", "bounce", file.to_str().unwrap()];
        args.extend(json.then_some("--json"));
        let output = run(&args);
        let shown = text(&output.stdout);
        assert!(output.status.success() && shown.contains("a@isp.example"), "{shown}");
        assert_harmless(&shown);
        if json {
            serde_json::from_str::<Value>(&shown).unwrap();
        } else {
            assert!(shown.contains(r"no \u001b[2J"), "{shown}");
        }
    }
}

both_engines!(
    a_suppression_cannot_send_escapes_to_the_terminal,
    an_exported_suppression_list_has_no_formulas_and_is_imported_unchanged
);

async fn a_suppression_cannot_send_escapes_to_the_terminal(world: World) {
    let details = format!("said {ESCAPES}\nreason: complaint");
    let add = json!({"address": "a@example.com", "details": details});
    assert_eq!(world.call("/api/v1/suppressions/add", &add).await["status"], "success");
    let shown = admin_text(&world, &["suppression", "list", "--server", "dev"]);
    assert!(shown.contains("details: said") && shown.contains(r"\u202e"), "{shown:?}");
    assert_harmless(&shown);
    assert!(!shown.contains("\nreason: complaint"), "{shown}");
    // The escaped JSON still parses to the original text.
    let (_, out, _) = world.admin_output(&["suppression", "list", "--server", "dev"]);
    assert_harmless(&out);
    let listed: Value = serde_json::from_str(&out).unwrap();
    assert!(listed[0]["details"].as_str().unwrap().contains('\u{202e}'), "{listed}");
}

async fn an_exported_suppression_list_has_no_formulas_and_is_imported_unchanged(world: World) {
    let addresses =
        ["=cmd@example.com", "+1@example.com", "-x@example.com", "'=y@example.com", "plain@example.com"];
    let items: Vec<Value> =
        addresses.iter().map(|address| json!({"address": address, "details": "@SUM(A1)"})).collect();
    let added = world.call("/api/v1/suppressions/add", &json!({ "items": items })).await;
    assert_eq!(added["status"], "success", "{added}");
    let file = world.folder.path().join("list.csv").to_str().unwrap().to_owned();
    world.admin(&["suppression", "export", &file, "--server", "dev"]);
    let csv = std::fs::read_to_string(&file).unwrap();
    for cell in csv.lines().flat_map(|line| line.split(',')) {
        assert!(!cell.trim_start_matches('"').starts_with(['=', '+', '-', '@']), "{cell} in {csv}");
    }
    world.admin(&["server", "create", "copy", "--account", "dev"]);
    world.admin(&["suppression", "import", &file, "--server", "copy"]);
    let list = |server: &str| {
        let Value::Array(list) = world.admin(&["suppression", "list", "--server", server]) else {
            panic!("a list")
        };
        let mut pairs: Vec<(String, String)> =
            list.iter().map(|one| (one["address"].to_string(), one["details"].to_string())).collect();
        pairs.sort();
        pairs
    };
    assert_eq!(list("copy"), list("dev"));
    assert_eq!(list("dev").len(), addresses.len());
}

#[test]
fn commands_with_the_option_json_report_errors_as_json() {
    let folder = TempDir::new().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let cases: [&[&str]; 8] = [
        &["admin", "server", "list", "--json", "--data-dir", data_dir],
        &["admin", "server", "set-rate", "dev", "fast", "--json"],
        &["admin", "--json"],
        &["queue", "show", "7", "--json", "--data-dir", data_dir],
        &["explain", "reply", "hello", "--json"],
        &["explain", "bounce", "/nowhere", "--json"],
        &["check-config", "--json", "--config", "/nowhere.toml"],
        &["webhook", "listen", "--json", "--data-dir", data_dir],
    ];
    for args in cases {
        let output = run(args);
        assert!(!output.status.success(), "{args:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        let error = text(&output.stderr);
        let parsed: Value = serde_json::from_str(&error).unwrap_or_else(|e| panic!("{args:?}: {e}: {error}"));
        assert!(parsed["error"].as_str().is_some_and(|text| text.len() > 10), "{args:?}: {error}");
    }
    let help = run(&["admin", "--json", "--help"]);
    assert!(help.status.success() && text(&help.stdout).contains("Usage:"), "help stays plain text");
}

#[test]
fn shell_completions_and_the_manual_page_contain_the_commands() {
    let run_successfully = |arguments: &[&str]| {
        let output =
            std::process::Command::new(program()).args(arguments).output().expect("the program runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    for shell in ["bash", "zsh", "fish"] {
        let script = run_successfully(&["completions", shell]);
        for word in ["admin", "suppression", "set-up-link", "export", "completions", "servers/create"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("person/sign_in"), "{shell}: only calls of the HTTP API");
    }
    let page = run_successfully(&["man"]);
    for part in [".TH postroad", "POSTROAD SERVE", "check\\-config", "\\-\\-json"] {
        assert!(page.contains(part), "{part}");
    }
}
