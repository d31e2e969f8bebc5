//! One value from TOML or an environment variable, and the functions that parse it.
//!
//! Every error says what is wrong, and most say what to write instead; the caller adds place and key.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use postroad_model::{DomainName, EmailAddress, SendRate};
use toml::de::DeValue;

use super::{Database, PostgresUrl, units};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RawValue {
    Text(String),
    Number(i64),
    Flag(bool),
    List(Vec<String>),
    /// An environment variable has no type: each parser interprets its text.
    Variable(String),
    /// A TOML value of a type that no key accepts, with the name of that type.
    Other(&'static str),
}

impl RawValue {
    pub(super) fn of_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.clone().into_owned()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or(Self::Other("a number beyond 64 bits"), Self::Number),
            DeValue::Boolean(flag) => Self::Flag(*flag),
            DeValue::Array(items) => {
                let texts = items.iter().map(|item| item.get_ref().as_str().map(ToOwned::to_owned));
                texts
                    .collect::<Option<_>>()
                    .map_or(Self::Other("a list of other things than texts"), Self::List)
            }
            DeValue::Float(_) => Self::Other("a number with a fraction"),
            DeValue::Datetime(_) => Self::Other("a date"),
            DeValue::Table(_) => Self::Other("a section"),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Text(text) | Self::Variable(text) => format!("{text:?}"),
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Other(kind) => (*kind).to_owned(),
        }
    }

    fn refuse<T>(&self, instead: &str) -> Result<T, String> {
        Err(format!("{} does not fit here; {instead}", self.describe()))
    }

    pub(super) fn text(&self) -> Result<&str, String> {
        match self {
            Self::Text(text) | Self::Variable(text) => Ok(text),
            // The number may be a password without its quotes, so the error does not repeat it.
            Self::Number(_) => Err("a number does not fit here; write a text in quotes".to_owned()),
            _ => self.refuse("write a text in quotes"),
        }
    }

    pub(super) fn flag(&self) -> Result<bool, String> {
        match self {
            Self::Flag(flag) => Ok(*flag),
            Self::Variable(text) if text == "true" => Ok(true),
            Self::Variable(text) if text == "false" => Ok(false),
            _ => self.refuse("write true or false"),
        }
    }

    /// A whole number, at least `min`.
    pub(super) fn count(&self, min: usize) -> Result<usize, String> {
        let count = match self {
            Self::Number(number) => usize::try_from(*number).ok(),
            Self::Variable(text) => text.parse().ok(),
            _ => None,
        };
        let enough = count.filter(|count| *count >= min);
        enough.map_or_else(|| self.refuse(&format!("write a whole number, at least {min}")), Ok)
    }

    /// A number of bytes, at least `min`.
    pub(super) fn size(&self, min: usize) -> Result<usize, String> {
        let bytes = match self {
            Self::Number(number) => usize::try_from(*number).ok(),
            _ => usize::try_from(units::parse_size(self.text()?)?).ok(),
        };
        let enough = bytes.filter(|bytes| *bytes >= min);
        enough.map_or_else(|| self.refuse(&format!("write at least {min} bytes")), Ok)
    }

    pub(super) fn list(&self) -> Result<Vec<String>, String> {
        match self {
            Self::List(items) => Ok(items.clone()),
            Self::Variable(text) => Ok(text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(ToOwned::to_owned)
                .collect()),
            _ => self.refuse("write a list of texts, like [\"one\", \"two\"]"),
        }
    }

    /// One of `choices`, by its name.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, String> {
        let text = self.text()?;
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice);
        found.map_or_else(
            || {
                let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
                self.refuse(&format!("write {}", names.join(" or ")))
            },
            Ok,
        )
    }

    /// The empty text means "none".
    pub(super) fn path(&self) -> Result<Option<PathBuf>, String> {
        let text = self.text()?;
        Ok((!text.is_empty()).then(|| PathBuf::from(text)))
    }

    /// The empty text means "off".
    pub(super) fn listen(&self) -> Result<Option<SocketAddr>, String> {
        match self.text()? {
            "" => Ok(None),
            text => match text.parse() {
                Ok(address) => Ok(Some(address)),
                Err(_) => self.refuse(
                    "write an IP address and a port, like \"127.0.0.1:8025\" or \"[::]:8025\", or \"\" for off",
                ),
            },
        }
    }

    pub(super) fn port(&self) -> Result<u16, String> {
        let port = self.count(1)?;
        u16::try_from(port).or_else(|_| self.refuse("write a port between 1 and 65535"))
    }

    /// `host:port`; the empty text means "none".
    pub(super) fn host_port(&self) -> Result<Option<(String, u16)>, String> {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        let parts = text.rsplit_once(':').and_then(|(host, port)| {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let port = port.parse::<u16>().ok().filter(|port| *port > 0)?;
            (!host.is_empty()).then(|| (host.to_ascii_lowercase(), port))
        });
        parts.map_or_else(
            || self.refuse("write a host and a port, like \"relay.example.com:587\""),
            |parts| Ok(Some(parts)),
        )
    }

    /// Empty text means none.
    pub(super) fn rate(&self) -> Result<Option<SendRate>, String> {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        SendRate::parse(text)
            .map(Some)
            .ok_or_else(|| format!("`{text}` is not a rate; write it like 100/s, 100/m or 100/h"))
    }

    /// Addresses of name servers; the port is 53 if left out.
    pub(super) fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let read = |text: &String| {
            let with_port =
                text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(|ip| (ip, 53).into()));
            with_port.ok_or_else(|| format!("{text:?} is not an address; write one like \"127.0.0.1:53\""))
        };
        self.list()?.iter().map(read).collect()
    }

    pub(super) fn duration(&self) -> Result<Duration, String> {
        units::parse_duration(self.text()?)
    }

    /// A retention period; `None` means forever.
    pub(super) fn retention(&self) -> Result<Option<Duration>, String> {
        match self.text()? {
            "forever" => Ok(None),
            text => units::parse_duration(text)
                .map(Some)
                .map_err(|_| format!("{text:?} is not a duration; write one like \"90d\", or \"forever\"")),
        }
    }

    pub(super) fn durations(&self) -> Result<Vec<Duration>, String> {
        self.list()?.iter().map(|text| units::parse_duration(text)).collect()
    }

    pub(super) fn counts(&self) -> Result<Vec<u32>, String> {
        let read = |text: &String| text.parse().map_err(|_| format!("{text:?} is not a whole number"));
        self.list()?.iter().map(read).collect()
    }

    /// Networks in CIDR notation; a plain address is a network of one.
    pub(super) fn networks(&self) -> Result<Vec<IpNet>, String> {
        let read = |text: &String| {
            let net = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
            net.ok_or_else(|| {
                format!("{text:?} is not a network; write an address or CIDR, like \"10.0.0.0/8\"")
            })
        };
        self.list()?.iter().map(read).collect()
    }

    pub(super) fn domain(&self) -> Result<DomainName, String> {
        let text = self.text()?;
        DomainName::parse(text)
            .map_err(|error| format!("{text:?}: {error}; write a full name like \"mx.example.com\""))
    }

    /// One e-mail address; the empty text means "none".
    pub(super) fn mailbox(&self) -> Result<Option<EmailAddress>, String> {
        let text = self.text()?;
        if text.is_empty() { Ok(None) } else { parse_mailbox(text).map(Some) }
    }

    pub(super) fn mailboxes(&self) -> Result<Vec<EmailAddress>, String> {
        self.list()?.iter().map(|text| parse_mailbox(text)).collect()
    }

    pub(super) fn database(&self) -> Result<Database, String> {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(Database::Sqlite { file: None });
        }
        match postroad_store::Database::parse(text) {
            Ok(postroad_store::Database::Sqlite(file)) => return Ok(Database::Sqlite { file: Some(file) }),
            Ok(postroad_store::Database::Postgres(url)) => {
                return Ok(Database::Postgres { url: PostgresUrl(url) });
            }
            Err(_) => {}
        }
        // Do not repeat the text: it may contain a password.
        Err("the value is neither \"sqlite:PATH\" nor \"postgres://USER:PASSWORD@HOST/NAME\"; \
             leave it empty for SQLite in data_dir"
            .to_owned())
    }
}

fn parse_mailbox(text: &str) -> Result<EmailAddress, String> {
    EmailAddress::parse(text)
        .map_err(|error| format!("{text:?}: {error}; write an address like \"you@example.com\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_any_type_but_toml_texts_are_not() {
        assert_eq!(RawValue::Variable("7".to_owned()).count(0), Ok(7));
        assert!(RawValue::Text("7".to_owned()).count(0).is_err());
        assert_eq!(RawValue::Variable(String::new()).list(), Ok(vec![]));
    }
}
