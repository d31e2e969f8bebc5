//! Where a name leads by its aliases (CNAME).

use super::answers::{Answer, Unasked, View};
use super::record::RecordType;

const ALIASES_MAX: usize = 8;

/// Where a name leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chain {
    /// The aliases on the way, none if the name is none. The last one is no alias.
    Ends(Vec<String>),
    /// Also a chain that is too long.
    Circle(Vec<String>),
    /// A question on the way had no answer.
    Failed(Vec<String>, String),
}

pub(super) fn follow(view: &View<'_>, name: &str) -> Result<Chain, Unasked> {
    let mut targets: Vec<String> = Vec::new();
    let mut current = name;
    loop {
        let answer = view.ask(current, RecordType::Cname)?;
        let target = match answer {
            Answer::Records(_) => answer.names().next(),
            Answer::NoSuchName | Answer::NoData => None,
            Answer::Failed(reason) => return Ok(Chain::Failed(targets, reason.clone())),
        };
        let Some(target) = target else { return Ok(Chain::Ends(targets)) };
        let is_seen = target == name || targets.iter().any(|seen| seen == target);
        targets.push(target.to_owned());
        if is_seen || targets.len() > ALIASES_MAX {
            return Ok(Chain::Circle(targets));
        }
        current = target;
    }
}
