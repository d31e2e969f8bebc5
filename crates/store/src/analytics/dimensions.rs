//! Dimensions by which messages are counted. The macro `dimensions!` declares all of them.
//!
//! A new dimension needs an entry there. ARCHITECTURE.md ("an analytics dimension") lists the other places to change.

use serde_json::{Value, json};

use crate::Result;
use crate::sql::Row;

/// Maximum number of distinct labels of each limited dimension per server: tags, templates, source addresses.
pub const LABELS_MAX: usize = 1_000;
/// The label under which labels beyond the limit are counted.
pub const OTHER_LABELS: &str = "(other)";

/// A column of `counter_dimensions`.
pub(crate) struct DimensionColumn {
    pub(crate) name: &'static str,
    pub(crate) is_text: bool,
}

/// A dimension that may have at most `LABELS_MAX` values per server.
pub(crate) struct LimitedDimension {
    pub(crate) breakdown: Breakdown,
    pub(crate) column: &'static str,
    /// Plural for log lines.
    pub(crate) plural: &'static str,
}

/// The type of a dimension's values.
trait DimensionType: Sized {
    const IS_TEXT: bool;

    fn read(row: &Row, at: usize) -> Result<Self>;
}

impl DimensionType for String {
    const IS_TEXT: bool = true;

    fn read(row: &Row, at: usize) -> Result<Self> {
        row.text(at)
    }
}

impl DimensionType for i64 {
    const IS_TEXT: bool = false;

    fn read(row: &Row, at: usize) -> Result<Self> {
        row.int(at)
    }
}

/// Clears a column if it is marked `of attempts`.
macro_rules! clear {
    (attempts $column:expr) => {
        $column.clear()
    };
}

/// `true` for a dimension that is marked `of attempts`.
macro_rules! is_of {
    (attempts) => {
        true
    };
}

/// For each dimension: its breakdown with the number in the database, its column, the plural of its values if their
/// number is limited, and whether it differs between the attempts of a message.
macro_rules! dimensions {
    ($($(#[$doc:meta])* $breakdown:ident = $code:literal, $column:ident: $kind:ty $(, limited $plural:literal)? $(, of $attempts:ident)?;)+) => {
        /// Values of the dimensions of a message. Texts are empty and ids 0 for "none".
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct Dimensions {
            $($(#[$doc])* pub $column: $kind,)+
        }

        impl Dimensions {
            pub(crate) const COLUMNS: &[DimensionColumn] =
                &[$(DimensionColumn { name: stringify!($column), is_text: <$kind as DimensionType>::IS_TEXT },)+];

            pub(crate) const LIMITED: &[LimitedDimension] = &[$($(LimitedDimension {
                breakdown: Breakdown::$breakdown,
                column: stringify!($column),
                plural: $plural,
            },)?)+];

            /// The values in the order of `COLUMNS`.
            pub(crate) fn values(&self) -> Vec<Value> {
                vec![$(json!(self.$column),)+]
            }

            /// Reads `COLUMNS`, which begin at `first`.
            pub(crate) fn read(row: &Row, first: usize) -> Result<Self> {
                let mut at = first..;
                let mut next = || at.next().unwrap_or_default();
                Ok(Self { $($column: DimensionType::read(row, next())?,)+ })
            }

            /// The value of a limited dimension.
            pub(crate) fn label_mut(&mut self, limited: &LimitedDimension) -> Option<&mut String> {
                $($(if limited.plural == $plural {
                    return Some(&mut self.$column);
                })?)+
                None
            }
        }

        /// Dimensions that a set of counters distinguishes. A chart by tag reads the counters of single tags, not those
        /// of every combination that includes a tag.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Breakdown {
            /// No dimensions: everything is counted together. Its only set has the number 0.
            Total,
            $($(#[$doc])* $breakdown,)+
            /// All dimensions of a message, for queries about more than one.
            Full,
            /// All dimensions, including dimensions of attempts. Separate from `Full`, because it has several times
            /// as many sets.
            FullByAttempt,
        }

        impl Breakdown {
            pub const ALL: [Self; Dimensions::COLUMNS.len() + 3] =
                [Self::Total, $(Self::$breakdown,)+ Self::Full, Self::FullByAttempt];

            /// Breakdowns whose sets are numbered.
            pub const NUMBERED: [Self; Dimensions::COLUMNS.len() + 2] =
                [$(Self::$breakdown,)+ Self::Full, Self::FullByAttempt];

            /// Its number in the database (column `shape`).
            pub(crate) const fn code(self) -> i64 {
                match self {
                    Self::Total => 0,
                    $(Self::$breakdown => $code,)+
                    // Stored, so it must not change when dimensions are added.
                    Self::Full => 63,
                    Self::FullByAttempt => 511,
                }
            }

            /// Whether it is the breakdown of a dimension that differs between the attempts of a message.
            pub const fn is_of_attempts(self) -> bool {
                match self {
                    $($(Self::$breakdown => is_of!($attempts),)?)+
                    _ => false,
                }
            }

            /// `full` with only the dimensions that this breakdown distinguishes; the others are empty.
            pub(crate) fn part_of(self, full: &Dimensions) -> Dimensions {
                match self {
                    Self::Total => Dimensions::default(),
                    $(Self::$breakdown => {
                        Dimensions { $column: full.$column.clone(), ..Dimensions::default() }
                    })+
                    Self::Full => {
                        let mut part = full.clone();
                        $($(clear!($attempts part.$column);)?)+
                        part
                    }
                    Self::FullByAttempt => full.clone(),
                }
            }
        }
    };
}

dimensions! {
    /// Domain of the From header.
    Domain = 1, domain: String;
    Tag = 2, tag: String, limited "tags";
    /// Operator of the recipient domain's mail servers.
    Provider = 4, provider: String;
    Template = 8, template: String, limited "templates";
    Pool = 16, pool_id: i64;
    Credential = 32, credential_id: i64;
    /// Why an attempt failed, or why the message bounced.
    BounceClass = 64, bounce_class: String, of attempts;
    /// Source address of the attempt; for events after delivery, of the attempt that delivered.
    SourceIp = 128, source_ip: String, limited "source addresses", of attempts;
    /// TLS version of the attempt; for events after delivery, of the attempt that delivered.
    TlsVersion = 256, tls_version: String, of attempts;
}

/// Writes a text for each column of the dimensions, in their order.
pub(crate) fn each_column(write: impl Fn(usize, &DimensionColumn) -> String) -> String {
    Dimensions::COLUMNS.iter().enumerate().map(|(index, column)| write(index, column)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakdown_keeps_its_own_dimension_and_no_code_is_given_twice() {
        let full = Dimensions { tag: "a".to_owned(), pool_id: 7, ..Dimensions::default() };
        assert_eq!(
            Breakdown::Tag.part_of(&full),
            Dimensions { tag: "a".to_owned(), ..Dimensions::default() }
        );
        assert_eq!(Breakdown::Full.part_of(&full), full);
        let failed = Dimensions { bounce_class: "full".to_owned(), ..full.clone() };
        assert_eq!(Breakdown::Full.part_of(&failed), full);
        assert_eq!(Breakdown::FullByAttempt.part_of(&failed), failed);
        assert_eq!(Breakdown::Total.part_of(&full), Dimensions::default());
        let mut codes: Vec<i64> = Breakdown::ALL.into_iter().map(Breakdown::code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Breakdown::ALL.len());
    }
}
