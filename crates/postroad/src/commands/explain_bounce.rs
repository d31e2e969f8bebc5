//! `postroad explain bounce FILE`: shows how the bounce listener interprets a returned message. Needs no running
//! service.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, ensure};
use postroad_mail::classify::built_in;
use postroad_mail::returned::{ReturnedRecipient, read};
use serde_json::json;

use crate::terminal::{one_line, print};

/// Maximum size of the file; much larger than the bounces that the bounce listener accepts.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

pub(crate) fn run(file: &Path, json: bool) -> anyhow::Result<()> {
    let message = read_message(file).with_context(|| format!("cannot read {}", file.display()))?;
    let returned = read(&message);
    let show = if json { machine_readable } else { readable };
    let answers: Vec<String> = returned.recipients.iter().map(show).collect();
    match (answers.is_empty(), json) {
        (false, true) => print(&answers.join("\n")),
        (false, false) => print(&answers.join("\n\n")),
        // Nothing is printed: scripts count the lines, one for each recipient.
        (true, true) => {}
        (true, false) => print("kind: other (a notice of success, which changes nothing)"),
    }
    Ok(())
}

fn read_message(file: &Path) -> anyhow::Result<Vec<u8>> {
    let source: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file)?)
    };
    let mut message = Vec::new();
    source.take(MESSAGE_BYTES_MAX + 1).read_to_end(&mut message)?;
    ensure!(message.len() as u64 <= MESSAGE_BYTES_MAX, "it is larger than {} MiB", MESSAGE_BYTES_MAX >> 20);
    Ok(message)
}

fn machine_readable(about: &ReturnedRecipient) -> String {
    json!({
        "recipient": about.recipient,
        "status": about.status.map(|status| status.to_string()),
        "code": about.code,
        "class": about.class,
        "permanent": about.permanent,
        "hard": about.hard,
        "kind": about.kind.as_str(),
        "rule": about.rule,
    })
    .to_string()
}

fn readable(about: &ReturnedRecipient) -> String {
    let mut lines = vec![
        format!("recipient: {}", one_line(about.recipient.as_deref().unwrap_or("not named"))),
        format!("kind: {}", about.kind.as_str()),
    ];
    if let Some(class) = about.class {
        let message =
            if about.permanent { "yes, the other side gave up" } else { "no, the other side keeps trying" };
        let address = if about.hard { "yes, the address is dead and will be suppressed" } else { "no" };
        lines.push(format!("class: {class}, {}", built_in().meaning(class)));
        lines.push(format!("permanent: {message}"));
        lines.push(format!("hard: {address}"));
        let codes = [about.code.map(|code| code.to_string()), about.status.map(|status| status.to_string())];
        let codes: Vec<String> = codes.into_iter().flatten().collect();
        lines.extend((!codes.is_empty()).then(|| format!("code: {}", codes.join(" "))));
        lines.extend(about.rule.map(|rule| format!("rule: {rule}")));
    }
    lines.extend((!about.diagnostic.is_empty()).then(|| format!("said: {}", one_line(&about.diagnostic))));
    lines.join("\n")
}
