//! JSON number that keeps every digit as sent; converted only when a value is requested.

/// Text of a number, checked by the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number<'a>(&'a str);

impl<'a> Number<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The number's text as it was sent.
    pub(crate) fn as_str(self) -> &'a str {
        self.0
    }

    /// Whether the number is written with a fraction or an exponent.
    pub(crate) fn is_float(self) -> bool {
        self.0.contains(['.', 'e', 'E'])
    }

    pub(crate) fn as_i64(self) -> Option<i64> {
        self.0.parse().ok()
    }

    pub(crate) fn as_u64(self) -> Option<u64> {
        self.0.parse().ok()
    }

    pub(crate) fn as_f64(self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// Canonical text: equal for equal floats, however they were written. An integer of up to 64 bits keeps its
    /// digits, so `1` and `1.0` differ; a larger integer counts as a float.
    pub(crate) fn canonical(self) -> String {
        if self.as_i64().is_some() || self.as_u64().is_some() {
            return self.0.to_owned();
        }
        let value = serde_json::Number::from_f64(self.as_f64());
        value.map_or_else(|| self.0.to_owned(), |value| value.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_converted_and_equal_floats_have_one_canonical_text() {
        let number = Number::new;
        assert!(number("1.0").is_float() && number("1e3").is_float() && !number("-12").is_float());
        assert_eq!((number("-12").as_i64(), number("-12").as_u64()), (Some(-12), None));
        assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
        assert_eq!(number("99999999999999999999").as_i64(), None);
        assert_eq!(number("1.50").canonical(), number("15e-1").canonical());
        assert_eq!(number("17").canonical(), "17");
    }
}
