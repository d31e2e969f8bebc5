//! The variables of a template, and a suggested model to try it with.

use serde_json::{Map, Value, json};

use super::compiled::{CompiledTemplate, Model};
use super::engine::CompiledText;
use super::language::{InputKind, Lookup, Segment};
use super::work::CONTENT_VARIABLE;

/// Maximum number of names listed; a template can have any number of them.
const NAMES_MAX: usize = 1_000;
/// Depth limit of a suggested model.
const DEPTH_MAX: usize = 20;

/// Paths of the variables, such as `user.name` and `items[].price`, sorted.
pub(super) fn variable_names(templates: &[&CompiledTemplate]) -> Vec<String> {
    let mut names: Vec<String> = used_paths(templates).map(|(path, _)| path_text(path)).collect();
    names.sort();
    names.dedup();
    names.truncate(NAMES_MAX);
    names
}

/// A value for each variable, guessed from its use.
pub(super) fn suggested_model(templates: &[&CompiledTemplate]) -> Model {
    let mut root = Value::Object(Map::new());
    let mut seen = Vec::new();
    for (path, lookup) in used_paths(templates).take(NAMES_MAX * 4) {
        if path.len() <= DEPTH_MAX {
            seen.push((path, lookup.hint));
        }
    }
    // Deep paths first: a name that is also used as a whole is then already an object.
    seen.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    for (path, hint) in seen {
        insert_sample(&mut root, path, path, hint);
    }
    match root {
        Value::Object(model) => model,
        _ => Model::new(),
    }
}

fn used_paths<'t>(templates: &'t [&CompiledTemplate]) -> impl Iterator<Item = (&'t [Segment], &'t Lookup)> {
    let lookups = templates.iter().flat_map(|template| template.all_texts()).flat_map(CompiledText::lookups);
    let paths = lookups.filter_map(|lookup| lookup.path.as_deref().map(|path| (path, lookup)));
    paths.filter(|(path, _)| !matches!(path, [Segment::Name(name)] if name == CONTENT_VARIABLE))
}

fn path_text(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Name(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Segment::Entry => text.push_str("[]"),
        }
    }
    text
}

fn insert_sample(node: &mut Value, rest: &[Segment], whole: &[Segment], hint: InputKind) {
    let Some((first, rest)) = rest.split_first() else {
        if node.is_null() {
            *node = sample_value(whole, hint);
        }
        return;
    };
    match first {
        Segment::Name(name) => {
            if !node.is_object() {
                *node = json!({});
            }
            if let Value::Object(map) = node {
                insert_sample(map.entry(name.clone()).or_insert(Value::Null), rest, whole, hint);
            }
        }
        Segment::Entry => {
            if !node.is_array() {
                *node = json!([null]);
            }
            if let Some(entry) = node.get_mut(0) {
                insert_sample(entry, rest, whole, hint);
            }
        }
    }
}

fn sample_value(path: &[Segment], hint: InputKind) -> Value {
    match hint {
        InputKind::Number => json!(1),
        InputKind::Date => json!("2026-01-31T12:00:00Z"),
        InputKind::List => json!([]),
        InputKind::Map => json!({}),
        InputKind::Any => {
            let name = path.iter().rev().find_map(|segment| match segment {
                Segment::Name(name) => Some(name.as_str()),
                Segment::Entry => None,
            });
            json!(format!("{}_value", name.unwrap_or("a")))
        }
    }
}
