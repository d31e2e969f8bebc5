//! Change of an optional setting: keep, clear or set.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// Keep the value, because the request does not mention it.
    #[default]
    Keep,
    /// Remove the value.
    Clear,
    Set(T),
}

/// `None` becomes `Clear`.
impl<T> From<Option<T>> for Change<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Clear, Self::Set)
    }
}

impl<T> Change<T> {
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// New value, if one is set.
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    /// Parses the new value; `None` if `parse` refuses it.
    pub fn and_then<U>(self, parse: impl FnOnce(T) -> Option<U>) -> Option<Change<U>> {
        match self {
            Self::Keep => Some(Change::Keep),
            Self::Clear => Some(Change::Clear),
            Self::Set(value) => parse(value).map(Change::Set),
        }
    }
}
