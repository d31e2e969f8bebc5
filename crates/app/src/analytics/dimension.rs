//! Values of dimensions, by which analytics can be split and filtered.

use std::collections::HashMap;

use postroad_store::{Dimension, Dimensions, StoredValue};

/// Value of a dimension; `None` for messages without a tag, template and so on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DimensionValue {
    None,
    Text(String),
    /// Id of a credential.
    Number(i64),
}

impl DimensionValue {
    /// The value of a dimension in `set`. `pools` maps pool ids to names.
    pub(super) fn from_set(dimension: Dimension, set: &Dimensions, pools: &HashMap<i64, String>) -> Self {
        match set.value_of(dimension) {
            StoredValue::Text("") | StoredValue::Id(0) => Self::None,
            StoredValue::Text(text) => Self::Text(text.to_owned()),
            StoredValue::Id(id) if dimension == Dimension::Pool => match pools.get(&id) {
                Some(name) => Self::Text(name.clone()),
                // The pool was deleted meanwhile.
                None => Self::Text(format!("#{id}")),
            },
            StoredValue::Id(id) => Self::Number(id),
        }
    }

    /// Parses a filter value: an empty text means `None`, and a credential's id becomes a number.
    pub fn of_text(dimension: Dimension, text: &str) -> Self {
        match text {
            "" => Self::None,
            text if dimension.is_number() => {
                text.parse().map_or_else(|_| Self::Text(text.to_owned()), Self::Number)
            }
            text if dimension.ignores_case() => Self::Text(text.to_ascii_lowercase()),
            text => Self::Text(text.to_owned()),
        }
    }
}

/// Selects messages with one of these values.
#[derive(Debug, Clone)]
pub struct Filter {
    pub dimension: Dimension,
    pub values: Vec<DimensionValue>,
}
