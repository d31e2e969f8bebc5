//! Policy file (RFC 8461 3.2) and the hosts it allows (4.1).

use std::time::Duration;

const MAX_AGE_SECS_MAX: u64 = 31_557_600;
/// Maximum number of hosts of a policy. Policies stay in memory for up to a year.
const PATTERNS_MAX: usize = 128;
/// Longest host of a policy: `*.` and a name of the greatest length (RFC 1035 2.3.4).
const PATTERN_BYTES_MAX: usize = 2 + 253;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    None,
    Testing,
    Enforce,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    pub mode: Mode,
    /// Host names in lower case, or `*.` and a suffix.
    pub mx: Vec<String>,
    /// Time for which the policy is valid; at most a year.
    pub max_age: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("the policy is not UTF-8 text")]
    Encoding,
    #[error("the policy has no `version: STSv1`")]
    Version,
    #[error("the policy has no mode of enforce, testing or none")]
    Mode,
    #[error("the policy has no max_age in seconds")]
    MaxAge,
    #[error("the policy names no mx")]
    NoMx,
    #[error("the policy names more than {PATTERNS_MAX} mx")]
    ManyMx,
    #[error("the policy names an mx of more than {PATTERN_BYTES_MAX} bytes, which is no host")]
    LongMx,
}

impl Policy {
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        let text = str::from_utf8(bytes).map_err(|_| PolicyError::Encoding)?;
        let fields: Vec<(&str, &str)> = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        // RFC 8461 3.2: of repeated fields the first counts, except mx.
        let first = |wanted: &str| fields.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
        if first("version") != Some("STSv1") {
            return Err(PolicyError::Version);
        }
        let mode = match first("mode") {
            Some("enforce") => Mode::Enforce,
            Some("testing") => Mode::Testing,
            Some("none") => Mode::None,
            _ => return Err(PolicyError::Mode),
        };
        let max_age = first("max_age").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let max_age_secs: u64 = max_age.and_then(|digits| digits.parse().ok()).ok_or(PolicyError::MaxAge)?;
        let mx = fields.iter().filter(|(key, value)| *key == "mx" && !value.is_empty());
        let mx: Vec<String> = mx.map(|(_, value)| value.trim_end_matches('.').to_ascii_lowercase()).collect();
        if mx.is_empty() && mode != Mode::None {
            return Err(PolicyError::NoMx);
        }
        if mx.len() > PATTERNS_MAX {
            return Err(PolicyError::ManyMx);
        }
        if mx.iter().any(|pattern| pattern.len() > PATTERN_BYTES_MAX) {
            return Err(PolicyError::LongMx);
        }
        Ok(Self { mode, mx, max_age: Duration::from_secs(max_age_secs.min(MAX_AGE_SECS_MAX)) })
    }

    /// Whether mail may go to this MX host. A `*` matches one label, as in certificates.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.mx.iter().any(|pattern| match pattern.strip_prefix("*.") {
            Some(end) => host.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == end),
            None => host == *pattern,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_is_read() {
        let text = "version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.Example.NET\r\n\
                    mx: backupmx.example.com\r\nmax_age: 604800\r\n";
        let policy = Policy::parse(text.as_bytes()).unwrap();
        assert_eq!((policy.mode, policy.max_age), (Mode::Enforce, Duration::from_hours(168)));
        assert_eq!(policy.mx, ["mail.example.com", "*.example.net", "backupmx.example.com"]);
    }

    #[test]
    fn order_repetition_and_unknown_fields_are_taken_as_the_rfc_says() {
        let text =
            "max_age:99999999999\nfuture: thing\nmode: testing\nmode: none\nmx: a.example\nversion: STSv1";
        let policy = Policy::parse(text.as_bytes()).unwrap();
        assert_eq!((policy.mode, policy.max_age), (Mode::Testing, Duration::from_hours(8_766)));
        assert_eq!(Policy::parse(b"version: STSv1\nmode: none\nmax_age: 0").unwrap().mode, Mode::None);
    }

    #[test]
    fn text_without_a_required_field_is_no_policy() {
        let many = format!("version: STSv1\nmode: enforce\nmax_age: 1\n{}", "mx: a.example\n".repeat(129));
        let named = |bytes: usize| {
            let host = "a".repeat(bytes - ".example".len());
            format!("version: STSv1\nmode: enforce\nmax_age: 1\nmx: {host}.example\nmx: a.example")
        };
        assert!(Policy::parse(named(PATTERN_BYTES_MAX).as_bytes()).is_ok());
        let long = named(PATTERN_BYTES_MAX + 1);
        for (text, error) in [
            ("", PolicyError::Version),
            ("<html>version: STSv1</html>", PolicyError::Version),
            ("version: STSv2\nmode: enforce\nmx: a.example\nmax_age: 1", PolicyError::Version),
            ("version: STSv1\nmx: a.example\nmax_age: 1", PolicyError::Mode),
            ("version: STSv1\nmode: strict\nmx: a.example\nmax_age: 1", PolicyError::Mode),
            ("version: STSv1\nmode: enforce\nmx: a.example", PolicyError::MaxAge),
            ("version: STSv1\nmode: enforce\nmx: a.example\nmax_age: -1", PolicyError::MaxAge),
            ("version: STSv1\nmode: enforce\nmx: a.example\nmax_age: +1", PolicyError::MaxAge),
            ("version: STSv1\nmode: enforce\nmx: a.example\nmax_age:", PolicyError::MaxAge),
            ("version: STSv1\nmode: enforce\nmax_age: 1", PolicyError::NoMx),
            (&many, PolicyError::ManyMx),
            (&long, PolicyError::LongMx),
        ] {
            assert_eq!(Policy::parse(text.as_bytes()), Err(error), "{text}");
        }
        assert_eq!(Policy::parse(b"version: STSv1\xff"), Err(PolicyError::Encoding));
    }

    #[test]
    fn a_star_matches_one_label() {
        let mx = vec!["mail.example.com".to_owned(), "*.example.net".to_owned()];
        let policy = Policy { mode: Mode::Enforce, mx, max_age: Duration::ZERO };
        for host in ["mail.example.com", "MAIL.example.com.", "a.example.net", "B.Example.NET"] {
            assert!(policy.matches(host), "{host}");
        }
        for host in
            ["a.mail.example.com", "example.com", "example.net", "a.b.example.net", ".example.net", ""]
        {
            assert!(!policy.matches(host), "{host}");
        }
    }
}
