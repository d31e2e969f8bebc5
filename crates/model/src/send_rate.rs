//! Sending rate of a server or account: `100/m` is a hundred messages a minute.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Number of messages per period. Never zero: a gate or a suspension stops sending, not a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SendRate {
    pub count: u32,
    pub per: RatePeriod,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RatePeriod {
    Second,
    Minute,
    Hour,
}

impl RatePeriod {
    pub const fn duration(self) -> Duration {
        match self {
            Self::Second => Duration::from_secs(1),
            Self::Minute => Duration::from_mins(1),
            Self::Hour => Duration::from_hours(1),
        }
    }

    const fn letter(self) -> char {
        match self {
            Self::Second => 's',
            Self::Minute => 'm',
            Self::Hour => 'h',
        }
    }
}

impl SendRate {
    /// Parses `100/s`, `100/m` or `100/h`.
    pub fn parse(text: &str) -> Option<Self> {
        let (count, period) = text.split_once('/')?;
        let per = match period {
            "s" => RatePeriod::Second,
            "m" => RatePeriod::Minute,
            "h" => RatePeriod::Hour,
            _ => return None,
        };
        // Integer parsing alone would also accept a sign.
        let count = Some(count).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
        (count > 0).then_some(Self { count, per })
    }

    /// Whether this rate allows more messages than `other`, even if their periods differ.
    pub fn is_above(self, other: Self) -> bool {
        let cross = |rate: Self, period: RatePeriod| u64::from(rate.count) * period.duration().as_secs();
        cross(self, other.per) > cross(other, self.per)
    }
}

impl fmt::Display for SendRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per.letter())
    }
}

impl TryFrom<String> for SendRate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a sending rate; write it like 100/m"))
    }
}

impl From<SendRate> for String {
    fn from(rate: SendRate) -> Self {
        rate.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_different_periods_are_compared() {
        let rate = |text| SendRate::parse(text).unwrap();
        for (higher, lower) in
            [("2/s", "1/s"), ("61/m", "1/s"), ("1/s", "3599/h"), ("4294967295/s", "4294967295/m")]
        {
            assert!(rate(higher).is_above(rate(lower)), "{higher} {lower}");
            assert!(!rate(lower).is_above(rate(higher)), "{lower} {higher}");
        }
        assert!(!rate("60/m").is_above(rate("1/s")) && !rate("1/s").is_above(rate("3600/h")));
    }

    #[test]
    fn rates_are_read_as_they_are_written() {
        for text in ["1/s", "100/m", "4294967295/h"] {
            assert_eq!(SendRate::parse(text).unwrap().to_string(), text);
        }
        for bad in
            ["", "100", "/m", "0/m", "-1/m", "+1/m", "1.5/s", "100/d", "100/min", "4294967296/h", " 1/m"]
        {
            assert_eq!(SendRate::parse(bad), None, "{bad:?} was accepted");
        }
    }
}
