//! Message to be sent: shared pieces, checked once, copied only into the socket's buffer.

use std::sync::Arc;

use bytes::Bytes;
use postroad_model::is_crlf_piece;

/// Whole message, header and body, in one or more pieces (a delivery puts its own header lines before a stored
/// message that other deliveries share). All line ends are CRLF.
#[derive(Debug, Clone)]
pub struct Body {
    parts: Arc<[Bytes]>,
    len: u64,
    is_eight_bit: bool,
    ends_with_newline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// A bare CR or LF, which RFC 5321 2.3.8 forbids: hosts that accept it as a line end could be made to see a second
    /// message.
    #[error("the message holds a CR or LF that is not part of a CRLF, at byte {at}")]
    BareNewline { at: u64 },
}

impl Body {
    pub fn parse(parts: Vec<Bytes>) -> Result<Self, BodyError> {
        let (mut len, mut after_cr) = (0u64, false);
        for part in parts.iter().filter(|part| !part.is_empty()) {
            after_cr = check_newlines(part, after_cr).map_err(|at| BodyError::BareNewline {
                // A CR at the end of the previous part has no index in this part.
                at: at.map_or(len.saturating_sub(1), |at| len + at as u64),
            })?;
            len += part.len() as u64;
        }
        if after_cr {
            return Err(BodyError::BareNewline { at: len - 1 });
        }
        let last = parts.iter().rev().find(|part| !part.is_empty());
        Ok(Self {
            len,
            is_eight_bit: !parts.iter().all(|part| part.is_ascii()),
            // A bare LF is impossible, so the last byte suffices.
            ends_with_newline: last.is_none_or(|part| part.ends_with(b"\n")),
            parts: parts.into(),
        })
    }

    /// Length of the message in bytes, without the dots that dot-stuffing adds.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the message contains a byte above 127 and therefore needs 8BITMIME.
    pub fn is_eight_bit(&self) -> bool {
        self.is_eight_bit
    }

    /// Whether the final dot would be at the start of a line; true also for an empty message.
    pub(crate) fn ends_with_newline(&self) -> bool {
        self.ends_with_newline
    }
}

/// Returns whether the part ends with a CR. Fails with the index of a bare CR or LF, or with `None` if the bare CR is
/// the last byte before this part.
fn check_newlines(part: &[u8], after_cr: bool) -> Result<bool, Option<usize>> {
    if is_crlf_piece(part, after_cr) {
        return Ok(part.last() == Some(&b'\r'));
    }
    if after_cr && part.first() != Some(&b'\n') {
        return Err(None);
    }
    for at in memchr::memchr2_iter(b'\r', b'\n', part) {
        if part[at] == b'\n' {
            let follows_cr = if at == 0 { after_cr } else { part[at - 1] == b'\r' };
            if !follows_cr {
                return Err(Some(at));
            }
        } else if part.get(at + 1).is_some_and(|next| *next != b'\n') {
            return Err(Some(at));
        }
    }
    Ok(part.last() == Some(&b'\r'))
}

/// Read position in a body.
#[derive(Debug, Clone)]
pub(crate) struct BodyCursor {
    parts: Arc<[Bytes]>,
    part: usize,
    offset: usize,
}

impl BodyCursor {
    pub(crate) fn new(body: &Body) -> Self {
        Self { parts: Arc::clone(&body.parts), part: 0, offset: 0 }
    }

    /// Bytes from the position to the end of its part; empty only at the end of the body.
    pub(crate) fn rest(&mut self) -> &[u8] {
        while self.part < self.parts.len() && self.offset == self.parts[self.part].len() {
            self.part += 1;
            self.offset = 0;
        }
        self.parts.get(self.part).map_or(&[], |part| &part[self.offset..])
    }

    /// Moves forward; `count` is at most the length of `rest`.
    pub(crate) fn advance(&mut self, count: usize) {
        self.offset += count;
    }

    /// Moves forward, also over several parts.
    pub(crate) fn skip(&mut self, mut count: usize) {
        while count > 0 {
            let step = self.rest().len().min(count);
            if step == 0 {
                return;
            }
            self.advance(step);
            count -= step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(parts: &[&'static str]) -> Result<Body, BodyError> {
        Body::parse(parts.iter().map(|part| Bytes::from_static(part.as_bytes())).collect())
    }

    #[test]
    fn line_ends_may_be_cut_by_parts() {
        let body = parse(&["a: b\r", "\nc", "", "\r\n"]).unwrap();
        assert_eq!(body.len(), 9);
        assert!(body.ends_with_newline() && !body.is_eight_bit());
        assert!(!parse(&["a\r\nb", ""]).unwrap().ends_with_newline());
        assert!(parse(&["ä"]).unwrap().is_eight_bit());
        assert!(parse(&[]).unwrap().is_empty());
    }

    #[test]
    fn bare_newlines_are_refused_with_their_position() {
        let cases: [(&[&'static str], u64); 7] = [
            (&["ab\ncd"], 2),
            (&["ab\rcd"], 2),
            (&["ab\r"], 2),
            (&["ab\r", "cd"], 2),
            (&["ab", "\ncd"], 2),
            (&["a\r\n", "\n"], 3),
            (&["a\r\r\n"], 1),
        ];
        for (parts, at) in cases {
            assert_eq!(parse(parts).unwrap_err(), BodyError::BareNewline { at }, "{parts:?}");
        }
    }
}
