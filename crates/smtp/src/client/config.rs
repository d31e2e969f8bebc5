//! Configuration of a client session, and the message to send.

use std::fmt;
use std::net::IpAddr;

use postroad_model::{DomainName, EmailAddress};

use crate::body::Body;

#[derive(Debug, Clone)]
pub struct ClientConfig {
    pub helo_name: HeloName,
    pub tls: TlsMode,
    /// Credentials for a smart host.
    pub credentials: Option<Credentials>,
    /// Use PIPELINING if offered.
    pub pipelining: bool,
    /// Use CHUNKING if offered.
    pub chunking: bool,
    /// Messages up to this size are sent together with their envelope if PIPELINING and CHUNKING are offered.
    /// With a larger message, a refused recipient would waste more than the saved round trip is worth.
    pub with_envelope_bytes_max: u64,
    /// Largest chunk of one BDAT.
    pub chunk_bytes_max: u64,
    pub transcript_bytes_max: usize,
}

impl ClientConfig {
    pub fn new(helo_name: HeloName) -> Self {
        Self {
            helo_name,
            tls: TlsMode::Opportunistic,
            credentials: None,
            pipelining: true,
            chunking: true,
            with_envelope_bytes_max: 64 << 10,
            chunk_bytes_max: 1 << 20,
            transcript_bytes_max: 4 << 10,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Do not use TLS even if offered, for example at the second try after a failed handshake.
    Never,
    /// Use TLS if offered; continue without it if STARTTLS is refused.
    Opportunistic,
    /// Send no message without TLS.
    Required,
    /// The driver performs the handshake before the banner (port 465, RFC 8314 3.3).
    Implicit,
}

/// Argument of EHLO (RFC 5321 4.1.1.1): a name, or an address literal for hosts without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeloName(String);

impl HeloName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<DomainName> for HeloName {
    fn from(name: DomainName) -> Self {
        Self(name.as_str().to_owned())
    }
}

impl From<IpAddr> for HeloName {
    /// RFC 5321 4.1.3
    fn from(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(v4) => format!("[{v4}]"),
            IpAddr::V6(v6) => format!("[IPv6:{v6}]"),
        })
    }
}

#[derive(Clone)]
pub struct Credentials {
    pub username: String,
    pub password: String,
    /// Whether the credentials are sent even without TLS, as to a relay on the loopback.
    pub allow_without_tls: bool,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// One message to one recipient, with its own return path.
#[derive(Debug, Clone)]
pub struct OutgoingMessage {
    /// `None` is the null path `<>` of bounces (RFC 5321 4.5.5).
    pub mail_from: Option<EmailAddress>,
    pub rcpt_to: EmailAddress,
    pub body: Body,
    /// Whether the header contains UTF-8 that only SMTPUTF8 allows (RFC 6532). The session checks addresses itself.
    pub has_utf8_header: bool,
}

impl OutgoingMessage {
    pub fn needs_smtputf8(&self) -> bool {
        let sender = self.mail_from.as_ref().is_some_and(EmailAddress::needs_smtputf8);
        self.has_utf8_header || sender || self.rcpt_to.needs_smtputf8()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_a_name_greet_with_their_address() {
        let literal = |address: &str| HeloName::from(address.parse::<IpAddr>().unwrap()).0;
        assert_eq!(literal("192.0.2.1"), "[192.0.2.1]");
        assert_eq!(literal("2001:db8::1"), "[IPv6:2001:db8::1]");
    }

    #[test]
    fn the_password_is_not_printed() {
        let credentials = Credentials {
            username: "relay".to_owned(),
            password: "hunter2".to_owned(),
            allow_without_tls: false,
        };
        assert!(!format!("{credentials:?}").contains("hunter2"));
    }
}
