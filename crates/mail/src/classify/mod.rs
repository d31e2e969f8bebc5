//! Classification of SMTP refusals: bounce class, whether the message is given up, whether the address is dead, and
//! whether to send more slowly to the destination.
//!
//! The rules are data, `rules/replies.toml`, each with sample replies as proof; this module only evaluates them.

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
    /// The address itself is dead and will be suppressed. Only together with `permanent`.
    pub hard: bool,
    /// Like `hard`, if RCPT TO was refused: some texts prove that an address is dead only as replies to that command.
    pub hard_at_rcpt: bool,
    /// Send more slowly to the destination.
    pub throttle: bool,
    /// Effect on pacing; also set for some refusals without `throttle`.
    pub signal: Option<Signal>,
    /// A code alone decided, or words that say little. A caller with more evidence than the reply should use that
    /// evidence too.
    pub vague: bool,
    /// The text means the same whatever command was refused: content filters do not use it as a pretext.
    pub sure: bool,
    /// Name of the rule that decided.
    pub rule: &'r str,
}

/// Classifies a refusal by the built-in rules.
pub fn classify(reply: &Reply) -> Verdict<'static> {
    built_in().judge(reply, None)
}

/// Like `classify`, for the refusal of a command of this phase.
pub fn classify_in(phase: Phase, reply: &Reply) -> Verdict<'static> {
    built_in().judge(reply, Some(phase)).for_phase(phase, reply.enhanced())
}

/// The rules of `rules/replies.toml`, which is compiled into the program; parsed at the first use.
pub fn built_in() -> &'static RuleTable {
    static TABLE: LazyLock<RuleTable> = LazyLock::new(|| {
        RuleTable::parse(include_str!("../../rules/replies.toml"))
            .expect("the built-in rules are good: a test reads the same text")
    });
    &TABLE
}
