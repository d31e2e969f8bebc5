//! The format of `rules/replies.toml`, and all possible errors in it.

use std::collections::BTreeMap;

use postroad_model::BounceClass;
use serde::Deserialize;

use super::{Phase, Signal};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RulesFile {
    /// Defaults of each class; a rule may override them.
    pub(super) class: BTreeMap<BounceClass, ClassEntry>,
    /// The rules in order; the first that matches decides.
    pub(super) rule: Vec<RuleEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassEntry {
    /// The class in half a sentence, for people.
    pub(super) means: String,
    /// Whether 5xx replies of this class are permanent; 4xx replies never are.
    pub(super) permanent: bool,
    pub(super) hard: bool,
    pub(super) throttle: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleEntry {
    pub(super) name: String,
    pub(super) class: BounceClass,
    /// The basic code must be one of these.
    #[serde(default)]
    pub(super) codes: Vec<String>,
    /// The enhanced code must be one of these.
    #[serde(default)]
    pub(super) enhanced: Vec<String>,
    /// The refused command must belong to one of these phases; an unknown command belongs to none.
    #[serde(default)]
    pub(super) phases: Vec<Phase>,
    /// The text must contain one of these phrases.
    #[serde(default)]
    pub(super) any: Vec<String>,
    /// The text must also contain one of these phrases.
    #[serde(default)]
    pub(super) with: Vec<String>,
    /// The text must contain all of these phrases.
    #[serde(default)]
    pub(super) all: Vec<String>,
    /// The text must contain none of these phrases.
    #[serde(default)]
    pub(super) none: Vec<String>,
    pub(super) permanent: Option<bool>,
    pub(super) hard: Option<bool>,
    pub(super) throttle: Option<bool>,
    /// Overrides the signal of the class.
    pub(super) signal: Option<Signal>,
    /// If not empty: refusals are hard only with one of these enhanced codes. A refusal of RCPT TO is also hard
    /// without one of them, unless its enhanced code is x.7.x.
    #[serde(default)]
    pub(super) proof: Vec<String>,
    /// Whether a code alone decides, or words that say little.
    #[serde(default)]
    pub(super) vague: bool,
    /// Whether the text means the same whatever command was refused.
    #[serde(default)]
    pub(super) sure: bool,
    pub(super) samples: Vec<String>,
}

impl RuleEntry {
    /// Whether the rule matches every reply with these codes.
    pub(super) fn is_fallback_for(&self, codes: &str) -> bool {
        let phrases = [&self.any, &self.with, &self.all, &self.none];
        let is_bare =
            self.enhanced.is_empty() && self.phases.is_empty() && phrases.iter().all(|list| list.is_empty());
        is_bare && self.codes.iter().any(|code| code == codes)
    }
}

/// Mistake in a rule file.
#[derive(Debug, thiserror::Error)]
pub enum RuleProblem {
    #[error("not a valid rule file: {0}")]
    Malformed(#[from] toml::de::Error),
    #[error("[class.{0}] is missing")]
    ClassMissing(BounceClass),
    #[error("two rules are called {0}")]
    NameTwice(String),
    #[error("rule {rule}: `{code}` is not a pattern of codes; use 550, 5xx, 5.1.1, x.7.x or 5.7.606-649")]
    Code { rule: String, code: String },
    #[error(
        "rule {rule}: `{phrase}` would never be found; use lower case and single spaces, and `@` for an address"
    )]
    Phrase { rule: String, phrase: String },
    #[error("rule {0} has no sample")]
    NoSample(String),
    #[error("no rule matches every {0} reply; add a fallback at the end")]
    NoFallback(&'static str),
    #[error("the phrases do not fit into one automaton: {0}")]
    Phrases(#[from] aho_corasick::BuildError),
}
