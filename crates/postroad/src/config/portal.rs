//! Sections `[portal]` and `[secrets]`.

use std::path::PathBuf;

use postroad_model::EmailAddress;

use super::Config;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Portal {
    /// Base URL without a trailing slash; `None` for `https://<hostname>`, or in `postroad dev` for the service's own
    /// URL.
    pub(crate) base_url: Option<String>,
    /// Sender of mail to people who use the portal; `None` for `postroad@<hostname>`.
    pub(crate) mail_from: Option<EmailAddress>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets {
    /// File with the sealing key; `None` for `secrets.key` in the data directory.
    pub(crate) key_file: Option<PathBuf>,
}

impl Config {
    pub(crate) fn portal_base(&self) -> String {
        self.portal.base_url.clone().unwrap_or_else(|| format!("https://{}", self.hostname))
    }
}
