//! One object, or `items` with up to a thousand of them: how suppressions/add and suppressions/remove are asked.

use std::borrow::Cow;

use postroad_app::FieldProblem;

use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Items in one call (contract 6).
const ITEMS_MAX: usize = 1_000;
const NAME: &str = "items";

/// What a call asks for.
#[derive(Debug)]
pub(crate) enum Given<T> {
    One(T),
    /// Those with wrong types say so.
    Many(Vec<Result<T, Vec<FieldProblem>>>),
}

/// Reads a request whose objects `read` understands. What is wrong with one of many is its own affair; all else is in
/// `findings`, and then nothing may be done.
pub(crate) fn read<T>(
    text: &[u8],
    findings: &mut Findings,
    read: impl Fn(&mut Fields<'_>, &mut Findings) -> T,
) -> Result<Given<T>, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let is_many = fields.has(NAME);
    let items = fields.array(NAME, ITEMS_MAX, findings);
    if !is_many {
        let one = read(&mut fields, findings);
        fields.finish(findings);
        return Ok(Given::One(one));
    }
    let items = items.unwrap_or_default();
    if findings.problems.is_empty() && !(1..=ITEMS_MAX).contains(&items.len()) {
        findings.problem("/items", format!("`items` should have from 1 to {ITEMS_MAX} objects"));
        return Ok(Given::Many(Vec::new()));
    }
    let mut many = Vec::with_capacity(items.len());
    for (pointer, item) in items {
        let mut own = Findings::default();
        let given = Fields::inside(pointer, item, &mut own).map(|mut inside| {
            let given = read(&mut inside, &mut own);
            inside.finish(&mut own);
            given
        });
        let Findings { problems, warnings, asked, .. } = own;
        findings.add_warnings(warnings);
        findings.asked.extend(asked);
        many.push(given.filter(|_| problems.is_empty()).ok_or(problems));
    }
    fields.finish(findings);
    Ok(Given::Many(many))
}

/// Takes `address` out of an object; one that is missing is noted.
pub(crate) fn read_address(fields: &mut Fields<'_>, findings: &mut Findings) -> String {
    let problems = findings.problems.len();
    let address = fields.text("address", findings);
    if address.is_none() && findings.problems.len() == problems {
        let pointer = fields.pointer("address");
        let message = format!("`{}` parameter is required but is missing", pointer.trim_start_matches('/'));
        findings.problem(pointer, message);
    }
    address.map(Cow::into_owned).unwrap_or_default()
}

/// The problems of an item, with pointers from the request's top.
pub(crate) fn placed(index: usize, problems: Vec<FieldProblem>) -> Vec<FieldProblem> {
    let place = |problem: FieldProblem| {
        FieldProblem::new(format!("/{NAME}/{index}{}", problem.pointer), problem.message)
    };
    problems.into_iter().map(place).collect()
}
