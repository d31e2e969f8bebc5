//! Headers that tell receivers who a complaint is about and where to send it: `Feedback-ID` (Google's feedback loop),
//! `CFBL-Address` and `CFBL-Feedback-ID` (RFC 9477). All are signed. If the sender wrote one of them, ours of the same
//! name is omitted.

use aws_lc_rs::hmac;
use postroad_model::{AccountId, ServerId};

use crate::base32;
use crate::header_block::HeaderBlock;

const FEEDBACK_ID: &str = "Feedback-ID";
const CFBL_ADDRESS: &str = "CFBL-Address";
const CFBL_FEEDBACK_ID: &str = "CFBL-Feedback-ID";
/// Separates this use of the secret from others.
const PURPOSE: &[u8] = b"postroad installation id\0";
/// Longer names of campaigns are cut, because Google guarantees nothing about long identifiers.
const CAMPAIGN_BYTES_MAX: usize = 64;

/// The installation in `Feedback-ID`, computed once. Google requires 5 to 15 characters that stay the same.
#[derive(Debug, Clone)]
pub struct InstallationId(String);

impl InstallationId {
    /// Derives the id from the installation's secret, so that all nodes have the same id.
    pub fn of(secret: &[u8; 32]) -> Self {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret));
        context.update(PURPOSE);
        Self(format!("pr{}", base32::encode(&context.sign().as_ref()[..6])))
    }

    /// `Feedback-ID: campaign:server:account:installation`, from narrow to wide as Google reads it. The letters before
    /// the ids distinguish server 3 from account 3: Google would add up equal values of two fields.
    pub fn feedback_id(&self, campaign: Option<&str>, server: ServerId, account: AccountId) -> String {
        format!("{FEEDBACK_ID}: {}\r\n", self.identifiers(campaign, server, account))
    }

    /// `CFBL-Feedback-ID` with the identifiers of `feedback_id`, for receivers that report to `cfbl_address` (RFC 9477
    /// 5.2).
    pub fn cfbl_feedback_id(&self, campaign: Option<&str>, server: ServerId, account: AccountId) -> String {
        format!("{CFBL_FEEDBACK_ID}: {}\r\n", self.identifiers(campaign, server, account))
    }

    fn identifiers(&self, campaign: Option<&str>, server: ServerId, account: AccountId) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let campaign = campaign.unwrap_or_default().chars().map(|c| if is_plain(c) { c } else { '_' });
        let campaign: String = campaign.take(CAMPAIGN_BYTES_MAX).collect();
        format!("{campaign}:s{server}:a{account}:{}", self.0)
    }
}

/// `CFBL-Address` (RFC 9477 5.1). The domain of the address must sign the message, or be a subdomain of a From domain
/// that does (RFC 9477 3.1).
pub fn cfbl_address(address: &str) -> String {
    format!("{CFBL_ADDRESS}: {address}; report=arf\r\n")
}

/// Which feedback headers the sender wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderFeedbackHeaders {
    pub feedback_id: bool,
    pub cfbl_address: bool,
    pub cfbl_feedback_id: bool,
}

impl SenderFeedbackHeaders {
    pub fn of(message: &[u8]) -> Self {
        let mut headers = Self::default();
        for field in HeaderBlock::new(message) {
            headers.feedback_id |= field.is(FEEDBACK_ID);
            headers.cfbl_address |= field.is(CFBL_ADDRESS);
            headers.cfbl_feedback_id |= field.is(CFBL_FEEDBACK_ID);
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_separate_whatever_the_campaign() {
        let id = InstallationId::of(&[7; 32]);
        let feedback_id = |campaign| id.feedback_id(campaign, ServerId(12), AccountId(3));
        assert!((5..=15).contains(&id.0.len()), "{id:?}");
        assert_eq!(feedback_id(Some("welcome")), format!("Feedback-ID: welcome:s12:a3:{}\r\n", id.0));
        assert_eq!(feedback_id(Some("a:b c\r\né")), format!("Feedback-ID: a_b_c___:s12:a3:{}\r\n", id.0));
        assert_eq!(feedback_id(None), format!("Feedback-ID: :s12:a3:{}\r\n", id.0));
        let cfbl = id.cfbl_feedback_id(Some("welcome"), ServerId(12), AccountId(3));
        assert_eq!(cfbl, format!("CFBL-Feedback-ID: welcome:s12:a3:{}\r\n", id.0));
        assert!(feedback_id(Some(&"x".repeat(255))).len() < 120);
        assert_ne!(InstallationId::of(&[8; 32]).0, id.0);
    }

    #[test]
    fn the_senders_own_headers_are_seen() {
        let headers = SenderFeedbackHeaders::of(b"feedback-id: a:b:c:sender\r\n\r\nCFBL-Address: x@y\r\n");
        assert_eq!(headers, SenderFeedbackHeaders { feedback_id: true, ..SenderFeedbackHeaders::default() });
        assert!(SenderFeedbackHeaders::of(b"Cfbl-Address: x@y.example; report=arf\r\n").cfbl_address);
    }
}
