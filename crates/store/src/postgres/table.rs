//! Rows of a batch as columns: one array per column, one statement per table.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A Rust type that a column can have, with its PostgreSQL type.
pub(crate) trait Column {
    const SQL_TYPE: &'static str;
}

impl Column for i64 {
    const SQL_TYPE: &'static str = "bigint";
}

impl Column for bool {
    const SQL_TYPE: &'static str = "bool";
}

impl Column for Cow<'_, str> {
    const SQL_TYPE: &'static str = "text";
}

impl Column for &[u8] {
    const SQL_TYPE: &'static str = "bytea";
}

impl<T: Column> Column for Option<T> {
    const SQL_TYPE: &'static str = T::SQL_TYPE;
}

/// Replaces `{columns}` by the names of the columns, and `{arrays}` by an `unnest` of one array parameter per column.
pub(crate) fn statement_text(text: &str, columns: &[(&str, &str)]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut arrays = "unnest(".to_owned();
    for (number, (_, sql_type)) in columns.iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        let _ = write!(arrays, "{comma}${}::{sql_type}[]", number + 1);
    }
    arrays.push(')');
    text.replace("{columns}", &names.join(", ")).replace("{arrays}", &arrays)
}

/// Defines a struct that collects a batch's rows of one table, and a struct for one such row. `push` takes a whole row,
/// so that a forgotten column does not compile.
macro_rules! table {
    ($table:ident $(<$life:lifetime>)? of $row:ident, $text:literal, $($column:ident: $kind:ty),+ $(,)?) => {
        pub(crate) struct $row $(<$life>)? {
            $(pub(crate) $column: $kind,)+
        }

        #[derive(Default)]
        pub(crate) struct $table $(<$life>)? {
            $($column: Vec<$kind>,)+
        }

        impl $(<$life>)? $table $(<$life>)? {
            pub(crate) fn push(&mut self, row: $row $(<$life>)?) {
                $(self.$column.push(row.$column);)+
            }

            /// The statement that writes all rows; `None` without rows.
            pub(crate) fn statement(&self) -> Option<$crate::postgres::pipeline::Statement<'_>> {
                static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
                if [$(self.$column.len()),+][0] == 0 {
                    return None;
                }
                let text = TEXT.get_or_init(|| {
                    let columns =
                        [$((stringify!($column), <$kind as $crate::postgres::table::Column>::SQL_TYPE)),+];
                    $crate::postgres::table::statement_text($text, &columns)
                });
                Some((text.as_str(), vec![$(&self.$column),+]))
            }
        }
    };
}
pub(crate) use table;

#[cfg(test)]
mod tests {
    use super::*;

    table! { Notes<'a> of Note, "INSERT INTO notes ({columns}) SELECT * FROM {arrays}",
        id: i64, text: Option<Cow<'a, str>>,
    }

    #[test]
    fn statement_names_every_column_with_its_type() {
        let mut notes = Notes::default();
        assert!(notes.statement().is_none());
        notes.push(Note { id: 7, text: Some("seven".into()) });
        let (text, params) = notes.statement().expect("there is a row");
        assert_eq!(text, "INSERT INTO notes (id, text) SELECT * FROM unnest($1::bigint[], $2::text[])");
        assert_eq!(params.len(), 2);
    }
}
