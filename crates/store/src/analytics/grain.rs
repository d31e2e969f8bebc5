//! Time spans of counters. Quarters of an hour exist because days and hours of every time zone begin at the start of a
//! quarter. Hours and days exist so that long ranges need few rows.

use postroad_model::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grain {
    /// Counters of minutes are kept for a shorter time than others.
    Minute,
    /// A quarter of an hour.
    Quarter,
    /// Full hours of UTC.
    Hour,
    /// From midnight UTC.
    Day,
}

impl Grain {
    pub const ALL: [Self; 4] = [Self::Minute, Self::Quarter, Self::Hour, Self::Day];

    pub const fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::Quarter => 15 * 60,
            Self::Hour => 3_600,
            Self::Day => 24 * 3_600,
        }
    }

    /// Its number in the database.
    pub(crate) const fn code(self) -> i64 {
        match self {
            Self::Minute => 0,
            Self::Quarter => 1,
            Self::Day => 2,
            Self::Hour => 3,
        }
    }

    /// Start of the span that contains a time, in seconds since 1970.
    pub const fn start(self, moment: Timestamp) -> i64 {
        let seconds = moment.as_secs();
        seconds - seconds.rem_euclid(self.seconds())
    }
}
