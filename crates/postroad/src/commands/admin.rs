//! `postroad admin …`: executes a command and prints the answer.

use std::fmt::Write;

use anyhow::bail;
use serde_json::Value;

use super::client::Client;
use super::suppressions;
use crate::cli::{AdminArgs, AdminCommand};
use crate::control::Request;
use crate::terminal::{one_line, print};

pub(crate) async fn run(args: AdminArgs) -> anyhow::Result<()> {
    let mut client = Client::new(args.installation)?;
    let answer = match args.command {
        AdminCommand::Suppression(command) => match suppressions::run(&mut client, command).await? {
            Some(answer) => answer,
            None => return Ok(()),
        },
        command => client.execute(Request::Admin(command)).await?,
    };
    print_answer(&answer, client.json);
    // An import adds the valid lines, and fails if some were refused.
    if let Some(failed) = answer["failed"].as_u64().filter(|failed| *failed > 0) {
        bail!("{failed} of {} lines were not imported", answer["lines"]);
    }
    Ok(())
}

/// Prints an answer for people, or as one line of JSON.
pub(super) fn print_answer(answer: &Value, json: bool) {
    let text = if json { answer.to_string() } else { readable(answer) };
    print(text.trim_end());
}

/// Formats an answer for people: a `name: value` line for each field, and a blank line between the entries of a list.
fn readable(answer: &Value) -> String {
    match answer {
        Value::Array(entries) if entries.is_empty() => "(none)".to_owned(),
        // A zone file is printed as it is, so that it can be piped into a file.
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("zone") => {
            fields["zone"].as_str().unwrap_or_default().to_owned()
        }
        Value::Array(entries) => {
            entries.iter().map(|entry| field_lines(entry, 0)).collect::<Vec<_>>().join("\n")
        }
        other => field_lines(other, 0),
    }
}

fn field_lines(value: &Value, indent: usize) -> String {
    let Value::Object(fields) = value else { return format!("{value}\n") };
    let mut text = String::new();
    for (name, value) in fields {
        let margin = " ".repeat(indent);
        // Writing into a String cannot fail.
        let _ = match value {
            Value::Null => Ok(()),
            Value::String(string) => writeln!(text, "{margin}{name}: {}", one_line(string)),
            Value::Array(entries) if entries.iter().any(Value::is_object) => {
                let entries = entries.iter().map(|entry| field_lines(entry, indent + 2)).collect::<Vec<_>>();
                writeln!(text, "{margin}{name}:\n{}", entries.join("\n").trim_end())
            }
            Value::Array(entries) if entries.is_empty() => Ok(()),
            other => writeln!(text, "{margin}{name}: {other}"),
        };
    }
    text
}
