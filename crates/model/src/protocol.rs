//! How a send came in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// By the names of RFC 3848 and RFC 6531, as the `Received` header says them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    #[default]
    Http,
    /// Without TLS and AUTH: from an address that a credential is bound to.
    Esmtp,
    Utf8Smtp,
    /// With TLS and AUTH.
    Esmtpsa,
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

    /// For `#[serde(skip_serializing_if)]`: what most sends are is not written down.
    pub fn is_http(&self) -> bool {
        *self == Self::Http
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
