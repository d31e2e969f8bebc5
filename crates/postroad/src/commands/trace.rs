//! `postroad trace ID|TOKEN|MESSAGE-ID`: prints the timeline of a message.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use serde_json::Value;

use super::client::Client;
use crate::cli::TraceArgs;
use crate::control::Request;
use crate::terminal::{one_line, print, print_styled};

pub(crate) async fn run(args: TraceArgs) -> anyhow::Result<()> {
    let mut client = Client::new(args.installation)?;
    let answer = client.execute(Request::Trace { message: args.message }).await?;
    if client.json {
        print(&answer.to_string());
        return Ok(());
    }
    let text = readable(&answer);
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        print_styled(&text, style_of);
    } else {
        print(text.trim_end());
    }
    Ok(())
}

/// A paragraph for each message, a line for each item, and the transcripts indented below their attempts.
fn readable(answer: &Value) -> String {
    let mut text = String::new();
    let text_of = |value: &Value| one_line(value.as_str().unwrap_or_default());
    for message in answer.as_array().into_iter().flatten() {
        let (id, token, status) = (&message["id"], text_of(&message["token"]), text_of(&message["status"]));
        // Writing into a String cannot fail.
        let _ = writeln!(text, "message {id} ({token}) to {}: {status}", text_of(&message["rcpt_to"]));
        let _ = writeln!(text, "subject: {}", text_of(&message["subject"]));
        for item in message["items"].as_array().into_iter().flatten() {
            let (at, kind) = (text_of(&item["at"]), text_of(&item["kind"]));
            let _ = writeln!(text, "{at}  {kind:<12} {}", text_of(&item["text"]));
            let data = &item["data"];
            if let Some(words) = data["output"].as_str().filter(|words| !words.is_empty()) {
                let _ = writeln!(text, "    it said: {}", one_line(words));
            }
            for line in data["transcript"].as_array().into_iter().flatten() {
                let _ = writeln!(text, "    {}", text_of(line));
            }
        }
        text.push('\n');
    }
    text
}

/// The SGR code of a line: headings bold, transcripts dim, failures red.
fn style_of(line: &str) -> Option<&'static str> {
    let kind = line.split_whitespace().nth(1).unwrap_or_default();
    if line.starts_with("message ") {
        Some("1")
    } else if line.starts_with("    ") {
        Some("2")
    } else if matches!(kind, "failed" | "bounced" | "complained") {
        Some("31")
    } else {
        None
    }
}
