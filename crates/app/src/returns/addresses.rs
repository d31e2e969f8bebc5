//! Addresses that the bounce listener accepts.

use postroad_mail::ReturnPathKey;
use postroad_model::{DomainName, EmailAddress, MessageId, ServerId};

use crate::FeedbackSettings;

/// Reports about domains, at `rp.<hostname>`. The content determines the kind of report.
const REPORT_ADDRESSES: [&str; 2] = ["dmarc-reports", "tls-reports"];
/// Complaints of feedback loops.
const FEEDBACK_ADDRESS: &str = "fbl";
/// Addresses that both people and feedback loops write to (RFC 5321 4.5.1, RFC 2142 4).
const OPERATOR_ADDRESSES: [&str; 2] = ["postmaster", "abuse"];

/// Recipient address of a returned mail, and the message that the mail is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnAddress {
    pub server_id: ServerId,
    pub message_id: MessageId,
    /// The recipient address, spelled as the sender of the returned mail wrote it.
    pub address: String,
}

/// Address that accepts mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Return path of one message.
    ReturnPath(ReturnAddress),
    /// Reports about domains: DMARC aggregates and TLS reports.
    Reports,
    /// Complaints only.
    Feedback { address: String },
    /// Complaints; everything else goes to the operator, if `forward_to` is set.
    Operator { address: String },
}

/// Recognises the addresses of one installation.
#[derive(Debug)]
pub(super) struct Addresses {
    pub(super) key: ReturnPathKey,
    /// The names of the installation and of this node, which are often the same.
    hosts: [DomainName; 2],
    /// Domains of return paths: `rp.<host>`.
    pub(super) return_domains: [String; 2],
    settings: FeedbackSettings,
}

impl Addresses {
    pub(super) fn new(key: ReturnPathKey, hosts: [DomainName; 2], settings: FeedbackSettings) -> Self {
        let return_domains = hosts.each_ref().map(|host| format!("rp.{host}"));
        Self { key, hosts, return_domains, settings }
    }

    /// Names that reports may be about, besides customers' domains.
    pub(super) fn own_names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(DomainName::as_str).chain(self.return_domains.iter().map(String::as_str))
    }

    /// Destination of an address; `None` if the bounce listener accepts no mail for it.
    pub(super) fn recognise(&self, address: &EmailAddress) -> Option<Destination> {
        let local_part = address.local_part();
        let is_named = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(local_part));
        let domain = address.domain().as_str();
        let is_return_domain = self.return_domains.iter().any(|own| own == domain);
        if is_return_domain && is_named(&REPORT_ADDRESSES) {
            return Some(Destination::Reports);
        }
        let is_own = is_return_domain || self.hosts.iter().any(|host| host == address.domain());
        // `rp.` may begin a customer's own domain for bounces. The MAC proves that we issued the address, or that the
        // complaint is about our message. Whether the domain still points to this installation does not matter: the
        // mail may have been sent earlier.
        let begins_with_rp = domain.starts_with("rp.");
        let is_configured =
            self.settings.addresses.iter().any(|known| known.mailbox_key() == address.mailbox_key());
        if (is_own || is_configured) && is_named(&OPERATOR_ADDRESSES) {
            return Some(Destination::Operator { address: address.as_str().to_owned() });
        }
        if is_configured || (is_own || begins_with_rp) && is_named(&[FEEDBACK_ADDRESS]) {
            return Some(Destination::Feedback { address: address.as_str().to_owned() });
        }
        if !begins_with_rp {
            return None;
        }
        let (server_id, message_id) = self.key.parse(local_part)?;
        let address = address.as_str().to_owned();
        Some(Destination::ReturnPath(ReturnAddress { server_id, message_id, address }))
    }
}

impl FeedbackSettings {
    /// Whether mail to this address would arrive at the bounce listener.
    pub fn arrives_at_bounce_listener(&self, address: &EmailAddress, hostname: &DomainName) -> bool {
        let domain = address.domain();
        domain == hostname
            || domain.as_str().starts_with("rp.")
            || self.addresses.iter().any(|known| known.mailbox_key() == address.mailbox_key())
    }
}

#[cfg(test)]
mod tests {
    use postroad_model::MessageToken;

    use super::*;

    fn addresses() -> Addresses {
        let parse = |text: &str| EmailAddress::parse(text).unwrap();
        let settings = FeedbackSettings {
            addresses: vec![parse("complaints@company.example"), parse("abuse@company.example")],
            forward_to: None,
        };
        let hosts = ["mx.example", "node2.example"].map(|name| DomainName::parse(name).unwrap());
        Addresses::new(ReturnPathKey::new(&[7; 32]), hosts, settings)
    }

    fn kind(addresses: &Addresses, address: &str) -> &'static str {
        match addresses.recognise(&EmailAddress::parse(address).unwrap()) {
            Some(Destination::ReturnPath(_)) => "return path",
            Some(Destination::Reports) => "reports",
            Some(Destination::Feedback { .. }) => "feedback",
            Some(Destination::Operator { .. }) => "operator",
            None => "unknown",
        }
    }

    #[test]
    fn every_address_has_one_purpose() {
        let known = addresses();
        let path = known.key.local_part(ServerId(1), MessageId(2), &MessageToken("aB3dE5fG7hI9jK1l".into()));
        for (address, expected) in [
            ("fbl@mx.example", "feedback"),
            ("FBL@rp.mx.example", "feedback"),
            ("fbl@rp.customer.example", "feedback"),
            ("fbl@node2.example", "feedback"),
            ("postmaster@node2.example", "operator"),
            ("tls-reports@rp.node2.example", "reports"),
            ("fbl@customer.example", "unknown"),
            ("complaints@company.example", "feedback"),
            ("fbl@company.example", "unknown"),
            ("Postmaster@MX.example", "operator"),
            ("abuse@rp.mx.example", "operator"),
            ("abuse@company.example", "operator"),
            ("postmaster@company.example", "unknown"),
            ("postmaster@rp.customer.example", "unknown"),
            ("dmarc-reports@rp.mx.example", "reports"),
            ("dmarc-reports@mx.example", "unknown"),
            ("somebody@mx.example", "unknown"),
            (&format!("{path}@rp.mx.example"), "return path"),
            (&format!("{path}@rp.customer.example"), "return path"),
            (&format!("{path}@mx.example"), "unknown"),
        ] {
            assert_eq!(kind(&known, address), expected, "{address}");
        }
    }
}
