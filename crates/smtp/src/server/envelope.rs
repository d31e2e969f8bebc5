//! Sender and recipients, as named by the client.

use std::fmt;

use postroad_model::EmailAddress;

/// Envelope of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub mail_from: MailFrom,
    /// Accepted recipients, in order.
    pub rcpt_to: Vec<RcptTo>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailFrom {
    pub path: ReversePath,
    /// RFC 1870: size that the client announced, which may differ from the real size.
    pub size: Option<u64>,
    /// RFC 6152: `BODY=8BITMIME`.
    pub is_eight_bit: bool,
    /// RFC 6531
    pub is_smtputf8: bool,
    /// RFC 3461 4.3
    pub ret: Option<Ret>,
    /// RFC 3461 4.4, decoded.
    pub envid: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RcptTo {
    pub address: EmailAddress,
    /// RFC 3461 4.1
    pub notify: Option<Notify>,
    /// RFC 3461 4.2: `type;address`, decoded.
    pub orcpt: Option<String>,
}

/// Address for bounces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReversePath {
    /// `<>`: the message is a bounce, which must not be bounced again (RFC 5321 4.5.5).
    Null,
    Address(EmailAddress),
    /// Well-formed, but at a host without a mail domain: a single label (`root@web1`) or an address literal
    /// (`a@[192.0.2.1]`).
    Local(String),
}

impl ReversePath {
    /// The address; empty for the null path.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Null => "",
            Self::Address(address) => address.as_str(),
            Self::Local(text) => text,
        }
    }
}

impl fmt::Display for ReversePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Part of the message to return with a bounce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ret {
    Full,
    Headers,
}

/// Reports that the sender requests for a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Notify {
    pub success: bool,
    pub failure: bool,
    pub delay: bool,
}

impl Notify {
    /// `NOTIFY=NEVER`
    pub const NEVER: Self = Self { success: false, failure: false, delay: false };
}
