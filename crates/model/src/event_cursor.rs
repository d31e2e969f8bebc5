//! Position in a server's event stream. All events up to the position were read; no event can appear before it later.

use std::fmt;

/// Events are ordered by `xact`, the number of the transaction that wrote them, then by `id`. On an engine that commits
/// transactions one after the other, ids alone are in order and `xact` is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventCursor {
    pub xact: i64,
    pub id: i64,
}

impl EventCursor {
    /// Position before the first event.
    pub const START: Self = Self { xact: 0, id: 0 };

    pub fn parse(text: &str) -> Option<Self> {
        let (xact, id) = text.split_once('.')?;
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse().ok()).flatten()
        };
        Some(Self { xact: number(xact)?, id: number(id)? })
    }
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.xact, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for cursor in [EventCursor::START, EventCursor { xact: 7, id: i64::MAX }] {
            assert_eq!(EventCursor::parse(&cursor.to_string()), Some(cursor));
        }
        for text in ["", ".", "1", "1.", ".1", "-1.2", "1.+2", "1.2.3", "9999999999999999999.1"] {
            assert_eq!(EventCursor::parse(text), None, "{text:?}");
        }
    }
}
