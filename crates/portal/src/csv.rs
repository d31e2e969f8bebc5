//! Cells of CSV files.

/// The text as a quoted cell. A value that a spreadsheet would take for a formula gets an apostrophe.
pub(crate) fn cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn formulas_get_an_apostrophe() {
        assert_eq!(cell("a\"b"), "\"a\"\"b\"");
        assert_eq!(cell("=1+1"), "\"'=1+1\"");
    }
}
