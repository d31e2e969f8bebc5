//! The highest values that a server's own key may set. The operator sets them.

use postroad_model::{Change, SendRate, ServerMode};

use super::ServerChange;

/// `None` is no ceiling. The values in force never exceed these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ceilings {
    /// `Development`: only the operator can make the server live.
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

/// How an update by a server's own key ended.
#[derive(Debug, Clone)]
pub enum ServerUpdate {
    Done(Box<super::Server>),
    /// Nothing was changed: these ceilings forbid it.
    Exceeds(Vec<Ceiling>),
}

impl Ceilings {
    /// Every ceiling that `change` would exceed. To take a limit away exceeds any ceiling.
    pub fn exceeded_by(&self, change: &ServerChange) -> Vec<Ceiling> {
        let is_live = change.mode == Some(ServerMode::Live);
        let mode = self.mode.filter(|_| is_live).map(Ceiling::Mode);
        let rate = exceeded(change.send_rate, self.send_rate, SendRate::is_above).map(Ceiling::SendRate);
        let above = |given: u32, ceiling: u32| given > ceiling;
        let limit = exceeded(change.hourly_limit, self.hourly_limit, above).map(Ceiling::HourlyLimit);
        let bodies = exceeded(change.bodies_days, self.bodies_days, above).map(Ceiling::BodiesDays);
        let messages = exceeded(change.messages_days, self.messages_days, above).map(Ceiling::MessagesDays);
        [mode, rate, limit, bodies, messages].into_iter().flatten().collect()
    }
}

fn exceeded<T: Copy>(change: Change<T>, ceiling: Option<T>, is_above: impl Fn(T, T) -> bool) -> Option<T> {
    ceiling.filter(|ceiling| match change {
        Change::Keep => false,
        Change::Clear => true,
        Change::Set(given) => is_above(given, *ceiling),
    })
}

/// The value in force once the ceiling changes from `old` to `new`: a value at the ceiling moves with it, a lower one
/// that the server chose itself stays, a higher one is cut.
pub(crate) fn follow<T: Copy + PartialEq>(
    value: Option<T>,
    old: Option<T>,
    new: Option<T>,
    is_above: impl Fn(T, T) -> bool,
) -> Option<T> {
    match (value, new) {
        _ if value == old => new,
        (Some(value), Some(new)) if is_above(value, new) => Some(new),
        (None, new) => new,
        (value, _) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_at_its_ceiling_moves_with_it_and_a_chosen_one_stays() {
        let follow = |value, old, new| follow(value, old, new, |value: u32, ceiling| value > ceiling);
        assert_eq!(follow(None, None, Some(5)), Some(5), "no limit before");
        assert_eq!(follow(Some(5), Some(5), Some(10)), Some(10));
        assert_eq!(follow(Some(5), Some(5), None), None);
        assert_eq!(follow(Some(3), Some(5), Some(10)), Some(3), "chosen by the server");
        assert_eq!(follow(Some(3), Some(5), None), Some(3));
        assert_eq!(follow(Some(3), None, Some(2)), Some(2));
    }

    #[test]
    fn what_lies_beyond_a_ceiling_is_named_and_the_rest_is_free() {
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
