//! Names the variable that is missing in a model, and the most similar existing name.

use std::collections::HashSet;
use std::error::Error as _;
use std::fmt;

use serde_json::{Map, Value};

use super::language::{Lookup, Segment, SourcePosition};
use super::text_failure::TextFailure;

/// Maximum number of names compared; a model may have any number of them.
const NAMES_MAX: usize = 500;
/// Longer names are not compared.
const NAME_BYTES_MAX: usize = 100;
/// Maximum number of variables reported for one text.
const ABSENT_MAX: usize = 50;
/// Minimum similarity of two names, from 0 to 1.
const SIMILARITY_MIN: f64 = 0.7;

/// Error of an expression in which a look-up found nothing: the index of the look-up in `lookups`.
#[derive(Debug)]
pub(super) struct MissingLookup(pub(super) usize);

impl fmt::Display for MissingLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "look-up {} found nothing", self.0)
    }
}

impl std::error::Error for MissingLookup {}

/// Names the missing variable of the failed expression, which is in line `line`.
pub(super) fn name_missing_variable<'l>(
    error: &minijinja::Error,
    line: usize,
    lookups: &'l [Lookup],
    model: &Map<String, Value>,
) -> TextFailure {
    let candidates = lookups_of(error, lookups);
    let missing = candidates.iter().find_map(|group| {
        let find_in_group = |find: fn(&Map<String, Value>, &[Segment]) -> Option<MissingName>| {
            group.iter().find_map(|lookup| Some((*lookup, find(model, lookup.path.as_deref()?)?)))
        };
        find_in_group(find_absent).or_else(|| find_in_group(find_null))
    });
    // No path is missing in the model, so the failed look-up is probably part of a value that the template computes.
    let fallback = || {
        let last_computed =
            |group: &Vec<&'l Lookup>| group.iter().rev().find(|lookup| lookup.path.is_none()).copied();
        let first_of_group = |group: &Vec<&'l Lookup>| group.first().copied();
        candidates.iter().find_map(last_computed).or_else(|| candidates.iter().rev().find_map(first_of_group))
    };
    match missing.or_else(|| Some((fallback()?, MissingName { nearest: None }))) {
        Some((lookup, MissingName { nearest })) => TextFailure::VariableMissing {
            variable: shortened(&lookup.text),
            position: lookup.position,
            nearest,
        },
        None => TextFailure::VariableMissing {
            variable: "a variable".to_owned(),
            position: SourcePosition { line, column: 0 },
            nearest: None,
        },
    }
}

/// Required look-ups that may have failed, in groups, most likely first. If the error names the look-up, returns only
/// that look-up. If the error has a range, returns the look-ups inside the range, then all of the same tag, because the
/// range of a failed filter may omit the filtered value. Otherwise returns all look-ups of the error's line, which may
/// have several tags.
pub(super) fn lookups_of<'l>(error: &minijinja::Error, lookups: &'l [Lookup]) -> Vec<Vec<&'l Lookup>> {
    let reported = error.source().and_then(|source| source.downcast_ref::<MissingLookup>());
    if let Some(lookup) = reported.and_then(|MissingLookup(number)| lookups.get(*number)) {
        return vec![vec![lookup]];
    }
    let required = |is_selected: &dyn Fn(&Lookup) -> bool| -> Vec<&'l Lookup> {
        lookups.iter().filter(|lookup| !lookup.is_optional && is_selected(lookup)).collect()
    };
    match error.range() {
        Some(failed) => {
            let tag =
                lookups.iter().map(|lookup| lookup.tag_start).take_while(|tag| *tag <= failed.start).last();
            vec![
                required(&|lookup| lookup.range.start < failed.end && failed.start < lookup.range.end),
                required(&|lookup| Some(lookup.tag_start) == tag),
            ]
        }
        None => vec![required(&|lookup| Some(lookup.tag_line) == error.line())],
    }
}

/// The first variables of a text that a model lacks, each with an error message. Optional variables are omitted.
pub(super) fn all_absent(lookups: &[Lookup], model: &Map<String, Value>) -> Vec<(SourcePosition, String)> {
    let mut seen = HashSet::new();
    let absent = lookups.iter().filter(|lookup| !lookup.is_optional).filter_map(|lookup| {
        let path = lookup.path.as_deref()?;
        let MissingName { nearest } = find_absent(model, path)?;
        let variable = shortened(&lookup.text);
        let hint = nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        let message = format!("the sample model has no variable `{variable}`{hint}");
        seen.insert(variable).then_some((lookup.position, message))
    });
    absent.take(ABSENT_MAX).collect()
}

/// A name that the model lacks, or whose value is `null`.
#[derive(Debug, PartialEq, Eq)]
struct MissingName {
    /// The most similar existing name.
    nearest: Option<String>,
}

/// Finds the first name of the path that the model lacks. `None` if the model has all names of the path; an empty list
/// lacks nothing.
fn find_absent(model: &Map<String, Value>, path: &[Segment]) -> Option<MissingName> {
    let (first, rest) = path.split_first()?;
    let Segment::Name(name) = first else { return None };
    match model.get(name) {
        Some(value) => find_absent_in(value, rest),
        None => Some(MissingName { nearest: nearest(name, model.keys().map(String::as_str)) }),
    }
}

fn find_absent_in(value: &Value, path: &[Segment]) -> Option<MissingName> {
    let (first, rest) = path.split_first()?;
    match (first, value) {
        (Segment::Name(name), Value::Object(map)) => match map.get(name) {
            Some(value) => find_absent_in(value, rest),
            None => Some(MissingName { nearest: nearest(name, map.keys().map(String::as_str)) }),
        },
        (Segment::Entry, Value::Array(entries)) => {
            entries.iter().find_map(|entry| find_absent_in(entry, rest))
        }
        // Only objects have members.
        (Segment::Name(_), _) => Some(MissingName { nearest: None }),
        (Segment::Entry, _) => None,
    }
}

/// `Some` if the path ends at `null`, which counts as missing.
fn find_null(model: &Map<String, Value>, path: &[Segment]) -> Option<MissingName> {
    let (first, rest) = path.split_first()?;
    let Segment::Name(name) = first else { return None };
    let value = model.get(name)?;
    if !rest.is_empty() {
        return find_null_in(value, rest);
    }
    let others = model.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str());
    value.is_null().then(|| MissingName { nearest: nearest(name, others) })
}

fn find_null_in(value: &Value, path: &[Segment]) -> Option<MissingName> {
    match (path, value) {
        ([], value) => value.is_null().then_some(MissingName { nearest: None }),
        ([Segment::Name(_), ..], Value::Object(map)) => find_null(map, path),
        ([Segment::Entry, rest @ ..], Value::Array(entries)) => {
            entries.iter().find_map(|entry| find_null_in(entry, rest))
        }
        _ => None,
    }
}

/// The name in `known` that is most similar to `name`, if any is similar enough.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let similarity = |other: &str| {
        strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase())
            .max(strsim::normalized_damerau_levenshtein(name, other))
    };
    known
        .filter(|other| other.len() <= NAME_BYTES_MAX)
        .take(NAMES_MAX)
        .map(|other| (similarity(other), other))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, other)| other.to_owned())
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(200)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_name_is_reported_with_the_nearest_one() {
        let Value::Object(model) = json!({"user": {"name": "x", "mail": "y"}, "items": [{"price": 1}, {}]})
        else {
            unreachable!()
        };
        let path = |text: &str| -> Vec<Segment> {
            let segment = |part: &str| match part {
                "[]" => Segment::Entry,
                name => Segment::Name(name.to_owned()),
            };
            text.split('.').map(segment).collect()
        };
        let absent = |text: &str| find_absent(&model, &path(text)).map(|absent| absent.nearest);
        assert_eq!(absent("user.name"), None);
        assert_eq!(absent("user.nmae"), Some(Some("name".to_owned())));
        assert_eq!(absent("usr.name"), Some(Some("user".to_owned())));
        assert_eq!(absent("items.[].price"), Some(None), "one entry has no price");
        assert_eq!(absent("something_else"), Some(None));
        let Value::Object(model) = json!({"name": null, "nmae": "x", "rows": [{"n": null}, null]}) else {
            unreachable!()
        };
        let null = |text: &str| find_null(&model, &path(text)).map(|absent| absent.nearest);
        assert_eq!(null("name"), Some(Some("nmae".to_owned())));
        assert_eq!((null("nmae"), null("rows.[].n"), null("rows.[]")), (None, Some(None), Some(None)));
    }
}
