//! Parameters of suppressions/add and suppressions/remove: one object, or `items` with up to 1,000 objects.

use std::borrow::Cow;

use postroad_app::FieldProblem;

use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Maximum number of items in one call.
const ITEMS_MAX: usize = 1_000;
const ITEMS: &str = "items";

/// The items of a request: one object, or the objects of `items`.
#[derive(Debug)]
pub(crate) enum OneOrMany<T> {
    One(T),
    /// Each item, or its problems if a field is missing or has the wrong type.
    Many(Vec<Result<T, Vec<FieldProblem>>>),
}

/// Reads a request whose objects are parsed by `read_item`. Problems of one item stay with that item. All other problems go
/// into `findings`, and then the call must do nothing.
pub(crate) fn read<T>(
    text: &[u8],
    findings: &mut Findings,
    read_item: impl Fn(&mut Fields<'_>, &mut Findings) -> T,
) -> Result<OneOrMany<T>, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let is_many = fields.has(ITEMS);
    let items = fields.array(ITEMS, ITEMS_MAX, findings);
    if !is_many {
        let one = read_item(&mut fields, findings);
        fields.finish(findings);
        return Ok(OneOrMany::One(one));
    }
    let items = items.unwrap_or_default();
    if findings.problems.is_empty() && !(1..=ITEMS_MAX).contains(&items.len()) {
        findings.problem("/items", format!("`items` should have from 1 to {ITEMS_MAX} objects"));
        return Ok(OneOrMany::Many(Vec::new()));
    }
    let mut many = Vec::with_capacity(items.len());
    for (pointer, item) in items {
        let mut own_findings = Findings::default();
        let request = Fields::of_object(pointer, item, &mut own_findings).map(|mut item_fields| {
            let request = read_item(&mut item_fields, &mut own_findings);
            item_fields.finish(&mut own_findings);
            request
        });
        findings.add_warnings(&mut own_findings);
        let Findings { problems, read_fields, .. } = own_findings;
        findings.read_fields.extend(read_fields);
        many.push(request.filter(|_| problems.is_empty()).ok_or(problems));
    }
    fields.finish(findings);
    Ok(OneOrMany::Many(many))
}

/// Takes `address` out of an object; records a problem if it is missing.
pub(crate) fn read_address(fields: &mut Fields<'_>, findings: &mut Findings) -> String {
    let problems_before = findings.problems.len();
    let address = fields.text("address", findings);
    if address.is_none() && findings.problems.len() == problems_before {
        let pointer = fields.pointer("address");
        let message = format!("`{}` parameter is required but is missing", pointer.trim_start_matches('/'));
        findings.problem(pointer, message);
    }
    address.map(Cow::into_owned).unwrap_or_default()
}

/// Prefixes the problems of an item with its pointer in the request.
pub(crate) fn with_item_pointers(index: usize, problems: Vec<FieldProblem>) -> Vec<FieldProblem> {
    let with_pointer = |problem: FieldProblem| {
        FieldProblem::new(format!("/{ITEMS}/{index}{}", problem.pointer), problem.message)
    };
    problems.into_iter().map(with_pointer).collect()
}
