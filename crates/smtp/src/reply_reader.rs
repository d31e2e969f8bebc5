//! Incremental parser of replies. Its memory is bounded, whatever the peer sends.

use crate::reply::Reply;

/// Longest line. RFC 5321 4.5.3.1.5 allows 512 bytes; real hosts put whole policies with links into one line.
const LINE_BYTES_MAX: usize = 4_096;
/// Maximum number of bytes of all lines of one reply.
const REPLY_BYTES_MAX: usize = 32_768;
/// Maximum number of characters of an invalid line that the error quotes.
const QUOTE_CHARS_MAX: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    #[error("the server's reply is longer than any reply should be")]
    TooLong,
    #[error("this is not a reply: {0:?}")]
    Malformed(String),
}

#[derive(Debug, Default)]
pub struct ReplyReader {
    /// Beginning of an incomplete line.
    partial: Vec<u8>,
    lines: Vec<String>,
    /// Bytes of the current reply, including `partial`.
    bytes: usize,
}

impl ReplyReader {
    /// Takes bytes from `input` up to the end of one reply. `None`: all bytes were taken and the reply is
    /// incomplete.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, ReplyError> {
        while !input.is_empty() {
            let end = memchr::memchr(b'\n', input).map(|at| at + 1);
            let (piece, rest) = input.split_at(end.unwrap_or(input.len()));
            *input = rest;
            self.bytes += piece.len();
            // One error for both limits: which limit is exceeded first depends on how the bytes were cut.
            if self.partial.len() + piece.len() > LINE_BYTES_MAX || self.bytes > REPLY_BYTES_MAX {
                return Err(ReplyError::TooLong);
            }
            self.partial.extend_from_slice(piece);
            if end.is_some()
                && let Some(reply) = self.end_line()?
            {
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    fn end_line(&mut self) -> Result<Option<Reply>, ReplyError> {
        let line = std::mem::take(&mut self.partial);
        // A bare LF is accepted too: only this client reads the reply, so nothing can be smuggled.
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let malformed = || ReplyError::Malformed(printable(line).chars().take(QUOTE_CHARS_MAX).collect());
        let (code, rest) = line.split_at_checked(3).ok_or_else(malformed)?;
        let code = parse_code(code).ok_or_else(malformed)?;
        let (is_last, text) = match rest {
            [] => (true, rest), // RFC 5321 4.2: a code without text is a reply too
            [b' ', text @ ..] => (true, text),
            [b'-', text @ ..] => (false, text), // RFC 5321 4.2.1
            _ => return Err(malformed()),
        };
        self.lines.push(printable(text));
        if !is_last {
            return Ok(None);
        }
        self.bytes = 0;
        // The code of the last line counts. RFC 5321 4.2.1 requires the same code in all lines, but some hosts
        // differ, and discarding a reply after the final dot would send the message twice.
        Ok(Some(Reply::new(code, std::mem::take(&mut self.lines))))
    }
}

/// Parses a reply code, whose first digit is 2 to 5 (RFC 5321 4.2.1). 1yz has no use in SMTP.
fn parse_code(digits: &[u8]) -> Option<u16> {
    let [b'2'..=b'5', b'0'..=b'9', b'0'..=b'9'] = digits else { return None };
    Some(digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0')))
}

/// The text in UTF-8 without control characters, because replies end up in logs, terminals and web pages.
fn printable(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(mut input: &[u8]) -> Result<Vec<String>, ReplyError> {
        let (mut reader, mut replies) = (ReplyReader::default(), Vec::new());
        while let Some(reply) = reader.read(&mut input)? {
            replies.push(format!("{} {}", reply.code, reply.lines.join("|")));
        }
        Ok(replies)
    }

    #[test]
    fn replies_of_one_and_many_lines_are_read() {
        let cases: [(&[u8], &[&str]); 7] = [
            (b"250 OK\r\n", &["250 OK"]),
            (b"250-a\r\n250-b\r\n250 c\r\n", &["250 a|b|c"]),
            (b"250 one\r\n354 two\r\n", &["250 one", "354 two"]),
            (b"250\r\n", &["250 "]),
            (b"220 bare line feed\n", &["220 bare line feed"]),
            (b"250-first\r\n550 the last counts\r\n", &["550 first|the last counts"]),
            (b"550 bell\x07 and \xff\r\n", &["550 bell  and \u{fffd}"]),
        ];
        for (input, expected) in cases {
            assert_eq!(read_all(input).unwrap(), expected, "{:?}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn an_invalid_reply_is_quoted() {
        for bad in ["HTTP/1.1 400 Bad Request", "25", "", "2500 x", "150 no such class", "650 x", "250_x"] {
            let error = read_all(format!("{bad}\r\n").as_bytes()).unwrap_err();
            assert_eq!(error, ReplyError::Malformed(bad.to_owned()));
        }
    }

    #[test]
    fn lines_and_replies_without_an_end_are_too_long() {
        assert_eq!(read_all(&[b'2'; 5_000]), Err(ReplyError::TooLong));
        assert_eq!(read_all(&b"250-more\r\n".repeat(5_000)), Err(ReplyError::TooLong));
    }
}
