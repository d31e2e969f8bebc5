//! Dimensions by which messages are counted. The macro `dimensions!` declares all of them.
//!
//! A new dimension needs an entry in this macro call. ARCHITECTURE.md ("an analytics dimension") lists the other files
//! to change.

use serde_json::{Value, json};

use super::dimension_type::{DimensionType, StoredValue};
use crate::Result;
use crate::sql::Row;

/// Maximum number of distinct values of each limited dimension per server: tags, templates, source addresses.
pub const LIMITED_VALUES_MAX: usize = 1_000;
/// The value under which values beyond the limit are counted.
pub const OTHER_VALUES: &str = "(other)";

/// A column of `counter_dimensions`, and what users see of the column's dimension.
pub(crate) struct DimensionColumn {
    pub(crate) name: &'static str,
    pub(crate) is_text: bool,
    pub(super) public_name: &'static str,
    pub(super) label: &'static str,
    pub(super) description: &'static str,
    pub(super) ignores_case: bool,
    pub(super) is_limited: bool,
}

/// A dimension that may have at most `LIMITED_VALUES_MAX` values per server.
pub(crate) struct LimitedDimension {
    pub(crate) breakdown: Breakdown,
    pub(crate) column: &'static str,
    /// Plural for log lines.
    pub(crate) plural: &'static str,
}

/// Whether an optional part of an entry is present.
macro_rules! is_present {
    ($($part:tt)*) => {
        !stringify!($($part)*).is_empty()
    };
}

/// For each dimension: its description for the API; its name in code with the number of its breakdown in the database;
/// its column; its public name and its label; whether filters match in any letter case; the plural of its values if
/// their number is limited; and whether it differs between the attempts of a message. An event after delivery belongs
/// to the attempt that delivered the message.
macro_rules! dimensions {
    ($($(#[doc = $doc:literal])* $dimension:ident = $code:literal, $column:ident: $kind:ty, $name:literal $label:literal
       $(, any $case:ident)? $(, limited $plural:literal)? $(, of $attempts:ident)?;)+) => {
        /// A property of messages or attempts by which analytics can be split and filtered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Dimension {
            $($(#[doc = $doc])* $dimension,)+
        }

        impl Dimension {
            pub const ALL: [Self; Dimensions::COLUMNS.len()] = [$(Self::$dimension,)+];

            /// Breakdown of the counters that distinguish only this dimension.
            pub const fn breakdown(self) -> Breakdown {
                match self { $(Self::$dimension => Breakdown::$dimension,)+ }
            }
        }

        /// Values of the dimensions of a message. Texts are empty and ids 0 for "none".
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct Dimensions {
            $($(#[doc = $doc])* pub $column: $kind,)+
        }

        impl Dimensions {
            pub(crate) const COLUMNS: &[DimensionColumn] = &[$(DimensionColumn {
                name: stringify!($column),
                is_text: <$kind as DimensionType>::IS_TEXT,
                public_name: $name,
                label: $label,
                description: concat!($($doc),*).trim_ascii(),
                ignores_case: is_present!($($case)?),
                is_limited: is_present!($($plural)?),
            },)+];

            pub(crate) const LIMITED: &[LimitedDimension] = &[$($(LimitedDimension {
                breakdown: Breakdown::$dimension,
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

            pub fn value_of(&self, dimension: Dimension) -> StoredValue<'_> {
                match dimension { $(Dimension::$dimension => self.$column.stored(),)+ }
            }

            /// The value of a limited dimension.
            pub(crate) fn limited_value_mut(&mut self, limited: &LimitedDimension) -> Option<&mut String> {
                $($(if limited.plural == $plural {
                    return Some(&mut self.$column);
                })?)+
                None
            }
        }

        /// Which dimensions a group of counters distinguishes. A chart by tag reads the counters of single tags, not
        /// those of every combination that includes a tag.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Breakdown {
            /// No dimensions: everything is counted together, under the number 0.
            Total,
            $($(#[doc = $doc])* $dimension,)+
            /// All dimensions of messages, for queries about more than one dimension.
            Full,
            /// All dimensions, including dimensions of attempts. Separate from `Full`, because it has several times
            /// as many combinations of values.
            FullByAttempt,
        }

        impl Breakdown {
            pub const ALL: [Self; Dimensions::COLUMNS.len() + 3] =
                [Self::Total, $(Self::$dimension,)+ Self::Full, Self::FullByAttempt];

            /// Breakdowns whose combinations of values are numbered in the database: all except `Total`.
            pub const NUMBERED: [Self; Dimensions::COLUMNS.len() + 2] =
                [$(Self::$dimension,)+ Self::Full, Self::FullByAttempt];

            /// Its number in the database (column `shape`).
            pub(crate) const fn code(self) -> i64 {
                match self {
                    Self::Total => 0,
                    $(Self::$dimension => $code,)+
                    // Stored, so it must not change when dimensions are added.
                    Self::Full => 63,
                    Self::FullByAttempt => 511,
                }
            }

            /// Whether it is the breakdown of a dimension that differs between the attempts of a message.
            pub const fn is_of_attempts(self) -> bool {
                match self {
                    $(Self::$dimension => is_present!($($attempts)?),)+
                    Self::Total | Self::Full | Self::FullByAttempt => false,
                }
            }

            /// `full` with only the dimensions that this breakdown distinguishes; the others are empty.
            pub(crate) fn part_of(self, full: &Dimensions) -> Dimensions {
                match self {
                    Self::Total => Dimensions::default(),
                    $(Self::$dimension => {
                        Dimensions { $column: full.$column.clone(), ..Dimensions::default() }
                    })+
                    Self::Full => {
                        let mut part = full.clone();
                        $(if Self::$dimension.is_of_attempts() {
                            part.$column = <$kind>::default();
                        })+
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
    Domain = 1, domain: String, "domain" "Sender domain", any case;
    Tag = 2, tag: String, "tag" "Tag", limited "tags";
    /// Mail provider of the recipient's domain, such as `google`; `other` if unknown.
    Provider = 4, provider: String, "recipient_provider" "Provider", any case;
    Template = 8, template: String, "template" "Template", limited "templates";
    /// Name of the pool.
    Pool = 16, pool_id: i64, "ip_pool" "IP pool";
    /// Id of the credential.
    Credential = 32, credential_id: i64, "credential" "Key";
    /// Why attempts failed or messages bounced, such as `spam_block`; empty for messages that did not fail.
    BounceClass = 64, bounce_class: String, "bounce_class" "Bounce class", of attempts;
    /// Address of this service from which the attempt was made.
    SourceIp = 128, source_ip: String, "source_ip" "Sending address", limited "source addresses", of attempts;
    /// `TLSv1.3`, `TLSv1.2`, `other`; empty for attempts without TLS.
    TlsVersion = 256, tls_version: String, "tls_version" "TLS version", of attempts;
}

/// Writes a text for each column of the dimensions, in their order.
pub(crate) fn each_column(write: impl Fn(usize, &DimensionColumn) -> String) -> String {
    Dimensions::COLUMNS.iter().enumerate().map(|(index, column)| write(index, column)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakdown_keeps_only_its_own_dimensions_and_codes_are_unique() {
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
