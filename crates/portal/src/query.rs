//! Queries of links.

/// A query string of the pairs whose value is not empty, with its question mark.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let mut text = form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        text.append_pair(name, value);
    }
    let text = text.finish();
    if text.is_empty() { text } else { format!("?{text}") }
}

/// Query string of the page after the last row of a list, if there is one; `q` is the search of the list, empty for
/// none.
pub(crate) fn page_after(q: &str, last: Option<impl ToString>, has_more: bool) -> Option<String> {
    last.filter(|_| has_more).map(|last| query(&[("q", q), ("after", &last.to_string())]))
}

#[cfg(test)]
mod tests {
    use super::{page_after, query};

    #[test]
    fn empty_values_are_left_out() {
        assert_eq!(query(&[("q", "a b&c"), ("none", "")]), "?q=a+b%26c");
        assert_eq!(query(&[]), "");
        assert_eq!(page_after("", Some(7), true).as_deref(), Some("?after=7"));
        assert_eq!(page_after("a", Some(7), true).as_deref(), Some("?q=a&after=7"));
        assert_eq!((page_after("", Some(7), false), page_after("", None::<i64>, true)), (None, None));
    }
}
