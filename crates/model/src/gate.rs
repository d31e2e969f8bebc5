//! Gates: records that suspend or slow sending for a scope. A gate never edits messages, so removing it is enough to
//! resume sending.

use std::fmt;
use std::net::IpAddr;

use crate::domain::DomainName;
use crate::id::ServerId;

/// Scope of a gate. As text: `kind` or `kind:key`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GateScope {
    Everything,
    /// All mail that leaves from a pool, by its name.
    Pool(String),
    Server(ServerId),
    /// A recipient domain.
    Domain(DomainName),
    /// Mail for one recipient domain from one pool.
    Lane {
        pool: String,
        domain: DomainName,
    },
    /// A provider, by its name in the rules for large providers.
    Provider(String),
    /// Mail from one source address to one set of MX hosts.
    Path {
        source: IpAddr,
        site: String,
    },
    /// Mail from one source address to one provider.
    SourceProvider {
        source: IpAddr,
        provider: String,
    },
}

/// Effect of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GateAction {
    Suspend,
    Slow { per_minute: u32 },
}

impl GateScope {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Pool(_) => "pool",
            Self::Server(_) => "server",
            Self::Domain(_) => "domain",
            Self::Lane { .. } => "lane",
            Self::Provider(_) => "provider",
            Self::Path { .. } => "path",
            Self::SourceProvider { .. } => "source-provider",
        }
    }

    /// Key of the scope within its kind; empty for `Everything`.
    pub fn key(&self) -> String {
        match self {
            Self::Everything => String::new(),
            Self::Pool(name) | Self::Provider(name) => name.clone(),
            Self::Server(id) => id.to_string(),
            Self::Domain(name) => name.to_string(),
            Self::Lane { pool, domain } => format!("{pool}/{domain}"),
            Self::Path { source, site } => format!("{source}/{site}"),
            Self::SourceProvider { source, provider } => format!("{source}/{provider}"),
        }
    }

    pub fn as_text(&self) -> String {
        match self {
            Self::Everything => self.kind().to_owned(),
            _ => format!("{}:{}", self.kind(), self.key()),
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            Some((kind, key)) => Self::from_parts(kind, key),
            None => Self::from_parts(text, ""),
        }
    }

    /// The scope with this `kind` and `key`.
    pub fn from_parts(kind: &str, key: &str) -> Option<Self> {
        if key.is_empty() {
            return (kind == "everything").then_some(Self::Everything);
        }
        let name = || key.to_owned();
        Some(match kind {
            "pool" => Self::Pool(name()),
            "server" => Self::Server(ServerId(key.parse().ok()?)),
            "domain" => Self::Domain(DomainName::parse(key).ok()?),
            "lane" => {
                // A pool's name may contain a slash, a domain cannot.
                let (pool, domain) = key.rsplit_once('/').filter(|(pool, _)| !pool.is_empty())?;
                Self::Lane { pool: pool.to_owned(), domain: DomainName::parse(domain).ok()? }
            }
            "provider" => Self::Provider(name()),
            "path" => {
                let (source, site) = source_and_rest(key)?;
                Self::Path { source, site }
            }
            "source-provider" => {
                let (source, provider) = source_and_rest(key)?;
                Self::SourceProvider { source, provider }
            }
            _ => return None,
        })
    }
}

fn source_and_rest(key: &str) -> Option<(IpAddr, String)> {
    let (source, rest) = key.split_once('/').filter(|(_, rest)| !rest.is_empty())?;
    Some((source.parse().ok()?, rest.to_owned()))
}

impl fmt::Display for GateScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for text in [
            "everything",
            "pool:main",
            "server:3",
            "domain:example.com",
            "lane:main/example.com",
            "lane:a/b/example.com",
            "provider:google",
            "path:192.0.2.1/mx.example.com",
            "path:2001:db8::1/mx.example.com",
            "source-provider:192.0.2.1/google",
        ] {
            assert_eq!(
                GateScope::parse(text).unwrap_or_else(|| panic!("{text} was refused")).as_text(),
                text
            );
        }
        for bad in [
            "",
            "all",
            "everything:now",
            "pool",
            "pool:",
            "server:x",
            "domain:a b",
            "lane:example.com",
            "lane:/example.com",
            "path:mx.example.com",
            "path:192.0.2.1/",
            "source-provider:x/google",
        ] {
            assert_eq!(GateScope::parse(bad), None, "{bad:?} was accepted");
        }
    }
}
