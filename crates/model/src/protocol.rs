//! Protocol by which a send was submitted.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Named as in RFC 3848 and RFC 6531, for the `Received` header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    #[default]
    Http,
    /// SMTP without TLS and AUTH: from an address bound to a credential, or to the open listener of `postroad dev`.
    /// Also for forwarded mail.
    Esmtp,
    /// `Esmtp` with SMTPUTF8.
    Utf8Smtp,
    /// SMTP with TLS and AUTH.
    Esmtpsa,
    /// `Esmtpsa` with SMTPUTF8.
    Utf8Smtpsa,
}

impl Protocol {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Esmtp => "ESMTP",
            Self::Utf8Smtp => "UTF8SMTP",
            Self::Esmtpsa => "ESMTPSA",
            Self::Utf8Smtpsa => "UTF8SMTPSA",
        }
    }

    /// For `#[serde(skip_serializing_if)]`: the most common value is not stored.
    pub fn is_http(&self) -> bool {
        *self == Self::Http
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
