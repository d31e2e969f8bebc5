//! The compiled rules: codes as patterns, phrases as ids, defaults of the class filled in.

use std::collections::HashSet;

use postroad_model::BounceClass;

use super::pattern::{CodePattern, EnhancedPattern};
use super::phrases::{FoundPhrases, PhraseFinder, PhraseId, PhraseList};
use super::rules_file::{ClassEntry, RuleEntry, RuleProblem, RulesFile};
use super::{Phase, Reply, Signal, Verdict};

/// An ordered list of rules; the first that matches decides.
#[derive(Debug)]
pub struct RuleTable {
    rules: Vec<Rule>,
    phrases: PhraseFinder,
    meanings: Vec<(BounceClass, String)>,
}

/// One rule. `RuleEntry` documents the fields.
#[derive(Debug)]
pub struct Rule {
    name: String,
    class: BounceClass,
    codes: Vec<CodePattern>,
    enhanced: Vec<EnhancedPattern>,
    phases: Vec<Phase>,
    any: Vec<PhraseId>,
    with: Vec<PhraseId>,
    all: Vec<PhraseId>,
    none: Vec<PhraseId>,
    permanent: bool,
    hard: bool,
    proof: Vec<EnhancedPattern>,
    throttle: bool,
    signal: Option<Signal>,
    vague: bool,
    sure: bool,
    samples: Vec<String>,
}

impl RuleTable {
    pub fn parse(toml: &str) -> Result<Self, RuleProblem> {
        let file: RulesFile = toml::from_str(toml)?;
        if let Some(class) = BounceClass::ALL.iter().find(|class| !file.class.contains_key(class)) {
            return Err(RuleProblem::ClassMissing(*class));
        }
        for codes in ["4xx", "5xx"] {
            if !file.rule.iter().any(|rule| rule.is_fallback_for(codes)) {
                return Err(RuleProblem::NoFallback(codes));
            }
        }
        let mut names = HashSet::new();
        if let Some(second) = file.rule.iter().find(|rule| !names.insert(rule.name.as_str())) {
            return Err(RuleProblem::NameTwice(second.name.clone()));
        }
        let mut phrases = PhraseList::default();
        let compile = |entry: RuleEntry| {
            let class = &file.class[&entry.class];
            Rule::compile(entry, class, &mut phrases)
        };
        let rules = file.rule.into_iter().map(compile).collect::<Result<_, _>>()?;
        let meanings = file.class.into_iter().map(|(class, entry)| (class, entry.means)).collect();
        Ok(Self { rules, phrases: phrases.build()?, meanings })
    }

    /// Classifies a reply by its codes and text, and by the refused command if that is known.
    pub fn judge(&self, reply: &Reply, phase: Option<Phase>) -> Verdict<'_> {
        let found = self.phrases.find_in(reply.text());
        let rule = self.rules.iter().find(|rule| rule.matches(reply, phase, &found));
        rule.expect("every refusal has a fallback rule: checked when the table was read").verdict(reply)
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// A class as half a sentence, for people.
    pub fn meaning(&self, class: BounceClass) -> &str {
        self.meanings.iter().find(|(other, _)| *other == class).map_or("", |(_, meaning)| meaning)
    }
}

impl Rule {
    fn compile(entry: RuleEntry, class: &ClassEntry, phrases: &mut PhraseList) -> Result<Self, RuleProblem> {
        let RuleEntry { name, samples, .. } = entry;
        if samples.is_empty() {
            return Err(RuleProblem::NoSample(name));
        }
        let bad_code = |code: &str| RuleProblem::Code { rule: name.clone(), code: code.to_owned() };
        let codes = entry.codes.iter().map(|code| CodePattern::parse(code).ok_or_else(|| bad_code(code)));
        let patterns = |codes: &[String]| {
            let parse = |code: &String| EnhancedPattern::parse(code).ok_or_else(|| bad_code(code));
            codes.iter().map(parse).collect::<Result<Vec<_>, _>>()
        };
        let (enhanced, proof) = (patterns(&entry.enhanced)?, patterns(&entry.proof)?);
        let mut phrase_ids = |list: Vec<String>| {
            let add = |phrase: String| {
                phrases.add(&phrase).ok_or_else(|| RuleProblem::Phrase { rule: name.clone(), phrase })
            };
            list.into_iter().map(add).collect::<Result<Vec<_>, _>>()
        };
        let throttle = entry.throttle.unwrap_or(class.throttle);
        let class_signal = throttle.then(|| Signal::of_class(entry.class));
        Ok(Self {
            class: entry.class,
            codes: codes.collect::<Result<_, _>>()?,
            enhanced,
            phases: entry.phases,
            any: phrase_ids(entry.any)?,
            with: phrase_ids(entry.with)?,
            all: phrase_ids(entry.all)?,
            none: phrase_ids(entry.none)?,
            permanent: entry.permanent.unwrap_or(class.permanent),
            hard: entry.hard.unwrap_or(class.hard),
            proof,
            throttle,
            signal: entry.signal.or(class_signal),
            vague: entry.vague,
            sure: entry.sure,
            samples,
            name,
        })
    }

    /// Whether every kind of condition holds; a kind without entries always holds.
    fn matches(&self, reply: &Reply, phase: Option<Phase>, found: &FoundPhrases) -> bool {
        let has = |phrase: &PhraseId| found.has(*phrase);
        let is_code = |pattern: &CodePattern| pattern.matches(reply.code());
        (self.codes.is_empty() || self.codes.iter().any(is_code))
            && (self.enhanced.is_empty() || has_code(&self.enhanced, reply))
            && (self.phases.is_empty() || phase.is_some_and(|phase| self.phases.contains(&phase)))
            && (self.any.is_empty() || self.any.iter().any(has))
            && (self.with.is_empty() || self.with.iter().any(has))
            && self.all.iter().all(has)
            && !self.none.iter().any(has)
    }

    /// The basic code decides on permanence: under RFC 5321 section 4.2.1 no 4xx is final. If the enhanced code
    /// disagrees with the basic one (`550 4.4.7`), the enhanced code is usually wrong.
    fn verdict(&self, reply: &Reply) -> Verdict<'_> {
        let permanent = self.permanent && reply.code() >= 500;
        let can_be_hard = self.hard && permanent;
        let is_proven = self.proof.is_empty() || has_code(&self.proof, reply);
        // A policy code (x.7.x) contradicts a text that needs proof, even at RCPT.
        let is_policy = reply.enhanced().is_some_and(|code| code.subject == 7);
        Verdict {
            class: self.class,
            permanent,
            hard: can_be_hard && is_proven,
            hard_at_rcpt: can_be_hard && (is_proven || !is_policy),
            throttle: self.throttle,
            signal: self.signal,
            vague: self.vague,
            sure: self.sure,
            rule: &self.name,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn class(&self) -> BounceClass {
        self.class
    }

    /// The refused command must belong to one of these phases. If empty, any command matches, even an unknown one.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Replies for which this rule is the first that matches, in each of its phases.
    pub fn samples(&self) -> &[String] {
        &self.samples
    }
}

fn has_code(patterns: &[EnhancedPattern], reply: &Reply) -> bool {
    reply.enhanced().is_some_and(|code| patterns.iter().any(|pattern| pattern.matches(code)))
}
