//! Only `model::clock` reads the wall clock; `Instant` may measure durations anywhere.

use super::Finding;
use super::rust_text::{Kind, split};
use super::tree::Tree;

const CLOCK_FILE: &str = "crates/model/src/clock.rs";
const WALL_CLOCK_CALLS: &[&str] = &["SystemTime::now", "OffsetDateTime::now", "UtcDateTime::now", "Utc::now"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files().filter(|file| file.path != CLOCK_FILE) {
        for piece in split(&file.text).iter().filter(|piece| piece.kind == Kind::Code) {
            for (offset, line) in piece.text.lines().enumerate() {
                if let Some(call) = WALL_CLOCK_CALLS.iter().find(|call| line.contains(**call)) {
                    let text = format!("{call} reads the wall clock; take a model::Clock as an argument");
                    findings.push(Finding::new(&file.path, piece.line + offset, text));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::check;

    #[test]
    fn reads_of_the_wall_clock_are_found_and_reads_of_instants_are_not() {
        let found = findings_in(
            check,
            &[
                ("crates/model/src/clock.rs", "SystemTime::now()"),
                (
                    "crates/app/src/lib.rs",
                    "// SystemTime::now\nlet a = Instant::now();\nlet b =\n    OffsetDateTime::now_utc();",
                ),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/app/src/lib.rs:4: OffsetDateTime::now reads the wall clock; take a model::Clock as an argument"
            ]
        );
    }
}
