//! The rule file: every rule has samples that it matches and no earlier rule does, and errors in a file are reported.

use postroad_mail::classify::{Reply, RuleProblem, RuleTable, built_in};
use postroad_model::BounceClass;

#[test]
fn every_sample_matches_its_own_rule_first() {
    let mut wrong = Vec::new();
    for rule in built_in().rules() {
        for sample in rule.samples() {
            match Reply::parse(sample) {
                Ok(reply) => {
                    let phases = rule.phases().iter().copied().map(Some);
                    let phases = phases.chain(rule.phases().is_empty().then_some(None));
                    for fired in phases.map(|phase| built_in().judge(&reply, phase).rule) {
                        if fired != rule.name() {
                            wrong.push(format!("{}: {fired} took {sample:?}", rule.name()));
                        }
                    }
                }
                Err(problem) => wrong.push(format!("{}: {sample:?}: {problem}", rule.name())),
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_class_has_a_rule_and_a_meaning() {
    for class in BounceClass::ALL {
        assert!(built_in().rules().iter().any(|rule| rule.class() == *class), "{class}");
        assert!(!built_in().meaning(*class).is_empty(), "{class}");
    }
}

/// The smallest valid file, with these rules before its fallbacks.
fn file(rules: &str) -> String {
    let classes = BounceClass::ALL.iter().map(|class| {
        format!("[class.{class}]\nmeans = \"m\"\npermanent = true\nhard = false\nthrottle = false\n")
    });
    let fallbacks = ["4xx", "5xx"].map(|codes| {
        format!("[[rule]]\nname = \"{codes}\"\nclass = \"other\"\ncodes = [\"{codes}\"]\nsamples = [\"s\"]\n")
    });
    classes.collect::<String>() + rules + &fallbacks.concat()
}

fn rule(more: &str) -> String {
    file(&format!("[[rule]]\nname = \"new\"\nclass = \"full\"\n{more}\n"))
}

#[track_caller]
fn check_problem(file: &str, expected: &str) {
    let problem = RuleTable::parse(file).expect_err("a problem").to_string();
    assert!(problem.contains(expected), "{problem}");
}

#[test]
fn mistakes_in_a_file_are_named() {
    assert!(RuleTable::parse(&file("")).is_ok());
    check_problem(&rule("samples = []"), "rule new has no sample");
    check_problem(
        &rule("any = [\"User unknown\"]\nsamples = [\"s\"]"),
        "`User unknown` would never be found",
    );
    check_problem(&rule("codes = [\"5y0\"]\nsamples = [\"s\"]"), "rule new: `5y0`");
    check_problem(&rule("enhanced = [\"5.1\"]\nsamples = [\"s\"]"), "rule new: `5.1`");
    check_problem(&rule("phrase = [\"a\"]\nsamples = [\"s\"]"), "unknown field `phrase`");
    check_problem(&file("").replace("\"5xx\"", "\"55x\""), "no rule matches every 5xx reply");
    check_problem(&file("").replace("name = \"5xx\"", "name = \"4xx\""), "two rules are called 4xx");
    check_problem(&file("").replace("[class.dns]", "[class.full]"), "duplicate key");
    let without_dns = file("").replacen(
        "[class.dns]\nmeans = \"m\"\npermanent = true\nhard = false\nthrottle = false\n",
        "",
        1,
    );
    assert!(matches!(RuleTable::parse(&without_dns), Err(RuleProblem::ClassMissing(BounceClass::Dns))));
}
