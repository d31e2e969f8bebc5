//! Things of which an account may have a limited number.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedThing {
    /// Those that can be restored included.
    Servers,
    /// Of the account and of its servers.
    Domains,
    Webhooks,
    /// With those who are invited.
    Users,
}

impl CountedThing {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Domains => "domains",
            Self::Webhooks => "webhooks",
            Self::Users => "users",
        }
    }
}
