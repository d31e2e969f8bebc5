//! What a request does to a setting that may also be absent.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// Nothing was said of it.
    #[default]
    Keep,
    /// Take it away.
    Clear,
    Set(T),
}

impl<T> Change<T> {
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// What it is to be, if anything.
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    /// `None` if `parse` does not take the value.
    pub fn and_then<U>(self, parse: impl FnOnce(T) -> Option<U>) -> Option<Change<U>> {
        match self {
            Self::Keep => Some(Change::Keep),
            Self::Clear => Some(Change::Clear),
            Self::Set(value) => parse(value).map(Change::Set),
        }
    }
}
