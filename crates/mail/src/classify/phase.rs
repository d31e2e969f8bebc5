//! The command that was refused: the same text means one thing before the recipient is named, and another after the
//! recipient is accepted.

use postroad_model::BounceClass;
use serde::Deserialize;

use super::{EnhancedCode, Verdict};

/// Parts of an SMTP session in which refusals have different meanings. Rules name them in `phases`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Phase {
    /// No address had been named yet (banner, EHLO, STARTTLS, AUTH): the refusal is about us.
    #[serde(rename = "connect")]
    Greeting,
    /// The refusal is about the sender, or about us.
    #[serde(rename = "mail")]
    MailFrom,
    #[serde(rename = "rcpt")]
    Recipient,
    /// The recipient had been accepted (DATA, the content, the end of the data).
    #[serde(rename = "data")]
    Data,
}

impl Phase {
    pub const ALL: [Self; 4] = [Self::Greeting, Self::MailFrom, Self::Recipient, Self::Data];

    /// The name in rules and in `postroad explain reply --phase`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Greeting => "connect",
            Self::MailFrom => "mail",
            Self::Recipient => "rcpt",
            Self::Data => "data",
        }
    }
}

impl Verdict<'_> {
    /// The verdict on a reply when the phase of the refused command is known. `self` is the verdict of the rule that
    /// matched.
    #[must_use]
    pub fn for_phase(self, phase: Phase, enhanced: Option<EnhancedCode>) -> Self {
        let is_about_recipient =
            matches!(self.class, BounceClass::BadMailbox | BounceClass::BadDomain | BounceClass::Inactive);
        let is_doubtful = match phase {
            // Before RCPT, "does not exist" is about the sender, or about our host.
            Phase::Greeting | Phase::MailFrom => is_about_recipient,
            Phase::Recipient => false,
            // The recipient had been accepted: "user unknown" is a filter's pretext, unless the code confirms it.
            Phase::Data => {
                self.class == BounceClass::BadMailbox
                    && !self.sure
                    && enhanced.is_none_or(|code| code.subject != 1)
            }
        };
        let class = if is_doubtful { BounceClass::Policy } else { self.class };
        let hard = match phase {
            Phase::Greeting | Phase::MailFrom => false,
            Phase::Recipient => self.hard_at_rcpt,
            Phase::Data => self.hard && !is_doubtful,
        };
        let signal = self.signal.map(|signal| signal.for_phase(phase, self.class));
        Self { class, hard, hard_at_rcpt: self.hard_at_rcpt && phase == Phase::Recipient, signal, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Reply, Signal, classify_in};

    #[test]
    fn replies_before_rcpt_are_never_about_the_recipient() {
        for text in
            ["501 5.1.1 no such user", "501 5.1.3 bad address", "550 5.1.2 no such domain", "556 null MX"]
        {
            let reply = Reply::parse(text).unwrap();
            for phase in [Phase::Greeting, Phase::MailFrom] {
                let verdict = classify_in(phase, &reply);
                assert!(!verdict.hard && !verdict.hard_at_rcpt, "{phase:?} {text}: {verdict:?}");
                let is_about_recipient =
                    matches!(verdict.class, BounceClass::BadMailbox | BounceClass::BadDomain);
                assert!(!is_about_recipient, "{phase:?} {text}: {verdict:?}");
            }
        }
    }

    #[test]
    fn a_policy_refusal_before_rcpt_is_about_the_source_address() {
        let signal = |phase, text| classify_in(phase, &Reply::parse(text).unwrap()).signal;
        let policies =
            ["550 5.7.1 Message rejected", "554 Access denied", "550 5.7.1 No spam here", "421 4.7.0 Bye"];
        for text in policies {
            assert_eq!(signal(Phase::Greeting, text), Some(Signal::Reputation), "{text}");
            assert_eq!(signal(Phase::MailFrom, text), Some(Signal::Reputation), "{text}");
            assert!(signal(Phase::Recipient, text) != Some(Signal::Reputation), "{text}");
        }
        assert_eq!(signal(Phase::Greeting, "554 mx.example.com"), Some(Signal::Reputation));
        assert_eq!(signal(Phase::MailFrom, "421 Too many connections"), Some(Signal::TooManyConnections));
        // A refused password is a mistake in our configuration, not a sign of a bad reputation.
        assert_ne!(
            signal(Phase::Greeting, "535 5.7.8 Authentication credentials invalid"),
            Some(Signal::Reputation)
        );
        assert_eq!(signal(Phase::MailFrom, "553 Sender address rejected: not owned by user"), None);
    }

    /// Postfix refuses a client in its reply to RCPT TO, because it delays such refusals until then.
    #[test]
    fn a_refusal_of_the_client_is_about_the_source_address_in_every_phase() {
        for text in [
            "554 5.7.1 <unknown[192.0.2.1]>: Client host rejected: Access denied",
            "550 5.7.1 Connection from 192.0.2.1 not allowed",
            "550 5.7.1 Mail from your IP address is not accepted",
        ] {
            for phase in Phase::ALL {
                let verdict = classify_in(phase, &Reply::parse(text).unwrap());
                assert_eq!(verdict.signal, Some(Signal::Reputation), "{phase:?} {text}: {verdict:?}");
                assert!(!verdict.permanent && !verdict.hard, "{phase:?} {text}: {verdict:?}");
            }
        }
    }

    #[test]
    fn user_unknown_after_data_is_hard_only_with_a_code_that_confirms_it() {
        let verdict = |phase, text| classify_in(phase, &Reply::parse(text).unwrap());
        assert!(verdict(Phase::Recipient, "550 user unknown").hard);
        assert!(!verdict(Phase::Data, "550 user unknown").hard);
        assert!(verdict(Phase::Data, "550 5.1.1 user unknown").hard);
    }
}
