//! Transcript of a session for the delivery record: bounded, without secrets and message contents.

use std::collections::VecDeque;
use std::fmt;

use crate::reply::Reply;

const LINE_BYTES_MAX: usize = 600;

/// The newest lines of a session; older lines are dropped at the limit, because the end explains most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    lines: VecDeque<String>,
    bytes: usize,
    bytes_max: usize,
    dropped: usize,
}

impl Transcript {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, bytes_max, dropped: 0 }
    }

    /// Lines such as `S: 250 OK`, `C: QUIT`, `C: [1234 bytes of the message]` and `-- TLS begins`; oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// Number of dropped lines.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Takes the lines so far. A driver does so with each outcome, so that every message has its own transcript.
    #[must_use]
    pub(crate) fn take(&mut self) -> Self {
        let fresh = Self::new(self.bytes_max);
        std::mem::replace(self, fresh)
    }

    pub(crate) fn add_client_line(&mut self, line: &str) {
        self.push(format!("C: {line}"));
    }

    pub(crate) fn add_server_reply(&mut self, reply: &Reply) {
        let last = reply.lines.len().saturating_sub(1);
        for (index, line) in reply.lines.iter().enumerate() {
            let separator = if index == last { ' ' } else { '-' };
            self.push(format!("S: {}{separator}{line}", reply.code));
        }
    }

    pub(crate) fn note(&mut self, text: &str) {
        self.push(format!("-- {text}"));
    }

    fn push(&mut self, mut line: String) {
        if line.len() > LINE_BYTES_MAX {
            line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
            line.push('…');
        }
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.lines.pop_front()
        {
            self.bytes -= oldest.len();
            self.dropped += 1;
        }
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            writeln!(f, "-- {} older lines left out", self.dropped)?;
        }
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_lines_make_room_and_are_counted() {
        let mut transcript = Transcript::new(20);
        for line in ["one", "two", "three", "four"] {
            transcript.add_client_line(line);
        }
        assert_eq!(transcript.to_string(), "-- 2 older lines left out\nC: three\nC: four\n");
        assert_eq!(transcript.take().dropped(), 2);
        assert!(transcript.is_empty());
    }

    #[test]
    fn long_lines_are_cut_at_a_character() {
        let mut transcript = Transcript::new(10_000);
        transcript.add_client_line(&"ä".repeat(1_000));
        assert!(transcript.lines().all(|line| line.len() <= LINE_BYTES_MAX + '…'.len_utf8()));
    }
}
