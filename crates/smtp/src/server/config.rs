//! Configuration of a server session.

use crate::client::HeloName;

/// Configuration shared by all sessions of a listener.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Host name in the banner and in EHLO replies.
    pub host_name: HeloName,
    pub extensions: Extensions,
    /// Offer STARTTLS until TLS is on. The driver must be able to perform the handshake.
    pub starttls: bool,
    pub auth: AuthPolicy,
    /// Refuse MAIL before TLS is on.
    pub tls_required: bool,
    /// Refuse MAIL before AUTH has succeeded.
    pub auth_required: bool,
    pub limits: ServerLimits,
    /// Refuse messages with NUL bytes (obsolete in RFC 5322 4): hosts that drop them could be made to see a
    /// false end of data.
    pub nul_refused: bool,
    pub bare_lf: BareLf,
}

/// Treatment of a LF without CR in a message's content. A bare CR is always refused; in commands, a bare LF is too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareLf {
    /// Refuses the message; for listeners open to strangers.
    Refused,
    /// Converts it to CRLF, as Postfix 3.9 does; for listeners to which applications submit mail. A bare LF never
    /// ends the data (RFC 5321 4.1.1.4).
    Normalised,
}

impl ServerConfig {
    /// Offers all extensions that need no setup; no TLS, no AUTH.
    pub fn new(host_name: HeloName) -> Self {
        Self {
            host_name,
            extensions: Extensions::default(),
            starttls: false,
            auth: AuthPolicy::Off,
            tls_required: false,
            auth_required: false,
            limits: ServerLimits::default(),
            nul_refused: true,
            bare_lf: BareLf::Refused,
        }
    }
}

/// When AUTH PLAIN and LOGIN are offered and accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthPolicy {
    Off,
    InsideTls,
    Anywhere,
}

/// Extensions that EHLO offers beside STARTTLS and AUTH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extensions {
    /// RFC 2920
    pub pipelining: bool,
    /// RFC 1870, with the message size limit
    pub size: bool,
    /// RFC 6152
    pub eight_bit_mime: bool,
    /// RFC 6531
    pub smtputf8: bool,
    /// RFC 2034. Replies carry enhanced codes even if the extension is not offered: then the codes are plain text.
    pub enhanced_status_codes: bool,
    /// RFC 3030
    pub chunking: bool,
    /// RFC 3461
    pub dsn: bool,
}

impl Default for Extensions {
    fn default() -> Self {
        Self {
            pipelining: true,
            size: true,
            eight_bit_mime: true,
            smtputf8: true,
            enhanced_status_codes: true,
            chunking: true,
            dsn: true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    pub message_bytes_max: u64,
    /// Maximum number of recipients of one message.
    pub recipients_max: usize,
    /// Longest command. RFC 5321 4.5.3.1.4 says 512 bytes, and extensions raise that limit.
    pub command_bytes_max: usize,
    /// Longest line of a message, without its CRLF. RFC 5321 4.5.3.1.6 says 998 bytes, but applications send longer
    /// lines. The driver may still refuse a message with such lines.
    pub text_line_bytes_max: usize,
    /// Maximum number of invalid commands since the last accepted message. Refusals by the driver do not count.
    pub errors_max: u32,
    /// Maximum number of commands since the last accepted message.
    pub commands_max: u32,
    pub bad_credentials_max: u32,
    /// Maximum number of bytes of input that wait for the driver's answer.
    pub pending_input_bytes_max: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            message_bytes_max: 25 << 20,
            recipients_max: 1_000,
            command_bytes_max: 2_048,
            text_line_bytes_max: 64 << 10,
            errors_max: 100,
            commands_max: 20_000,
            bad_credentials_max: 3,
            pending_input_bytes_max: 1 << 20,
        }
    }
}
