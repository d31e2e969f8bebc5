//! Detection of bots by the method and the headers of a request. The rules are data: `rules/agents.toml`, each with a
//! sample.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    rule: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the file, and its test"))]
    name: String,
    /// Whether the agent is a proxy that fetches when a person opens the message.
    #[serde(default)]
    person: bool,
    /// The rule matches if the user agent contains one of these texts, in any letter case.
    #[serde(default)]
    any: Vec<String>,
    /// The rule matches if the user agent equals one of these texts.
    #[serde(default)]
    exact: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "the proof of the rule, for its test"))]
    sample: String,
}

/// Properties of a request that distinguish bots from people.
#[derive(Debug, Clone, Copy)]
pub struct Fetch<'a> {
    /// A HEAD request: no person reads its answer.
    pub is_head: bool,
    /// `Purpose`, `Sec-Purpose`, `X-Purpose` or `X-Moz` announces a prefetch.
    pub is_prefetch: bool,
    pub user_agent: &'a str,
}

#[derive(Debug)]
pub struct Agents {
    rules: Vec<Rule>,
    /// Substrings of all rules, matched in one pass.
    parts: AhoCorasick,
    /// Index in `rules` of the rule of each substring.
    owners: Vec<usize>,
}

impl Agents {
    pub fn built_in() -> Self {
        let file: RulesFile =
            toml::from_str(include_str!("../../rules/agents.toml")).expect("a test parses the file");
        let mut owners = Vec::new();
        let mut parts = Vec::new();
        for (number, rule) in file.rule.iter().enumerate() {
            owners.extend(rule.any.iter().map(|_| number));
            parts.extend(rule.any.iter().map(String::as_str));
        }
        let parts = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(&parts)
            .expect("there are few substrings");
        Self { parts, owners, rules: file.rule }
    }

    pub fn is_bot(&self, fetch: &Fetch<'_>) -> bool {
        fetch.is_head || fetch.is_prefetch || self.rule(fetch.user_agent).is_some_and(|rule| !rule.person)
    }

    fn rule(&self, user_agent: &str) -> Option<&Rule> {
        let user_agent = user_agent.trim();
        let by_part =
            self.parts.find_overlapping_iter(user_agent).map(|found| self.owners[found.pattern()]).min();
        let by_whole = self.rules.iter().position(|rule| rule.exact.iter().any(|whole| whole == user_agent));
        let number = by_part.into_iter().chain(by_whole).min()?;
        self.rules.get(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_bot(user_agent: &str) -> bool {
        Agents::built_in().is_bot(&Fetch { is_head: false, is_prefetch: false, user_agent })
    }

    #[test]
    fn every_rule_is_fired_by_its_sample_and_none_is_shadowed() {
        let agents = Agents::built_in();
        for rule in &agents.rules {
            let fired = agents.rule(&rule.sample).unwrap_or_else(|| panic!("{} has a bad sample", rule.name));
            assert_eq!(fired.name, rule.name);
            assert_eq!(is_bot(&rule.sample), !rule.person, "{}", rule.name);
        }
    }

    #[test]
    fn user_agents_of_people_are_not_bots() {
        for user_agent in [
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
            "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Thunderbird/115.6.0",
            "Mozilla/5.0 (Linux; Android 8.1.0; CUBOT_X18_Plus) AppleWebKit/537.36 Chrome/70.0 Mobile Safari/537.36",
            "Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.17126; Pro)",
        ] {
            assert!(!is_bot(user_agent), "{user_agent}");
        }
    }

    #[test]
    fn head_requests_and_prefetches_are_bots() {
        let agents = Agents::built_in();
        let user_agent = "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Firefox/115.0";
        for (is_head, is_prefetch, expected) in
            [(false, false, false), (true, false, true), (false, true, true)]
        {
            assert_eq!(agents.is_bot(&Fetch { is_head, is_prefetch, user_agent }), expected);
        }
    }
}
