//! Classification of SMTP refusals: bounce class, whether the message is given up, whether the address is dead, and
//! whether to send more slowly to the destination.
//!
//! The knowledge is data, `rules/replies.toml`, each rule with the replies that prove it; here is only the machinery.

mod code_number;
mod pattern;
mod phase;
mod phrases;
mod reply;
mod rules;
mod rules_file;
mod signal;

use std::sync::LazyLock;

use postroad_model::BounceClass;

pub use phase::Phase;
pub use reply::{EnhancedCode, Reply, ReplyProblem};
pub use rules::{Rule, RuleTable};
pub use rules_file::RuleProblem;
pub use signal::Signal;

/// Meaning of one refusal for the message, its recipient and its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict<'r> {
    pub class: BounceClass,
    /// The message is given up; otherwise it is tried again. Never with a 4xx reply.
    pub permanent: bool,
    /// The address itself is dead: it goes on the suppression list. Only together with `permanent`.
    pub hard: bool,
    /// As `hard`, if the reply answered RCPT: some words are too weak to kill an address unless it was that command
    /// which they refused.
    pub hard_at_rcpt: bool,
    /// The destination is to be sent to more slowly.
    pub throttle: bool,
    /// What pacing makes of it; also for some refusals that do not slow the destination down.
    pub signal: Option<Signal>,
    /// Only a family of codes or a bare code decided: whoever has more to go by than the reply looks there too.
    pub vague: bool,
    /// The words mean what they say whatever command they answered: no filter hides behind them.
    pub sure: bool,
    /// Name of the rule that decided.
    pub rule: &'r str,
}

/// Judges a refusal by the rules that are built in.
pub fn classify(reply: &Reply) -> Verdict<'static> {
    built_in().judge(reply, None)
}

/// As `classify`, of a refusal that answered a command of this phase.
pub fn classify_in(phase: Phase, reply: &Reply) -> Verdict<'static> {
    built_in().judge(reply, Some(phase)).in_answer_to(phase, reply.enhanced())
}

/// The rules of `rules/replies.toml`: constant, read once, as the text in the program.
pub fn built_in() -> &'static RuleTable {
    static TABLE: LazyLock<RuleTable> = LazyLock::new(|| {
        RuleTable::parse(include_str!("../../rules/replies.toml"))
            .expect("the built-in rules are good: a test reads the same text")
    });
    &TABLE
}
