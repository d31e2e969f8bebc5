//! `LIKE` patterns that find a part of a name.

/// Pattern for `LIKE … ESCAPE '\'` that matches texts with `part` anywhere.
pub(crate) fn like_pattern(part: &str) -> String {
    let mut pattern = String::with_capacity(part.len() + 2);
    pattern.push('%');
    for character in part.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_in_a_name_are_escaped() {
        assert_eq!(like_pattern("Shop"), "%Shop%");
        assert_eq!(like_pattern(r"50%_\"), r"%50\%\_\\%");
        assert_eq!(like_pattern(""), "%%");
    }
}
