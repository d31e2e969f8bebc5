//! Scopes of account and operator keys, and roles of people.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Groups of endpoints that a key can be limited to.
const GROUPS: [&str; 8] =
    ["account", "account_keys", "accounts", "credentials", "domains", "ip_pools", "servers", "users"];
const READ_SUFFIX: &str = ":read";

/// One entry of a key's scopes: `full`, `read`, a group such as `servers`, or `servers:read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccountScope {
    Full,
    Read,
    Group { name: &'static str, is_read_only: bool },
}

impl AccountScope {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "full" => return Some(Self::Full),
            "read" => return Some(Self::Read),
            _ => {}
        }
        let (group, is_read_only) = match text.strip_suffix(READ_SUFFIX) {
            Some(group) => (group, true),
            None => (text, false),
        };
        let name = GROUPS.into_iter().find(|name| *name == group)?;
        Some(Self::Group { name, is_read_only })
    }

    /// Whether this scope allows everything that `other` does.
    pub fn covers(self, other: Self) -> bool {
        match other {
            Self::Full => self == Self::Full,
            Self::Read => matches!(self, Self::Full | Self::Read),
            Self::Group { name, is_read_only } => self.allows(name, is_read_only),
        }
    }

    /// Whether a key with this scope may call an endpoint of `group`.
    pub fn allows(self, group: &str, is_read: bool) -> bool {
        match self {
            Self::Full => true,
            Self::Read => is_read,
            Self::Group { name, is_read_only } => name == group && (is_read || !is_read_only),
        }
    }
}

impl fmt::Display for AccountScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Read => f.write_str("read"),
            Self::Group { name, is_read_only: false } => f.write_str(name),
            Self::Group { name, is_read_only: true } => write!(f, "{name}{READ_SUFFIX}"),
        }
    }
}

impl Serialize for AccountScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AccountScope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl FromStr for AccountScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or_else(|| {
            format!("a scope is `full`, `read`, or one of {} with or without `:read`", GROUPS.join(", "))
        })
    }
}

/// Role of a person in an account. Each role may do everything that the roles after it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserRole {
    Owner,
    /// May also manage servers, keys, domains and people.
    Admin,
    /// May also send mail, and change templates, suppressions and webhooks.
    Member,
    ReadOnly,
}

impl UserRole {
    pub const ALL: [Self; 4] = [Self::Owner, Self::Admin, Self::Member, Self::ReadOnly];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
            Self::ReadOnly => "read-only",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// Whether a person of this role may do things that need the role `needed`.
    pub fn covers(self, needed: Self) -> bool {
        self <= needed
    }
}

impl fmt::Display for UserRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_as_it_is_written() {
        for text in ["full", "read", "servers", "servers:read", "ip_pools"] {
            assert_eq!(AccountScope::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "Full", "full:read", "messages", "servers:write", "servers:read:read"] {
            assert_eq!(AccountScope::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_scope_covers_its_group_only() {
        let allows = |text: &str, group, is_read| AccountScope::parse(text).unwrap().allows(group, is_read);
        assert!(allows("full", "servers", false) && allows("read", "servers", true));
        assert!(!allows("read", "servers", false));
        assert!(allows("servers", "servers", false) && !allows("servers", "domains", true));
        assert!(allows("servers:read", "servers", true) && !allows("servers:read", "servers", false));
    }

    #[test]
    fn a_scope_covers_narrower_ones() {
        let covers = |one: &str, other: &str| {
            AccountScope::parse(one).unwrap().covers(AccountScope::parse(other).unwrap())
        };
        for (wide, narrow) in
            [("full", "full"), ("full", "users"), ("read", "users:read"), ("users", "users:read")]
        {
            assert!(covers(wide, narrow), "{wide} {narrow}");
        }
        for (one, other) in [
            ("users", "full"),
            ("users", "read"),
            ("read", "users"),
            ("users:read", "users"),
            ("users", "servers"),
        ] {
            assert!(!covers(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_role_covers_those_below_it() {
        assert!(UserRole::Owner.covers(UserRole::ReadOnly) && UserRole::Admin.covers(UserRole::Admin));
        assert!(!UserRole::ReadOnly.covers(UserRole::Member));
        assert_eq!(UserRole::parse("read-only"), Some(UserRole::ReadOnly));
    }
}
