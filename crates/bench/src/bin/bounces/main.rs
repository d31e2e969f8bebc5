//! `cargo xtask bounces [FOLDER]`: measures how many real bounces `mail::returned` interprets correctly.
//!
//! A folder holds `*.eml` and `expected.csv` (`file,recipient_no,status,reply_code,reason,hard`, the format of
//! the Sisimai project's samples). The samples are not in the repository; without a folder there is nothing to
//! measure.
//!
//! About a third of the files is held out: their score is printed but not their misses, so that nobody tunes a rule on
//! them. A hash of the file name without its number chooses them. So all samples of one system, which are similar, are
//! held out together, or not at all. Until November 2026 each file was chosen separately, so the authors of the rules
//! have seen some of the files that are held out now.

#![expect(clippy::print_stdout, reason = "the score is this command's answer")]

mod reasons;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use postroad_mail::returned::{ReturnedRecipient, read};
use reasons::Expected;

/// Folder of the samples beside the repository, if it exists.
const USUAL_FOLDER: &str = "../shared/samples/bounces";
const HARD_AIM_PERCENT: f64 = 97.0;
const CLASS_AIM_PERCENT: f64 = 95.0;

/// Expected result for one recipient of one file.
struct Row {
    file: String,
    /// Counts from zero.
    index: usize,
    reason: String,
    hard: bool,
}

#[derive(Default)]
struct Score {
    rows: usize,
    /// Rows for which `hard` was found correctly.
    hard: usize,
    /// Rows for which the class was found correctly.
    class: usize,
    misses: Vec<String>,
}

#[derive(Default)]
struct Scores {
    tuned: Score,
    held_out: Score,
}

/// Measures how many real bounces are understood; lists the others, except those that are held out.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bounces", bin_name = "cargo xtask bounces")]
struct Options {
    /// With *.eml and expected.csv [default: ../shared/samples/bounces beside the repository, if it is there]
    folder: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let folder = Options::parse().folder;
    let is_named = folder.is_some();
    // `crates/bench` is two folders below the repository.
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = folder.unwrap_or_else(|| crate_folder.join("../..").join(USUAL_FOLDER));
    if !folder.join("expected.csv").is_file() {
        ensure!(!is_named, "{} holds no expected.csv", folder.display());
        println!("no samples in {USUAL_FOLDER}: nothing to measure; name a folder that has some");
        return Ok(ExitCode::SUCCESS);
    }
    let Scores { tuned, held_out } = measure(&folder)?;
    ensure!(tuned.rows > 0, "expected.csv in {} has no row for a sample for tuning", folder.display());
    ensure!(
        held_out.rows > 0,
        "expected.csv in {} has no row for a sample that is held out",
        folder.display()
    );
    for miss in &tuned.misses {
        println!("{miss}");
    }
    let is_tuned_good = tuned.print("for tuning");
    let is_held_out_good = held_out.print("held out");
    Ok(if is_tuned_good && is_held_out_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a sample is held out: about one family in three, by the upper half of the family name's FNV-1a hash.
fn is_held_out(file: &str) -> bool {
    let hash = family(file).bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash >> 32).is_multiple_of(3)
}

/// `lhost-office365` of `lhost-office365-07.eml`: the system that wrote the bounce.
fn family(file: &str) -> &str {
    let name = file.strip_suffix(".eml").unwrap_or(file);
    match name.rsplit_once('-') {
        Some((family, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => family,
        _ => name,
    }
}

fn measure(folder: &Path) -> anyhow::Result<Scores> {
    let table = std::fs::read_to_string(folder.join("expected.csv"))?;
    let mut scores = Scores::default();
    let mut read_already: BTreeMap<String, Vec<ReturnedRecipient>> = BTreeMap::new();
    for (number, line) in table.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let row = parse_row(line).with_context(|| format!("expected.csv, line {}", number + 1))?;
        if !read_already.contains_key(&row.file) {
            let message = std::fs::read(folder.join(&row.file)).with_context(|| row.file.clone())?;
            read_already.insert(row.file.clone(), read(&message).recipients);
        }
        let score = if is_held_out(&row.file) { &mut scores.held_out } else { &mut scores.tuned };
        score.add(&row, read_already[&row.file].get(row.index))?;
    }
    Ok(scores)
}

fn parse_row(line: &str) -> anyhow::Result<Row> {
    let cells: Vec<&str> = line.trim().split(',').collect();
    let [file, number, _status, _code, reason, hard] = cells[..] else {
        anyhow::bail!("not six cells: {line}")
    };
    let index = number.parse::<usize>()?.checked_sub(1).context("recipients are counted from one")?;
    Ok(Row { file: file.to_owned(), index, reason: reason.to_owned(), hard: hard == "1" })
}

impl Score {
    /// Prints the scores; returns whether both targets are reached.
    fn print(&self, part: &str) -> bool {
        let percent = |right: usize| 100.0 * right as f64 / self.rows.max(1) as f64;
        let (hard, class) = (percent(self.hard), percent(self.class));
        println!("recipients {part}: {}", self.rows);
        println!("  hard or not: {} right, {hard:.1} % (aim {HARD_AIM_PERCENT} %)", self.hard);
        println!("  class:       {} right, {class:.1} % (aim {CLASS_AIM_PERCENT} %)", self.class);
        hard >= HARD_AIM_PERCENT && class >= CLASS_AIM_PERCENT
    }

    fn add(&mut self, row: &Row, found: Option<&ReturnedRecipient>) -> anyhow::Result<()> {
        let expected = Expected::of(&row.reason).with_context(|| format!("unknown reason {}", row.reason))?;
        let is_hard_right = match found {
            Some(found) => found.hard == row.hard,
            None => expected == Expected::Nothing,
        };
        let is_class_right = expected.is_met_by(found);
        self.rows += 1;
        self.hard += usize::from(is_hard_right);
        self.class += usize::from(is_class_right);
        if !is_hard_right || !is_class_right {
            let wrong_part = match (is_hard_right, is_class_right) {
                (false, false) => "hard and class",
                (false, true) => "hard",
                _ => "class",
            };
            self.misses.push(format!(
                "{} #{}: {wrong_part} wrong; expected {}, hard {}; {}",
                row.file,
                row.index + 1,
                row.reason,
                row.hard,
                found.map_or("found nothing".to_owned(), describe)
            ));
        }
        Ok(())
    }
}

fn describe(found: &ReturnedRecipient) -> String {
    format!(
        "found {} {}, hard {}, rule {}: {:.160}",
        found.kind.as_str(),
        found.class.map_or("-", |class| class.as_str()),
        found.hard,
        found.rule.unwrap_or("-"),
        found.diagnostic
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_system_are_all_held_out_or_all_for_tuning() {
        assert_eq!(family("lhost-office365-07.eml"), "lhost-office365");
        assert_eq!(family("rfc3464-01.eml"), "rfc3464");
        assert_eq!(family("notice.eml"), "notice");
        for (system, expected) in [("lhost-office365", false), ("lhost-sendmail", true), ("rfc3464", false)] {
            for number in 1..100 {
                assert_eq!(is_held_out(&format!("{system}-{number:02}.eml")), expected, "{system} {number}");
            }
        }
    }

    #[test]
    fn a_score_without_rows_misses_the_aims() {
        assert!(!Score::default().print("held out"));
    }
}
