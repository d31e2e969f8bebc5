//! Patterns for codes in the rule file: `550`, `5xx`; `5.1.1`, `x.7.x`, `5.7.606-649`.

use super::EnhancedCode;
use super::code_number::parse_number;

/// A basic code, where `x` stands for any digit.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodePattern([Option<u16>; 3]);

/// An enhanced code, where `x` stands for any number and the last number may be a range.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnhancedPattern {
    class: Span,
    subject: Span,
    detail: Span,
}

/// Numbers from the first to the last, both included.
#[derive(Debug, Clone, Copy)]
struct Span(u16, u16);

impl CodePattern {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut digits = [None; 3];
        if text.len() != digits.len() {
            return None;
        }
        for (digit, c) in digits.iter_mut().zip(text.chars()) {
            *digit = match c {
                'x' => None,
                c => Some(c.to_digit(10)? as u16),
            };
        }
        Some(Self(digits))
    }

    pub(super) fn matches(self, code: u16) -> bool {
        let digits = [code / 100, code / 10 % 10, code % 10];
        self.0.iter().zip(digits).all(|(wanted, digit)| wanted.is_none_or(|wanted| wanted == digit))
    }
}

impl EnhancedPattern {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(Span::parse);
        let pattern = Self { class: parts.next()??, subject: parts.next()??, detail: parts.next()?? };
        parts.next().is_none().then_some(pattern)
    }

    pub(super) fn matches(self, code: EnhancedCode) -> bool {
        self.class.contains(code.class)
            && self.subject.contains(code.subject)
            && self.detail.contains(code.detail)
    }
}

impl Span {
    fn parse(text: &str) -> Option<Self> {
        if text == "x" {
            return Some(Self(0, u16::MAX));
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let span = Self(parse_number(first)?, parse_number(last)?);
        (span.0 <= span.1).then_some(span)
    }

    fn contains(self, number: u16) -> bool {
        (self.0..=self.1).contains(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::{CodePattern, EnhancedPattern};
    use crate::classify::EnhancedCode;

    #[track_caller]
    fn check(pattern: &str, code: &str, matches: bool) {
        let code = EnhancedCode::parse(code).expect("a code");
        let pattern = EnhancedPattern::parse(pattern).expect("a pattern");
        assert_eq!(pattern.matches(code), matches);
    }

    #[test]
    fn enhanced_patterns_match_numbers_wildcards_and_ranges() {
        check("5.1.1", "5.1.1", true);
        check("5.1.1", "4.1.1", false);
        check("x.1.1", "4.1.1", true);
        check("x.7.x", "5.7.515", true);
        check("5.7.606-649", "5.7.606", true);
        check("5.7.606-649", "5.7.649", true);
        check("5.7.606-649", "5.7.650", false);
    }

    #[test]
    fn malformed_patterns_are_refused() {
        for text in ["", "5", "5.1", "5.1.1.1", "5.1.y", "5.1.9-1", "5.1.", "5.1.1000", "5.-.1"] {
            assert!(EnhancedPattern::parse(text).is_none(), "{text}");
        }
        for text in ["", "55", "5500", "5y0", "é0"] {
            assert!(CodePattern::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn basic_patterns_match_digit_by_digit() {
        let pattern = CodePattern::parse("5x0").expect("a pattern");
        assert!(
            pattern.matches(550) && pattern.matches(500) && !pattern.matches(551) && !pattern.matches(450)
        );
    }
}
