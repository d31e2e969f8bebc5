//! Dot-stuffing (RFC 5321 4.5.2), done while the body is copied into the caller's buffer: the body is copied only once.

use memchr::memmem;

use crate::body::{Body, BodyCursor};

/// Body sent by DATA, without the final dot.
#[derive(Debug, Clone)]
pub(crate) struct StuffedBody {
    cursor: BodyCursor,
    /// Whether the next byte starts a line, and no dot was added before it yet.
    at_line_start: bool,
}

impl StuffedBody {
    pub(crate) fn new(body: &Body) -> Self {
        Self { cursor: BodyCursor::new(body), at_line_start: true }
    }

    pub(crate) fn is_done(&mut self) -> bool {
        self.cursor.rest().is_empty()
    }

    /// Appends at most `room` bytes.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, mut room: usize) {
        while room > 0 {
            let rest = self.cursor.rest();
            let Some(first) = rest.first() else { return };
            if self.at_line_start && *first == b'.' {
                out.push(b'.'); // RFC 5321 4.5.2, first rule
                room -= 1;
                self.at_line_start = false;
                continue;
            }
            let window = &rest[..rest.len().min(room)];
            // A body has no bare LF, so LF alone marks the start of a line, also where a part or the buffer
            // ends.
            let run = memmem::find(window, b"\n.").map_or(window, |at| &window[..=at]);
            out.extend_from_slice(run);
            room -= run.len();
            self.at_line_start = run.ends_with(b"\n");
            let count = run.len();
            self.cursor.advance(count);
        }
    }
}

/// End of a message sent by DATA (RFC 5321 4.1.1.4): a dot on a line of its own.
pub(crate) fn terminator(body: &Body) -> &'static [u8] {
    if body.ends_with_newline() { b".\r\n" } else { b"\r\n.\r\n" }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn stuff(parts: Vec<Bytes>, room: usize) -> Vec<u8> {
        let body = Body::parse(parts).unwrap();
        let (mut stuffed, mut out) = (StuffedBody::new(&body), Vec::new());
        while !stuffed.is_done() {
            let before = out.len();
            stuffed.write(&mut out, room);
            assert!((1..=room).contains(&(out.len() - before)), "{} bytes into {room}", out.len() - before);
        }
        out.extend_from_slice(terminator(&body));
        out
    }

    #[test]
    fn dots_at_line_starts_are_doubled() {
        let cases: [(&'static str, &str); 7] = [
            ("", ".\r\n"),
            (".", "..\r\n.\r\n"),
            ("a\r\n", "a\r\n.\r\n"),
            ("a", "a\r\n.\r\n"),
            ("a.b\r\n.c\r\n", "a.b\r\n..c\r\n.\r\n"),
            ("\r\n.\r\n", "\r\n..\r\n.\r\n"),
            ("..\r\n.\r\n", "...\r\n..\r\n.\r\n"),
        ];
        for (body, expected) in cases {
            let out = stuff(vec![Bytes::from_static(body.as_bytes())], 4_096);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{body:?}");
        }
    }

    /// Removes stuffed dots as a receiver does, line by line.
    fn unstuff(wire: &[u8]) -> Vec<u8> {
        let text = wire.strip_suffix(b".\r\n").expect("closed by a dot");
        let mut body = Vec::new();
        for line in text.split_inclusive(|b| *b == b'\n') {
            body.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
        }
        body
    }

    proptest! {
        #[test]
        fn unstuffing_gives_the_body(
            lines in prop::collection::vec("[.a\u{e4}]{0,4}", 0..12),
            cuts in prop::collection::vec(0usize..60, 0..4),
            room in 1usize..9,
            open_end in any::<bool>(),
        ) {
            let mut text = lines.join("\r\n");
            if !open_end {
                text.push_str("\r\n");
            }
            let whole = Bytes::from(text.clone().into_bytes());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.sort_unstable();
            cuts.push(whole.len());
            let mut from = 0;
            let parts = cuts.into_iter().map(|to| whole.slice(std::mem::replace(&mut from, to)..to)).collect();

            let wire = stuff(parts, room);
            let end = wire.windows(5).position(|five| five == b"\r\n.\r\n").map(|at| at + 5);
            prop_assert!(end.is_none_or(|end| end == wire.len()), "the end of data comes before the end of the text");
            if !text.is_empty() && !text.ends_with("\r\n") {
                text.push_str("\r\n");
            }
            prop_assert_eq!(unstuff(&wire), text.into_bytes());
        }
    }
}
