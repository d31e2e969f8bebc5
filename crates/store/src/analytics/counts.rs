//! Counts per metric. Stored as pairs of metric and count, without zeros.

use crate::error::StoreError;
use crate::varint;

const METRIC_COUNT: usize = Metric::ALL.len();

macro_rules! metrics {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// Counted metrics. Their positions are stored, so new ones go to the end.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Metric {
            $($(#[$doc])* $variant),+
        }

        impl Metric {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

metrics! {
    Accepted = "accepted",
    Sent = "sent",
    /// Temporary failures; counts attempts, not messages.
    SoftFail = "soft_fail",
    HardFail = "hard_fail",
    Bounced = "bounced",
    Held = "held",
    Complained = "complained",
    Suppressed = "suppressed",
    Opened = "opened",
    UniqueOpened = "unique_opened",
    Clicked = "clicked",
    UniqueClicked = "unique_clicked",
    Unsubscribed = "unsubscribed",
    /// Opens by programs; `opened` excludes them.
    BotOpened = "bot_opened",
    BotClicked = "bot_clicked",
    /// Messages opened by anybody, including programs.
    UniqueOpenedWithBots = "unique_opened_with_bots",
    UniqueClickedWithBots = "unique_clicked_with_bots",
}

/// A number for each metric.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts([u64; METRIC_COUNT]);

impl Counts {
    pub fn of(&self, metric: Metric) -> u64 {
        self.0[metric as usize]
    }

    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    pub fn count(&mut self, metric: Metric) {
        self.0[metric as usize] += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }

    /// Adds opens and clicks by programs to those by people.
    #[must_use]
    pub fn including_bots(mut self) -> Self {
        for (into, from) in [(Metric::Opened, Metric::BotOpened), (Metric::Clicked, Metric::BotClicked)] {
            self.0[into as usize] += self.0[from as usize];
        }
        self.0[Metric::UniqueOpened as usize] = self.0[Metric::UniqueOpenedWithBots as usize];
        self.0[Metric::UniqueClicked as usize] = self.0[Metric::UniqueClickedWithBots as usize];
        self
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (metric, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            varint::write(metric as u64, &mut bytes);
            varint::write(*count, &mut bytes);
        }
        bytes
    }

    pub(crate) fn add_encoded(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        while !bytes.is_empty() {
            // Fast path: most numbers fit into one byte, and a chart may read millions of them.
            let (metric, count) = match bytes {
                [metric @ 0..0x80, count @ 0..0x80, rest @ ..] => {
                    bytes = rest;
                    (usize::from(*metric), u64::from(*count))
                }
                _ => (varint::read(&mut bytes)? as usize, varint::read(&mut bytes)?),
            };
            // Ignore a metric of a later version.
            if let Some(sum) = self.0.get_mut(metric) {
                *sum += count;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_storage_and_add_up() {
        let mut counts = Counts::default();
        assert!(counts.encode().is_empty() && counts.is_zero());
        (0..300).for_each(|_| counts.count(Metric::Sent));
        counts.count(Metric::UniqueClickedWithBots);
        let mut twice = counts.clone();
        twice.add_encoded(&counts.encode()).unwrap();
        assert_eq!((twice.of(Metric::Sent), twice.of(Metric::UniqueClickedWithBots)), (600, 2));
        counts.add(&counts.clone());
        assert_eq!(counts, twice);
    }

    #[test]
    fn including_bots_adds_opens_and_clicks_by_programs() {
        let mut counts = Counts::default();
        for metric in [Metric::Opened, Metric::UniqueOpened, Metric::UniqueOpenedWithBots, Metric::BotOpened]
        {
            counts.count(metric);
        }
        counts.count(Metric::BotClicked);
        counts.count(Metric::UniqueClickedWithBots);
        let with = counts.clone().including_bots();
        assert_eq!((counts.of(Metric::Opened), with.of(Metric::Opened)), (1, 2));
        assert_eq!((counts.of(Metric::UniqueClicked), with.of(Metric::UniqueClicked)), (0, 1));
        assert_eq!(with.of(Metric::UniqueOpened), 1);
    }
}
