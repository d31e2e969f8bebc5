//! The names that one file defines, brings in and uses: items, `use` trees, and paths in the code.

use std::collections::{BTreeMap, BTreeSet};

const ITEM_KEYWORDS: &[&str] =
    &["struct", "enum", "union", "trait", "fn", "const", "static", "type", "macro_rules"];

/// A path as written, for example `["super", "send", "Draft"]`; of a glob, the path before `*`.
pub(super) type Path = Vec<String>;

#[derive(Debug, Default)]
pub(super) struct Names {
    /// Types, functions, constants and inline modules.
    pub(super) items: BTreeSet<String>,
    /// What `use` brings in, by its name in this file.
    pub(super) uses: BTreeMap<String, Path>,
    pub(super) globs: Vec<Path>,
    /// Paths of two or more words in the code.
    pub(super) paths: Vec<Path>,
}

impl Names {
    pub(super) fn read(tokens: &[&str]) -> Self {
        let mut names = Self::default();
        let mut depth = 0_usize;
        let mut at = 0;
        while at < tokens.len() {
            match tokens[at] {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "use" => {
                    let length =
                        tokens[at..].iter().position(|token| *token == ";").unwrap_or(tokens.len() - at);
                    names.add_use(&tokens[at + 1..at + length], &[]);
                    at += length;
                }
                word if depth == 0 && ITEM_KEYWORDS.contains(&word) => {
                    let mut following =
                        tokens[at + 1..].iter().filter(|token| !matches!(**token, "!" | "mut" | "fn"));
                    names.items.extend(following.next().map(|name| (*name).to_owned()));
                }
                "mod" if depth == 0 && tokens.get(at + 2) == Some(&"{") => {
                    names.items.insert(tokens[at + 1].to_owned());
                }
                _ if tokens.get(at + 1) == Some(&"::") && is_word(tokens[at]) => {
                    let length = path_length(&tokens[at..]);
                    let path = tokens[at..at + length].iter().filter(|token| **token != "::");
                    names.paths.push(path.map(|word| (*word).to_owned()).collect());
                    at += length - 1;
                }
                _ => {}
            }
            at += 1;
        }
        names
    }

    /// Adds one `use` tree, without `use` and `;`, below `prefix`.
    fn add_use(&mut self, tokens: &[&str], prefix: &[String]) {
        let mut path = prefix.to_vec();
        let mut at = 0;
        while at < tokens.len() {
            match tokens[at] {
                "::" => {}
                "{" => {
                    for branch in branches(&tokens[at + 1..]) {
                        self.add_use(branch, &path);
                    }
                    return;
                }
                "*" => {
                    self.globs.push(path);
                    return;
                }
                "as" => {
                    let name = tokens.get(at + 1).copied().unwrap_or_default();
                    self.uses.insert(name.to_owned(), path);
                    return;
                }
                "self" if !prefix.is_empty() => {}
                word => path.push(word.to_owned()),
            }
            at += 1;
        }
        if let Some(name) = path.last().cloned() {
            self.uses.insert(name, path);
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Number of tokens of the path that `tokens` begin with, such as `a::b::c`.
fn path_length(tokens: &[&str]) -> usize {
    let mut length = 1;
    while tokens.get(length) == Some(&"::") && tokens.get(length + 1).is_some_and(|token| is_word(token)) {
        length += 2;
    }
    length
}

/// The branches of a `use` group, up to the group's closing brace.
fn branches<'a, 'b>(tokens: &'a [&'b str]) -> Vec<&'a [&'b str]> {
    let mut branches = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" if depth == 0 => {
                branches.push(&tokens[start..index]);
                break;
            }
            "}" => depth -= 1,
            "," if depth == 0 => {
                branches.push(&tokens[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    branches.retain(|branch| !branch.is_empty());
    branches
}
