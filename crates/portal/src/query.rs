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

#[cfg(test)]
mod tests {
    use super::query;

    #[test]
    fn empty_values_are_left_out() {
        assert_eq!(query(&[("q", "a b&c"), ("none", "")]), "?q=a+b%26c");
        assert_eq!(query(&[]), "");
    }
}
