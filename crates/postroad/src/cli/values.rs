//! Values that several commands take.

use clap::ValueEnum;
use ipnet::IpNet;
use postroad_app::admin::Switch;
use postroad_model::{SendRate, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Serialize, Deserialize, ValueEnum)]
pub(crate) enum OnOff {
    On,
    Off,
}

impl OnOff {
    pub(crate) fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// A limit, or the word `none`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum LimitOrNone<T> {
    Limit(T),
    None,
}

impl<T> LimitOrNone<T> {
    pub(super) fn parse(text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<Self> {
        if text == "none" { Some(Self::None) } else { parse(text).map(Self::Limit) }
    }

    pub(super) fn limit(self) -> Option<T> {
        match self {
            Self::Limit(limit) => Some(limit),
            Self::None => None,
        }
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, ValueEnum)]
pub(crate) enum OnOffDefault {
    On,
    Off,
    /// The server's setting
    Default,
}

impl From<OnOffDefault> for Switch {
    fn from(option: OnOffDefault) -> Self {
        match option {
            OnOffDefault::On => Self::On,
            OnOffDefault::Off => Self::Off,
            OnOffDefault::Default => Self::Default,
        }
    }
}

/// A single address is a network of one.
pub(super) fn parse_network(text: &str) -> Result<IpNet, String> {
    let single = text.parse::<std::net::IpAddr>().map(IpNet::from);
    text.parse::<IpNet>()
        .or(single)
        .map_err(|_| "use an address or a network such as 192.0.2.0/24".to_owned())
}

pub(super) fn parse_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text).ok_or_else(|| "use a time such as 2027-01-01T00:00:00Z".to_owned())
}

pub(super) fn parse_rate(text: &str) -> Result<LimitOrNone<SendRate>, String> {
    let wrong = || "use a rate such as 10/s, 100/m or 1000/h, or none".to_owned();
    LimitOrNone::parse(text, SendRate::parse).ok_or_else(wrong)
}

pub(super) fn parse_number(text: &str) -> Result<LimitOrNone<u32>, String> {
    let wrong = || "use a whole number from 0 to 4294967295, or none".to_owned();
    LimitOrNone::parse(text, |text| text.parse().ok()).ok_or_else(wrong)
}
