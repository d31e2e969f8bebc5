//! Values of ceilings, and checks of changes against them.

use postroad_model::{Change, SendRate, ServerMode};

use super::server_change::ServerChange;
use crate::error::StoreError;
use crate::sql::Row;

/// Ceilings of a server; `None` means no ceiling. The server's effective values never exceed its ceilings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ceilings {
    /// `Development`: only the operator or account that set this ceiling can make the server live.
    pub mode: Option<ServerMode>,
    pub send_rate: Option<SendRate>,
    pub hourly_limit: Option<u32>,
    pub bodies_days: Option<u32>,
    pub messages_days: Option<u32>,
}

/// One ceiling that a change would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceiling {
    Mode(ServerMode),
    SendRate(SendRate),
    HourlyLimit(u32),
    BodiesDays(u32),
    MessagesDays(u32),
}

impl Ceiling {
    /// Position of the ceiling's field in API answers.
    pub(super) const fn position(self) -> u8 {
        match self {
            Self::Mode(_) => 0,
            Self::SendRate(_) => 1,
            Self::HourlyLimit(_) => 2,
            Self::BodiesDays(_) => 3,
            Self::MessagesDays(_) => 4,
        }
    }
}

impl Ceilings {
    /// The lower ceiling of each kind.
    #[must_use]
    pub(crate) fn min_with(&self, other: &Self) -> Self {
        Self {
            mode: self.mode.or(other.mode),
            send_rate: lower(self.send_rate, other.send_rate, SendRate::is_above),
            hourly_limit: lower(self.hourly_limit, other.hourly_limit, is_above),
            bodies_days: lower(self.bodies_days, other.bodies_days, is_above),
            messages_days: lower(self.messages_days, other.messages_days, is_above),
        }
    }

    /// Every ceiling that `change` would exceed. Removing a limit exceeds any ceiling.
    pub fn exceeded_by(&self, change: &ServerChange) -> Vec<Ceiling> {
        let is_live = change.mode == Some(ServerMode::Live);
        let mode = self.mode.filter(|_| is_live).map(Ceiling::Mode);
        let rate = exceeded(change.send_rate, self.send_rate, SendRate::is_above).map(Ceiling::SendRate);
        let limit = exceeded(change.hourly_limit, self.hourly_limit, is_above).map(Ceiling::HourlyLimit);
        let bodies = exceeded(change.bodies_days, self.bodies_days, is_above).map(Ceiling::BodiesDays);
        let messages =
            exceeded(change.messages_days, self.messages_days, is_above).map(Ceiling::MessagesDays);
        [mode, rate, limit, bodies, messages].into_iter().flatten().collect()
    }
}

/// The lower of two limits; `None` means no limit.
pub(crate) fn lower<T: Copy>(one: Option<T>, other: Option<T>, is_above: impl Fn(T, T) -> bool) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if is_above(one, other) { other } else { one }),
        (one, other) => one.or(other),
    }
}

pub(crate) fn is_above(value: u32, ceiling: u32) -> bool {
    value > ceiling
}

/// The value after a change.
pub(crate) fn value_after<T>(change: Change<T>, current: Option<T>) -> Option<T> {
    match change {
        Change::Keep => current,
        Change::Clear => None,
        Change::Set(value) => Some(value),
    }
}

fn exceeded<T: Copy>(change: Change<T>, ceiling: Option<T>, is_above: impl Fn(T, T) -> bool) -> Option<T> {
    ceiling.filter(|ceiling| match change {
        Change::Keep => false,
        Change::Clear => true,
        Change::Set(value) => is_above(value, *ceiling),
    })
}

/// Reads the five columns from `at` on.
pub(crate) fn read(row: &Row, at: usize) -> Result<Ceilings, StoreError> {
    let number = |at| Ok::<_, StoreError>(row.int_opt(at)?.map(|number| number as u32));
    let mode = if row.text_opt(at)?.is_none() { None } else { Some(row.parsed(at, ServerMode::parse)?) };
    Ok(Ceilings {
        mode,
        send_rate: read_rate(row, at + 1)?,
        hourly_limit: number(at + 2)?,
        bodies_days: number(at + 3)?,
        messages_days: number(at + 4)?,
    })
}

/// Column value of a ceiling on the mode: `development` keeps the server in development; `live` means no ceiling.
pub(crate) fn mode_column(mode: ServerMode) -> Option<&'static str> {
    (mode == ServerMode::Development).then(|| mode.as_str())
}

pub(crate) fn read_rate(row: &Row, at: usize) -> Result<Option<SendRate>, StoreError> {
    if row.text_opt(at)?.is_none() { Ok(None) } else { row.parsed(at, SendRate::parse).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_beyond_their_ceiling_are_reported() {
        let ceilings = Ceilings {
            mode: Some(ServerMode::Development),
            send_rate: SendRate::parse("60/m"),
            hourly_limit: Some(100),
            bodies_days: Some(7),
            messages_days: None,
        };
        assert_eq!(ceilings.exceeded_by(&ServerChange::default()), []);
        let within = ServerChange {
            mode: Some(ServerMode::Development),
            send_rate: Change::Set(SendRate::parse("1/s").unwrap()),
            hourly_limit: Change::Set(100),
            bodies_days: Change::Set(0),
            messages_days: Change::Clear,
            ..ServerChange::default()
        };
        assert_eq!(ceilings.exceeded_by(&within), []);
        assert_eq!(Ceilings::default().exceeded_by(&within), []);
        let beyond = ServerChange {
            mode: Some(ServerMode::Live),
            send_rate: Change::Set(SendRate::parse("2/s").unwrap()),
            hourly_limit: Change::Clear,
            bodies_days: Change::Set(8),
            messages_days: Change::Set(9_999),
            ..ServerChange::default()
        };
        let expected = [
            Ceiling::Mode(ServerMode::Development),
            Ceiling::SendRate(SendRate::parse("60/m").unwrap()),
            Ceiling::HourlyLimit(100),
            Ceiling::BodiesDays(7),
        ];
        assert_eq!(ceilings.exceeded_by(&beyond), expected);
    }
}
