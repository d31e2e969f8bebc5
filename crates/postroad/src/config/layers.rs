//! Collects values by key: defaults first, then the file, then the environment; the later layer wins.

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::keys::{KEYS, RESERVED_VARIABLES, default_toml};
use super::problem::{Problem, ValueOrigin, Warning, find_nearest_key, find_nearest_variable};
use super::raw_value::RawValue;

/// Values after all layers, and the problems found.
#[derive(Debug, Default)]
pub(super) struct Layers {
    values: BTreeMap<&'static str, (ValueOrigin, RawValue)>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Warning>,
}

impl Layers {
    pub(super) fn of_defaults() -> Self {
        let mut layers = Self::default();
        layers.add_document(&default_toml(), |_| ValueOrigin::Default);
        layers
    }

    pub(super) fn add_file(&mut self, path: &Path) {
        let origin = |line| ValueOrigin::File { path: path.to_owned(), line };
        match std::fs::read_to_string(path) {
            Ok(text) => self.add_document(&text, origin),
            Err(error) => self.problems.push(Problem {
                origin: origin(0),
                text: format!(
                    "the file cannot be read: {error}; `postroad config default > {}` writes one",
                    path.display()
                ),
            }),
        }
    }

    /// Adds the values of a TOML text; `origin` turns a line number into a value's origin.
    fn add_document(&mut self, text: &str, origin: impl Fn(usize) -> ValueOrigin) {
        let origin_at = |at: usize| origin(1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count());
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let at = error.span().map_or(0, |span| span.start);
            let text = format!("the file is not valid TOML: {}", error.message());
            self.problems.push(Problem { origin: origin_at(at), text });
        }
        // A document with errors is not examined further: its recovered values would only repeat the same error in
        // other words.
        if errors.is_empty() {
            self.add_table("", document.get_ref(), &origin_at);
        }
    }

    fn add_table(&mut self, prefix: &str, table: &DeTable<'_>, origin_at: &impl Fn(usize) -> ValueOrigin) {
        for (name, value) in table {
            let path = format!("{prefix}{}", name.get_ref());
            let origin = origin_at(name.span().start);
            let section = format!("{path}.");
            let is_section = KEYS.iter().any(|key| key.path.starts_with(&section));
            match (KEYS.iter().find(|key| key.path == path), value.get_ref()) {
                (Some(key), value) => {
                    self.values.insert(key.path, (origin, RawValue::of_toml(value)));
                }
                (None, DeValue::Table(inner)) if is_section => self.add_table(&section, inner, origin_at),
                (None, _) if is_section => {
                    let text =
                        format!("`{path}` is a section, not a key; write [{path}] and its keys below it");
                    self.problems.push(Problem { origin, text });
                }
                // Report the keys inside, which the user will search for.
                (None, DeValue::Table(inner)) if !inner.is_empty() => {
                    self.add_table(&section, inner, origin_at);
                }
                (None, _) => {
                    let hint = find_nearest_key(&path)
                        .map_or("`postroad config default` shows all keys".to_owned(), |key| {
                            format!("did you mean `{}`?", key.path)
                        });
                    self.problems.push(Problem { origin, text: format!("unknown key `{path}`: {hint}") });
                }
            }
        }
    }

    pub(super) fn add_environment(&mut self, variables: impl Iterator<Item = (String, String)>) {
        for (variable, value) in variables {
            if !variable.starts_with("POSTROAD_") || RESERVED_VARIABLES.contains(&variable.as_str()) {
                continue;
            }
            if let Some(key) = KEYS.iter().find(|key| key.variable() == variable) {
                self.values.insert(key.path, (ValueOrigin::Variable(variable), RawValue::Variable(value)));
            } else {
                let nearest = find_nearest_variable(&variable);
                self.warnings.push(Warning::UnknownVariable { variable, nearest });
            }
        }
    }

    /// Value of a key of `KEYS`, and its origin.
    pub(super) fn value(&self, path: &str) -> &(ValueOrigin, RawValue) {
        self.values.get(path).expect("the default file holds every key")
    }

    /// Records a problem at the place that set `path`.
    pub(super) fn add_problem(&mut self, path: &str, text: &str) {
        let origin = self.value(path).0.clone();
        self.problems.push(Problem { origin, text: format!("`{path}`: {text}") });
    }

    /// Records a warning at the place that set `path`.
    pub(super) fn add_warning(&mut self, path: &str, text: &str) {
        let origin = self.value(path).0.clone();
        self.warnings.push(Warning::Advice(Problem { origin, text: format!("`{path}`: {text}") }));
    }
}
