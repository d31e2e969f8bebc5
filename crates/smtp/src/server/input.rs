//! Buffer of received bytes, and the command lines in it.

use bytes::{Buf, BytesMut};

use super::replies::StandardReply;

#[derive(Default)]
pub(super) struct Input {
    bytes: BytesMut,
    /// No LF occurs before this index: the next search begins here.
    searched: usize,
    /// Whether the current line is too long, so that it is discarded up to its end.
    is_overlong: bool,
}

impl Input {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn skip(&mut self, count: usize) {
        self.bytes.advance(count);
    }

    /// Next line without its CRLF; `None` while it is incomplete.
    ///
    /// A bare LF also ends a line. Such a line is refused, so that the client learns of its mistake at once.
    pub(super) fn next_line(&mut self, bytes_max: usize) -> Option<Result<String, StandardReply>> {
        let Some(at) = memchr::memchr(b'\n', &self.bytes[self.searched..]) else {
            self.searched = self.bytes.len();
            if self.bytes.len() > bytes_max {
                self.is_overlong = true;
                self.bytes.clear();
                self.searched = 0;
            }
            return None;
        };
        let line = self.bytes.split_to(self.searched + at + 1);
        self.searched = 0;
        let is_overlong = std::mem::take(&mut self.is_overlong) || line.len() > bytes_max;
        Some(if is_overlong { Err(StandardReply::CommandTooLong) } else { read_line(&line) })
    }
}

fn read_line(line: &[u8]) -> Result<String, StandardReply> {
    let Some(text) = line.strip_suffix(b"\r\n").filter(|text| !text.contains(&b'\r')) else {
        return Err(StandardReply::BareNewlineInCommand);
    };
    match str::from_utf8(text) {
        Ok(text) if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => Err(StandardReply::CommandNotText),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Result<String, StandardReply>> {
        let (mut input, mut found) = (Input::default(), Vec::new());
        for piece in pieces {
            input.push(piece);
            found.extend(std::iter::from_fn(|| input.next_line(10)));
        }
        found
    }

    #[test]
    fn only_crlf_ends_a_good_line() {
        let good = |text: &str| Ok(text.to_owned());
        assert_eq!(lines(&[b"a\r\nb\r", b"\n", b"c"]), [good("a"), good("b")]);
        let bare = || Err(StandardReply::BareNewlineInCommand);
        assert_eq!(lines(&[b"a\nb\r\n"]), [bare(), good("b")]);
        assert_eq!(lines(&[b"a\rb\r\n", b"a\r\r\n"]), [bare(), bare()]);
        assert_eq!(
            lines(&[b"a\0\r\n", b"\xff\r\n", b"a\tb\r\n"]),
            vec![Err(StandardReply::CommandNotText); 3]
        );
    }

    #[test]
    fn long_lines_are_refused_once_and_not_kept() {
        let good = Ok("12345678".to_owned());
        let long = Err(StandardReply::CommandTooLong);
        assert_eq!(lines(&[b"12345678\r\n", b"123456789\r\n"]), [good.clone(), long.clone()]);
        assert_eq!(lines(&[b"12345678901", b"234567890123", b"\r\n12345678\r\n"]), [long, good]);
        let mut input = Input::default();
        for _ in 0..1_000 {
            input.push(&[b'x'; 100]);
            assert_eq!(input.next_line(10), None);
            assert!(input.len() <= 10);
        }
    }
}
