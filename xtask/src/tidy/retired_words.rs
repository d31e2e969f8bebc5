//! Jargon of this project that was replaced by words of the field must not return to code, comments or documentation.

use super::Finding;
use super::rust_text::{self, Kind};
use super::tree::{File, Tree, has_extension, is_rust};

/// Retired words as they appear in identifiers and prose, and the words to use. The plural of each is retired too.
const RETIRED: &[(&str, &str)] = &[
    ("administrate", "execute"),
    ("beginner", "`BeginBatcher`"),
    ("desk", "the part's task: `QueueAdmin`, `WebhookTester`, `ReturnReceiver`"),
    ("door", "entry point, listener or API"),
    ("doorkeeper", "`Admission`"),
    ("facade", "an `impl Store` beside the SQL, in the subject's folder"),
    ("farewell", "`ConnectionGuard`"),
    // Not `floor`, which is a function of numbers.
    ("floors", "layers"),
    ("guest", "`SessionPeer`"),
    ("house", "service, installation or machine"),
    ("hub", "`EngineShared`"),
    ("objection", "refusal or `HoldCause`"),
    ("remover", "`RetentionTask`"),
    ("returner", "`BounceReceiver`"),
    ("turnstile", "`ServerGate`"),
    ("unspeakable", "`unsupported_in_format`"),
    ("wish", "options, overrides or requests"),
];

/// Words that prose may use but names may not. With `_`: consecutive words of one name.
const RETIRED_IN_NAMES: &[(&str, &str)] = &[
    ("bell", "notifier"),
    ("carry_out", "execute or apply"),
    ("noted", "a noun for the stored value, such as `saved_estimates`"),
    ("saying", "reply or text"),
    ("surplus", "excess"),
    ("told", "feed, published or notified"),
    ("upkeep", "`Housekeeping`"),
];

/// Files that may contain retired words: this list, and history.
const EXCEPT: &[&str] = &["xtask/src/tidy/retired_words.rs", "CHANGELOG.md"];

/// Files other than Rust that are read as prose.
const PROSE_EXTENSIONS: &[&str] = &["md", "sql", "html", "js", "toml"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| !EXCEPT.contains(&file.path.as_str())).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let pieces: Vec<(usize, &str, bool)> = if is_rust(&file.path) {
        let pieces = rust_text::split(&file.text);
        let pieces = pieces.iter().filter(|piece| piece.kind != Kind::Text);
        pieces.map(|piece| (piece.line, piece.text, piece.kind == Kind::Code)).collect()
    } else if PROSE_EXTENSIONS.iter().any(|extension| has_extension(&file.path, extension)) {
        vec![(1, &file.text, false)]
    } else {
        return Vec::new();
    };
    let lines = pieces.iter().flat_map(|(first, text, is_code)| {
        text.lines().enumerate().map(move |(index, line)| (first + index, line, *is_code))
    });
    lines.flat_map(|(number, line, is_code)| findings_in_line(file, number, line, is_code)).collect()
}

fn findings_in_line(file: &File, number: usize, line: &str, is_code: bool) -> Vec<Finding> {
    let of_names = if is_code { RETIRED_IN_NAMES } else { &[] };
    let retired: Vec<_> = RETIRED.iter().chain(of_names).collect();
    names(line)
        .map(words)
        .flat_map(|words| {
            let is_found = move |retired: &str| contains(&words, retired);
            retired.iter().filter(move |(retired, _)| is_found(retired)).collect::<Vec<_>>()
        })
        .map(|(retired, instead)| {
            Finding::new(&file.path, number, format!("`{retired}` is retired; use {instead}"))
        })
        .collect()
}

/// Identifiers and words of a line.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphabetic() && c != '_').filter(|name| !name.is_empty())
}

/// The words of a name: `queue_admin` and `QueueAdmin` have two.
fn words(name: &str) -> Vec<&str> {
    name.split('_').flat_map(split_camel_case).collect()
}

fn split_camel_case(identifier: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = vec![0];
    let letters: Vec<(usize, char)> = identifier.char_indices().collect();
    starts.extend(
        letters
            .windows(2)
            .filter_map(|pair| (pair[0].1.is_lowercase() && pair[1].1.is_uppercase()).then_some(pair[1].0)),
    );
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([identifier.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| &identifier[start..end]).collect()
}

/// Whether consecutive words are the retired ones; the last may be in the plural.
fn contains(words: &[&str], retired: &str) -> bool {
    let retired: Vec<&str> = retired.split('_').collect();
    let (last, before) = retired.split_last().expect("split returns at least one piece");
    words.windows(retired.len()).any(|window| {
        is_singular_or_plural(window[before.len()], last)
            && window.iter().zip(before).all(|(word, retired)| word.eq_ignore_ascii_case(retired))
    })
}

fn is_singular_or_plural(word: &str, singular: &str) -> bool {
    let Some((start, ending)) = word.split_at_checked(singular.len()) else { return false };
    start.eq_ignore_ascii_case(singular) && ["", "s", "es"].iter().any(|end| ending.eq_ignore_ascii_case(end))
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
                "crates/app/src/lib.rs:1: `facade` is retired; use an `impl Store` beside the SQL, in the subject's folder",
                "crates/app/src/lib.rs:2: `returner` is retired; use `BounceReceiver`",
                "crates/app/src/lib.rs:3: `guest` is retired; use `SessionPeer`",
                "docs/queue.md:3: `returner` is retired; use `BounceReceiver`",
            ]
        );
    }

    #[test]
    fn plurals_are_found_and_longer_words_are_not() {
        let source = "fn hubs(objections: Wishes, GUESTS: u8) {}\n// Two houses.\n";
        let found = findings_in(check, &[("crates/app/src/lib.rs", source)]);
        let words: Vec<&str> = found.iter().filter_map(|finding| finding.split('`').nth(1)).collect();
        assert_eq!(words, ["hub", "objection", "wish", "guest", "house"]);
        let source = "fn floor_of(hubris: Wished, outdoor: Household, desktop: u8) {}\n";
        assert!(findings_in(check, &[("crates/app/src/lib.rs", source)]).is_empty());
    }

    #[test]
    fn sql_pages_scripts_and_settings_are_read() {
        for extension in ["sql", "html", "js", "toml"] {
            let path = format!("crates/app/some.{extension}");
            let found = findings_in(check, &[(&path, "x\n-- the sender's wish\n")]);
            assert_eq!(found, [format!("{path}:2: `wish` is retired; use options, overrides or requests")]);
        }
    }

    #[test]
    fn words_that_prose_may_use_are_found_in_names_only() {
        let prose = "// As noted, customers are told to carry out the surplus.\n";
        assert!(findings_in(check, &[("crates/app/src/lib.rs", prose), ("docs/a.md", prose)]).is_empty());
        let source = "fn carry_out(noted_at: ToldEvent, bells: u8) {}\nfn untold(carry: u8, out: u8) {}\n";
        let found = findings_in(check, &[("crates/app/src/lib.rs", source)]);
        let words: Vec<&str> = found.iter().filter_map(|finding| finding.split('`').nth(1)).collect();
        assert_eq!(words, ["carry_out", "noted", "told", "bell"]);
    }
}
