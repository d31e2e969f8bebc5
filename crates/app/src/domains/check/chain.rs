//! Follows the aliases (CNAME) of a name.

use super::answers::{Answer, AnswersView, NotAskedYet};
use super::record::RecordType;

/// Longest chain of aliases that is followed.
const ALIASES_MAX: usize = 8;

/// Where the aliases of a name lead.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chain {
    /// The names that the aliases lead to; empty if the name is not an alias. The last of these names is not an alias.
    Ends(Vec<String>),
    /// The aliases form a loop, or there are too many. Contains the names that were followed.
    Loop(Vec<String>),
    /// A question along the chain had no answer. Contains the names up to that question, and the reason.
    Failed(Vec<String>, String),
}

pub(super) fn follow_aliases(view: &AnswersView<'_>, name: &str) -> Result<Chain, NotAskedYet> {
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
            return Ok(Chain::Loop(targets));
        }
        current = target;
    }
}
