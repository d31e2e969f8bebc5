//! `postroad admin suppression …`. Imports and exports a CSV file in parts, because the control socket limits the size
//! and the time of a command.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;

use anyhow::Context;
use postroad_app::suppressions::{SuppressionRequest, read_csv};
use serde_json::{Value, json};

use super::client::Client;
use crate::cli::{AdminCommand, SuppressionCommand};
use crate::control::Request;
use crate::terminal;

const FILE_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of lines of one part.
const PART_LINES_MAX: usize = 500;
/// Maximum size of one part as JSON; the control socket accepts a megabyte.
const PART_BYTES_MAX: usize = 256 << 10;

/// Executes the command. Returns the answer to print; `None` if the list itself was written to standard output.
pub(super) async fn run(client: &mut Client, command: SuppressionCommand) -> anyhow::Result<Option<Value>> {
    match command {
        SuppressionCommand::Import { file, server, .. } => import(client, &file, &server).await.map(Some),
        SuppressionCommand::Export { file, server, .. } => export(client, &file, &server).await,
        command => execute(client, command).await.map(Some),
    }
}

async fn execute(client: &mut Client, command: SuppressionCommand) -> anyhow::Result<Value> {
    client.execute(Request::Admin(AdminCommand::Suppression(command))).await
}

/// Adds every address of the file; reports the lines that were refused, and why.
async fn import(client: &mut Client, file: &Path, server: &str) -> anyhow::Result<Value> {
    let text = read_text(file).with_context(|| format!("cannot read {}", file.display()))?;
    let list = read_csv(&text, usize::MAX).context("the file has too many lines")?;
    drop(text);
    for column in &list.unknown_columns {
        terminal::warn(&format!("the column `{column}` was ignored"), client.json);
    }
    let mut import = Import { lines: list.lines.len(), ..Import::default() };
    let mut part = Part::default();
    for line in list.lines {
        match line.request {
            Ok(item) => {
                let bytes = serde_json::to_string(&item)?.len();
                if bytes > PART_BYTES_MAX {
                    import.record_failure(line.number, "it is too long");
                    continue;
                }
                if part.items.len() == PART_LINES_MAX || part.bytes + bytes > PART_BYTES_MAX {
                    import.add_part(client, file, server, std::mem::take(&mut part)).await?;
                }
                part.bytes += bytes;
                part.line_numbers.push(line.number);
                part.items.push(item);
            }
            Err(message) => import.record_failure(line.number, &message),
        }
    }
    // The last part is sent even if it is empty: the answer shows whether the server exists.
    import.add_part(client, file, server, part).await?;
    import.errors.sort_by_key(|(line, _)| *line);
    let errors: Vec<Value> =
        import.errors.iter().map(|(line, message)| json!({ "line": line, "message": message })).collect();
    Ok(json!({
        "lines": import.lines,
        "added": import.added,
        "exists": import.exists,
        "failed": errors.len(),
        "errors": errors,
    }))
}

/// Lines of the file that are sent together.
#[derive(Debug, Default)]
struct Part {
    bytes: usize,
    line_numbers: Vec<u64>,
    items: Vec<SuppressionRequest>,
}

/// Progress of an import, and the lines that were refused.
#[derive(Debug, Default)]
struct Import {
    lines: usize,
    added: usize,
    exists: usize,
    errors: Vec<(u64, String)>,
}

impl Import {
    fn record_failure(&mut self, line: u64, message: &str) {
        self.errors.push((line, message.to_owned()));
    }

    /// Imports one part, and counts its results.
    async fn add_part(
        &mut self,
        client: &mut Client,
        file: &Path,
        server: &str,
        part: Part,
    ) -> anyhow::Result<()> {
        let Part { line_numbers, items, .. } = part;
        let (file, server) = (file.to_owned(), server.to_owned());
        let answer = execute(client, SuppressionCommand::Import { file, server, items }).await?;
        let results = answer["results"].as_array().context("the running server is of another version")?;
        for (number, result) in line_numbers.into_iter().zip(results) {
            match result["status"].as_str() {
                Some("added") => self.added += 1,
                Some("exists") => self.exists += 1,
                _ => self.record_failure(number, result["message"].as_str().unwrap_or("it was refused")),
            }
        }
        Ok(())
    }
}

/// Writes the whole list; returns `None` if it was written to standard output.
async fn export(client: &mut Client, file: &Path, server: &str) -> anyhow::Result<Option<Value>> {
    let is_standard_output = file == Path::new("-");
    // A file or a pipe gets the list unescaped.
    let is_terminal = is_standard_output && std::io::stdout().is_terminal();
    // The first page is fetched before the file is created, so that a wrong server name leaves no empty file.
    let mut page = next_page(client, file, server, None).await?;
    let mut out: Box<dyn Write> = if is_standard_output {
        Box::new(std::io::stdout())
    } else {
        Box::new(File::create(file).with_context(|| format!("cannot write {}", file.display()))?)
    };
    let incomplete = || format!("{} is not complete", file.display());
    let mut count = 0;
    let mut is_first = true;
    loop {
        let csv = page["csv"].as_str().context("the running server is of another version")?;
        // Each page repeats the header.
        let lines = if is_first { csv } else { csv.split_once('\n').map_or("", |(_, lines)| lines) };
        let lines = if is_terminal { terminal::escape(lines) } else { lines.into() };
        out.write_all(lines.as_bytes()).with_context(incomplete)?;
        count += page["count"].as_u64().unwrap_or_default();
        is_first = false;
        let Some(next) = page["next"].as_str() else { break };
        page = next_page(client, file, server, Some(next.to_owned())).await.with_context(incomplete)?;
    }
    out.flush().with_context(incomplete)?;
    Ok((!is_standard_output).then(|| json!({ "exported": count, "file": file })))
}

async fn next_page(
    client: &mut Client,
    file: &Path,
    server: &str,
    after: Option<String>,
) -> anyhow::Result<Value> {
    let (file, server) = (file.to_owned(), server.to_owned());
    execute(client, SuppressionCommand::Export { file, server, after }).await
}

fn read_text(file: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let reader: Box<dyn Read> =
        if file == Path::new("-") { Box::new(std::io::stdin()) } else { Box::new(File::open(file)?) };
    reader.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(
        bytes.len() as u64 <= FILE_BYTES_MAX,
        "it is larger than {FILE_BYTES_MAX} bytes; import it in parts"
    );
    String::from_utf8(bytes).ok().context("it is not UTF-8 text")
}
