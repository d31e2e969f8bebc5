//! The rule that decided what a refusal means.

use postroad_mail::classify::{Reply, classify};

/// Name of the rule for a reply such as `550 5.1.1 User unknown`. `None` unless it gives the class that was recorded: the
/// rules may have changed since, or the command that was answered made the difference.
pub fn refusal_rule(reply: &str, class: &str) -> Option<&'static str> {
    let verdict = classify(&Reply::parse(reply).ok()?);
    (verdict.class.as_str() == class).then_some(verdict.rule)
}

#[cfg(test)]
mod tests {
    use super::refusal_rule;

    #[test]
    fn a_rule_is_named_only_for_its_own_class() {
        assert!(refusal_rule("550 5.1.1 User unknown", "bad_mailbox").is_some());
        assert_eq!(refusal_rule("550 5.1.1 User unknown", "full"), None);
        assert_eq!(refusal_rule("connection refused", "timeout"), None);
    }
}
