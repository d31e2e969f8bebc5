//! Maps Sisimai's reasons to our bounce classes. Where the two classifications differ in detail, several of our
//! classes are correct.

use postroad_mail::returned::{ReturnedKind, ReturnedRecipient};
use postroad_model::BounceClass as Class;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Classes(&'static [Class]),
    Kind(ReturnedKind),
    /// A success report: nothing may be found for the recipient.
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
            // The recipient's filter refused the message, for any reason.
            "filtered" => &[Class::Policy, Class::SpamBlock, Class::Content],
            // The sender's address was refused.
            "rejected" => &[Class::Policy, Class::Dns, Class::Reputation],
            // Our IP address was refused: blocklists, names, rules.
            "blocked" => &[Class::Reputation, Class::Policy, Class::SpamBlock],
            "badreputation" => &[Class::Reputation],
            // Sisimai's manual: headers, formats and attachments that a policy of the receiver forbids.
            "policyviolation" => &[Class::Policy, Class::Content, Class::Protocol],
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
