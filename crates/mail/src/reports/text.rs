//! Bounded stream of a report's text: unpacked in small pieces, decoded as UTF-8, charged to the budget before use.
//!
//! On failure it returns an [`io::Error`] that carries the [`ReportProblem`]; [`problem_in`] extracts it.

use std::io::{self, BufRead, Read};

use encoding_rs::{Decoder, UTF_8};

use super::{ReportProblem, UnpackBudget};

const RAW_BUFFER_BYTES: usize = 8 << 10;
/// An invalid byte becomes U+FFFD, which has three bytes; the decoder needs a little more room than that.
const TEXT_BUFFER_BYTES: usize = 3 * RAW_BUFFER_BYTES + 16;

pub(super) struct ReportText<'a, R> {
    source: R,
    budget: &'a mut UnpackBudget,
    /// Bytes that this file may still have, regardless of the budget.
    file_bytes_left: usize,
    /// The problem to report if the file has more bytes than that.
    file_limit_problem: ReportProblem,
    /// Bytes that the parser may still read until the next call of `start_piece`.
    piece_bytes_left: usize,
    decoder: Decoder,
    raw: Box<[u8]>,
    text: Box<[u8]>,
    /// `start..end` is the part of `text` that was not consumed yet.
    start: usize,
    end: usize,
    is_ended: bool,
}

impl<'a, R: Read> ReportText<'a, R> {
    pub(super) fn new(
        source: R,
        budget: &'a mut UnpackBudget,
        file_bytes_max: usize,
        file_limit_problem: ReportProblem,
    ) -> Self {
        Self {
            source,
            budget,
            file_bytes_left: file_bytes_max,
            file_limit_problem,
            piece_bytes_left: usize::MAX,
            decoder: UTF_8.new_decoder(),
            raw: vec![0; RAW_BUFFER_BYTES].into(),
            text: vec![0; TEXT_BUFFER_BYTES].into(),
            start: 0,
            end: 0,
            is_ended: false,
        }
    }

    /// Allows the parser this many bytes until the next call, which limits the size of one piece in memory.
    pub(super) fn start_piece(&mut self, bytes_max: usize) {
        self.piece_bytes_left = bytes_max;
    }

    /// Returns the first byte that is not white space, without consuming it; `None` at the end.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let text = self.fill_buf()?;
            if text.is_empty() {
                return Ok(None);
            }
            if let Some(at) = text.iter().position(|byte| !byte.is_ascii_whitespace()) {
                let first = text[at];
                self.consume(at);
                return Ok(Some(first));
            }
            let all = text.len();
            self.consume(all);
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        (self.start, self.end) = (0, 0);
        while self.end == 0 && !self.is_ended {
            let count = self.source.read(&mut self.raw)?;
            self.charge(count)?;
            self.is_ended = count == 0;
            // `text` has room for whatever `raw` decodes to, so all of `raw` is decoded.
            let (_, _, written, _) =
                self.decoder.decode_to_utf8(&self.raw[..count], &mut self.text, self.is_ended);
            self.end = written;
        }
        Ok(())
    }

    fn charge(&mut self, count: usize) -> io::Result<()> {
        let Some(left) = self.file_bytes_left.checked_sub(count) else {
            return Err(io::Error::other(self.file_limit_problem));
        };
        self.file_bytes_left = left;
        self.budget.charge(count).map_err(io::Error::other)
    }
}

impl<R: Read> Read for ReportText<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let text = self.fill_buf()?;
        let count = text.len().min(buffer.len());
        buffer[..count].copy_from_slice(&text[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read> BufRead for ReportText<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.piece_bytes_left == 0 {
            return Err(io::Error::other(ReportProblem::Damaged("an element is too long")));
        }
        if self.start == self.end && !self.is_ended {
            self.refill()?;
        }
        let end = self.end.min(self.start.saturating_add(self.piece_bytes_left));
        Ok(&self.text[self.start..end])
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        self.piece_bytes_left = self.piece_bytes_left.saturating_sub(count);
    }
}

/// The [`ReportProblem`] that made reading fail; `None` for any other I/O error.
pub(super) fn problem_in(error: &io::Error) -> Option<ReportProblem> {
    error.get_ref()?.downcast_ref::<ReportProblem>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_across_pieces_and_charged() {
        let mut bytes = b"\xef\xbb\xbf \n<".to_vec();
        bytes.extend("é".repeat(RAW_BUFFER_BYTES).bytes());
        bytes.push(0xff);
        let mut budget = UnpackBudget::new(1 << 20);
        let mut text = ReportText::new(&bytes[..], &mut budget, 1 << 20, ReportProblem::TooLarge);
        assert_eq!(text.peek().unwrap(), Some(b'<'));
        let mut all = String::new();
        text.read_to_string(&mut all).unwrap();
        assert_eq!(all, format!("<{}\u{fffd}", "é".repeat(RAW_BUFFER_BYTES)));
        assert_eq!(budget.bytes_left(), (1 << 20) - bytes.len());
    }

    #[test]
    fn reading_stops_at_the_limits_of_file_budget_and_piece() {
        let bytes = vec![b'x'; 3 * RAW_BUFFER_BYTES];
        let read = |file_max, budget_max| {
            let mut budget = UnpackBudget::new(budget_max);
            let mut text = ReportText::new(&bytes[..], &mut budget, file_max, ReportProblem::Bomb);
            let error = io::copy(&mut text, &mut io::sink()).unwrap_err();
            problem_in(&error).unwrap()
        };
        assert_eq!(read(2 * RAW_BUFFER_BYTES, usize::MAX), ReportProblem::Bomb);
        assert_eq!(read(usize::MAX, 2 * RAW_BUFFER_BYTES), ReportProblem::TooLarge);
        let mut budget = UnpackBudget::new(usize::MAX);
        let mut text = ReportText::new(&bytes[..], &mut budget, usize::MAX, ReportProblem::Bomb);
        text.start_piece(100);
        assert_eq!(text.fill_buf().unwrap().len(), 100);
        text.consume(100);
        assert!(text.fill_buf().is_err());
    }
}
