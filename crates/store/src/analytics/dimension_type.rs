//! Types of the dimensions' values: texts, and ids.

use crate::Result;
use crate::sql::Row;

/// Value of a dimension. An empty text or the id 0 means "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredValue<'a> {
    Text(&'a str),
    Id(i64),
}

/// The type of a dimension's values.
pub(super) trait DimensionType: Sized {
    const IS_TEXT: bool;

    fn read(row: &Row, at: usize) -> Result<Self>;
    fn stored(&self) -> StoredValue<'_>;
}

impl DimensionType for String {
    const IS_TEXT: bool = true;

    fn read(row: &Row, at: usize) -> Result<Self> {
        row.text(at)
    }

    fn stored(&self) -> StoredValue<'_> {
        StoredValue::Text(self)
    }
}

impl DimensionType for i64 {
    const IS_TEXT: bool = false;

    fn read(row: &Row, at: usize) -> Result<Self> {
        row.int(at)
    }

    fn stored(&self) -> StoredValue<'_> {
        StoredValue::Id(*self)
    }
}
