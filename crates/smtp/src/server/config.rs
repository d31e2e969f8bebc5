//! What a server session is told before it begins.

use crate::client::HeloName;

/// Shared by all sessions of a listener.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// How the server calls itself in the banner and in its answer to EHLO.
    pub host_name: HeloName,
    pub extensions: Extensions,
    /// Offered until TLS is on. The driver must be able to shake hands then.
    pub starttls: bool,
    pub auth: AuthPolicy,
    /// No MAIL before TLS is on.
    pub tls_required: bool,
    /// No MAIL before AUTH has succeeded.
    pub auth_required: bool,
    pub limits: ServerLimits,
    /// Refuse messages with NUL bytes (RFC 5322 4 knows them as obsolete): hosts that drop them could be made to see
    /// an end of data that was none.
    pub nul_refused: bool,
    pub bare_lf: BareLf,
}

/// A LF without a CR in a message's content. A bare CR is refused everywhere, and so are both in commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareLf {
    /// For listeners that strangers use.
    Refused,
    /// Becomes CRLF, as in Postfix 3.9. For clients that we know. It never ends the data (RFC 5321 4.1.1.4).
    Normalised,
}

impl ServerConfig {
    /// Offers everything that needs nothing else; no TLS, no AUTH.
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

/// When AUTH PLAIN and LOGIN are offered and taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthPolicy {
    Off,
    InsideTls,
    Anywhere,
}

/// What EHLO offers beside STARTTLS and AUTH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extensions {
    /// RFC 2920
    pub pipelining: bool,
    /// RFC 1870, with the limit on messages
    pub size: bool,
    /// RFC 6152
    pub eight_bit_mime: bool,
    /// RFC 6531
    pub smtputf8: bool,
    /// RFC 2034. Replies carry the codes whether it is offered or not: without it they are plain text.
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
    /// Of one message.
    pub recipients_max: usize,
    /// RFC 5321 4.5.3.1.4 says 512, and each extension adds to it.
    pub command_bytes_max: usize,
    /// Of a line of a message, without its CRLF. RFC 5321 4.5.3.1.6 says 998; applications send longer ones, and to
    /// take them is no danger, because messages are handed on in pieces.
    pub text_line_bytes_max: usize,
    /// Commands that were wrong, since the last message that was accepted. What the driver refuses does not count.
    pub errors_max: u32,
    /// Commands since the last message that was accepted.
    pub commands_max: u32,
    pub bad_credentials_max: u32,
    /// Input that may wait for the driver's decision.
    pub ahead_bytes_max: usize,
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
            ahead_bytes_max: 1 << 20,
        }
    }
}
