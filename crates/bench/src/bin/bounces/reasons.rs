//! Sisimai's names for reasons in our words. Where theirs covers what we tell apart, or the other way round, several of
//! our classes are right.

use postroad_mail::returned::{ReturnedKind, ReturnedRecipient};
use postroad_model::BounceClass as Class;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Classes(&'static [Class]),
    Kind(ReturnedKind),
    /// A notice of success: no recipient is to be spoken of.
    Nothing,
}

impl Expected {
    pub(super) fn of(reason: &str) -> Option<Self> {
        Some(Self::Classes(match reason {
            "userunknown" | "hasmoved" => &[Class::BadMailbox],
            "hostunknown" | "notaccept" => &[Class::BadDomain],
            "mailboxfull" | "systemfull" => &[Class::Full],
            "suspend" => &[Class::Inactive],
            "expired" => &[Class::Timeout],
            // A filter of the recipient's, under whatever pretext.
            "filtered" => &[Class::Policy, Class::SpamBlock, Class::Content],
            // The sender's address was refused.
            "rejected" => &[Class::Policy, Class::Dns, Class::Reputation],
            // Our address was refused: blocklists, names, rules.
            "blocked" => &[Class::Reputation, Class::Policy, Class::SpamBlock],
            "badreputation" => &[Class::Reputation],
            "policyviolation" => &[Class::Policy, Class::Protocol],
            "securityerror" => &[Class::Policy, Class::AuthFailure],
            "authfailure" | "requireptr" => &[Class::AuthFailure],
            "spamdetected" => &[Class::SpamBlock],
            "virusdetected" | "contenterror" => &[Class::Content],
            "notcompliantrfc" => &[Class::Content, Class::Protocol, Class::Policy],
            "mesgtoobig" | "exceedlimit" => &[Class::TooLarge],
            "toomanyconn" | "speeding" | "ratelimited" => &[Class::RateLimited],
            "norelaying" => &[Class::RelayingDenied],
            "syntaxerror" => &[Class::Protocol],
            "networkerror" => &[Class::Timeout, Class::Dns, Class::Other],
            "systemerror" | "mailererror" | "undefined" | "onhold" => &[Class::Other],
            "feedback" => return Some(Self::Kind(ReturnedKind::Complaint)),
            "vacation" => return Some(Self::Kind(ReturnedKind::AutoReply)),
            "delivered" => return Some(Self::Nothing),
            _ => return None,
        }))
    }

    pub(super) fn is_met_by(&self, found: Option<&ReturnedRecipient>) -> bool {
        match (self, found) {
            (Self::Classes(classes), Some(found)) => {
                found.class.is_some_and(|class| classes.contains(&class))
            }
            (Self::Kind(kind), Some(found)) => found.kind == *kind,
            (Self::Nothing, found) => found.is_none(),
            (_, None) => false,
        }
    }
}
