//! Problems of a configuration: place, key, cause and fix.

use std::fmt;
use std::path::PathBuf;

use super::keys::{KEYS, Key};

/// Where a value comes from; printed in front of each problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueOrigin {
    Default,
    File { path: PathBuf, line: usize },
    Variable(String),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            // Line 0 means the whole file.
            Self::File { path, line: 0 } => write!(f, "{}", path.display()),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) origin: ValueOrigin,
    /// Text with the key, the cause and the fix.
    pub(crate) text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.text)
    }
}

/// All problems found in a configuration; at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct ConfigError {
    pub(crate) problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used:")?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

/// A probable mistake with which the configuration can still be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Warning {
    /// A `POSTROAD_*` variable that is not a setting. It may belong to the user, such as an API key.
    UnknownVariable { variable: String, nearest: Option<String> },
    /// A value that makes parts of the service useless.
    Advice(Problem),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownVariable { variable, nearest } => {
                write!(f, "environment variable {variable} is not a setting and is ignored")?;
                nearest.as_ref().map_or(Ok(()), |nearest| write!(f, "; did you mean {nearest}?"))
            }
            Self::Advice(problem) => problem.fmt(f),
        }
    }
}

/// Known key most similar to `path`: by its whole name, or by its last part for a key in the wrong section.
pub(super) fn find_nearest_key(path: &str) -> Option<&'static Key> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let distance = |key: &Key| {
        let whole = strsim::damerau_levenshtein(path, key.path);
        whole.min(strsim::damerau_levenshtein(&last(path), &last(key.path)) + 1)
    };
    let nearest = KEYS.iter().min_by_key(|key| distance(key))?;
    (distance(nearest) <= 1 + last(path).len() / 4).then_some(nearest)
}

/// Known variable most similar to `variable`. Stricter than `find_nearest_key`: at most two letters differ, or the
/// section is missing.
pub(super) fn find_nearest_variable(variable: &str) -> Option<String> {
    // `POSTROAD_LISTEN` becomes `_LISTEN`.
    let suffix = variable.replacen("POSTROAD", "", 1);
    let distance = |known: &String| {
        if known.ends_with(&suffix) { 1 } else { strsim::damerau_levenshtein(variable, known) }
    };
    KEYS.iter().map(Key::variable).min_by_key(distance).filter(|nearest| distance(nearest) <= 2)
}
