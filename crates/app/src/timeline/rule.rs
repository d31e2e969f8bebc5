//! Finds the rule that classified a refusal.

use postroad_mail::ReplyPhase;
use postroad_mail::classify::{Reply, classify, classify_in};

/// Name of the rule for a reply such as `550 5.1.1 User unknown`. The refused command is not recorded, so this is the
/// first rule that yields the recorded class. `None` if the text is not a reply, or if no rule yields the class, for
/// example because the rules have changed since.
pub fn refusal_rule(reply: &str, class: &str) -> Option<&'static str> {
    let reply = Reply::parse(reply).ok()?;
    let phases = [ReplyPhase::Recipient, ReplyPhase::Data, ReplyPhase::MailFrom, ReplyPhase::Greeting];
    let mut verdicts =
        std::iter::once(classify(&reply)).chain(phases.map(|phase| classify_in(phase, &reply)));
    verdicts.find(|verdict| verdict.class.as_str() == class).map(|verdict| verdict.rule)
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
