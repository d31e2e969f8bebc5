//! Private words that were replaced by words of the field must not return to code, comments or documentation.

use super::Finding;
use super::rust_text::{self, Kind};
use super::tree::{File, Tree, has_extension, is_rust};

/// A retired word as it appears in identifiers and prose, and the word to use.
const RETIRED: &[(&str, &str)] = &[
    ("administrate", "execute"),
    ("beginner", "`BeginBatcher`"),
    ("desk", "the part's task: `QueueAdmin`, `WebhookTester`, `ReturnReceiver`"),
    ("door", "entry point, listener or API"),
    ("doorkeeper", "`Admission`"),
    ("doors", "entry points, listeners"),
    ("facade", "the subject: methods of `Store` lie beside their SQL"),
    ("farewell", "`ConnectionGuard`"),
    ("floors", "layers"),
    ("guest", "`SessionPeer`"),
    ("house", "service, installation or machine"),
    ("hub", "`EngineShared`"),
    ("objections", "`HoldCause`"),
    ("returner", "`BounceReceiver`"),
    ("turnstile", "`ServerGate`"),
    ("unspeakable", "`unsupported_in_format`"),
    ("wishes", "options, overrides or requests"),
];

/// Files that may contain retired words: this list, and history.
const EXCEPT: &[&str] = &["xtask/src/tidy/retired_words.rs", "CHANGELOG.md"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| !EXCEPT.contains(&file.path.as_str())).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let pieces: Vec<(usize, &str)> = if is_rust(&file.path) {
        let pieces = rust_text::split(&file.text);
        pieces.iter().filter(|piece| piece.kind != Kind::Text).map(|piece| (piece.line, piece.text)).collect()
    } else if has_extension(&file.path, "md") {
        vec![(1, &file.text)]
    } else {
        return Vec::new();
    };
    let lines = pieces
        .iter()
        .flat_map(|(first, text)| text.lines().enumerate().map(move |(index, line)| (first + index, line)));
    lines.flat_map(|(number, line)| complaints(file, number, line)).collect()
}

fn complaints(file: &File, number: usize, line: &str) -> Vec<Finding> {
    words(line)
        .filter_map(|word| RETIRED.iter().find(|(retired, _)| word.eq_ignore_ascii_case(retired)))
        .map(|(retired, instead)| {
            Finding::new(&file.path, number, format!("`{retired}` is retired; use {instead}"))
        })
        .collect()
}

/// The words of a line, also inside identifiers: `queue_admin` and `QueueAdmin` have two.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphabetic()).flat_map(|identifier| {
        let mut starts: Vec<usize> = vec![0];
        let letters: Vec<(usize, char)> = identifier.char_indices().collect();
        starts.extend(
            letters.windows(2).filter_map(|pair| {
                (pair[0].1.is_lowercase() && pair[1].1.is_uppercase()).then_some(pair[1].0)
            }),
        );
        let ends: Vec<usize> = starts.iter().skip(1).copied().chain([identifier.len()]).collect();
        starts.into_iter().zip(ends).map(|(start, end)| &identifier[start..end]).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::check;

    #[test]
    fn retired_words_are_found_in_identifiers_comments_and_documents_but_not_in_texts() {
        let found = findings_in(
            check,
            &[
                (
                    "crates/app/src/lib.rs",
                    "//! The store's facade.\nstruct MailReturner;\nlet guest_list = \"guest\";\n",
                ),
                ("docs/queue.md", "# Queue\n\nAsk the returner.\n"),
                ("docs/plan.svg", "guest"),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/app/src/lib.rs:1: `facade` is retired; use the subject: methods of `Store` lie beside their SQL",
                "crates/app/src/lib.rs:2: `returner` is retired; use `BounceReceiver`",
                "crates/app/src/lib.rs:3: `guest` is retired; use `SessionPeer`",
                "docs/queue.md:3: `returner` is retired; use `BounceReceiver`",
            ]
        );
    }
}
