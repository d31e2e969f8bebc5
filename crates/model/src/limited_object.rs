//! Objects of which an account may have a limited number.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedObject {
    /// Servers, including deleted ones that can be restored.
    Servers,
    /// Domains of the account and of its servers.
    Domains,
    Webhooks,
    /// People, including invitations.
    Users,
}

impl LimitedObject {
    pub const ALL: [Self; 4] = [Self::Servers, Self::Domains, Self::Webhooks, Self::Users];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|object| object.as_str() == text)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Domains => "domains",
            Self::Webhooks => "webhooks",
            Self::Users => "users",
        }
    }
}
