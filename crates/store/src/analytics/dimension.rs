//! A dimension as users see it: its names, and how its values are compared.

use super::dimension_type::StoredValue;
use super::dimensions::{Dimension, DimensionColumn, Dimensions, OTHER_VALUES};

impl Dimension {
    const fn column(self) -> &'static DimensionColumn {
        &Dimensions::COLUMNS[self as usize]
    }

    /// Public name, in requests, answers and links.
    pub const fn as_str(self) -> &'static str {
        self.column().public_name
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.as_str() == name)
    }

    /// Name for people.
    pub const fn label(self) -> &'static str {
        self.column().label
    }

    /// What a filter by this dimension compares; empty if that is obvious.
    pub const fn description(self) -> &'static str {
        self.column().description
    }

    /// Whether its public values are numbers. Pools are shown by their names.
    pub fn is_number(self) -> bool {
        !self.column().is_text && self != Self::Pool
    }

    /// Whether filters match its values in any letter case.
    pub const fn ignores_case(self) -> bool {
        self.column().ignores_case
    }

    /// Whether the value of this dimension in `set` is `OTHER_VALUES`, which stands for all values beyond the limit.
    pub fn is_beyond_limit_in(self, set: &Dimensions) -> bool {
        self.column().is_limited && set.value_of(self) == StoredValue::Text(OTHER_VALUES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dimension_is_found_by_its_public_name() {
        for dimension in Dimension::ALL {
            assert_eq!(Dimension::parse(dimension.as_str()), Some(dimension));
        }
    }

    #[test]
    fn values_beyond_the_limit_are_recognised_in_limited_dimensions() {
        let other = || OTHER_VALUES.to_owned();
        let set = Dimensions { tag: other(), domain: other(), pool_id: 7, ..Dimensions::default() };
        let beyond = Dimension::ALL.into_iter().filter(|dimension| dimension.is_beyond_limit_in(&set));
        assert_eq!(beyond.collect::<Vec<_>>(), [Dimension::Tag]);
    }
}
