//! Content of a message: finds the end of DATA, and checks the bytes.

use memchr::memmem;
use postroad_model::is_crlf_piece;

use super::config::{BareLf, ServerConfig};
use super::event::DropCause;

/// Finds the end of DATA and removes stuffed dots (RFC 5321 4.5.2).
///
/// Only CRLF.CRLF ends a message. Any other reading of bare CR and LF would allow smuggling a message past
/// hosts that read them differently.
///
/// Clients that end lines with a bare LF disagree about dots: Python's smtplib doubles a dot after a bare LF, curl does
/// not. Therefore, after a bare LF, one of two dots is removed, and a single dot stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DotReader {
    LineStart,
    /// After a dot at the start of a line.
    Dot,
    /// After a dot at the start of a line, and a CR.
    DotCr,
    /// After a bare LF.
    LfLineStart,
    /// After a dot that follows a bare LF; the dot has not been passed on.
    LfDot,
    Inside {
        after_cr: bool,
    },
}

impl DotReader {
    /// Passes the message's bytes to `take`. If `input` contains the end of the message, returns the index after
    /// the end.
    pub(super) fn read(&mut self, input: &[u8], mut take: impl FnMut(&[u8])) -> Option<usize> {
        let mut at = 0;
        while let Some(next) = input.get(at) {
            match *self {
                Self::LineStart | Self::Dot | Self::DotCr => match (*self, next) {
                    (Self::LineStart, b'.') => (*self, at) = (Self::Dot, at + 1),
                    (Self::Dot, b'\r') => (*self, at) = (Self::DotCr, at + 1),
                    (Self::DotCr, b'\n') => return Some(at + 1),
                    (Self::DotCr, _) => {
                        take(b"\r");
                        *self = Self::Inside { after_cr: true };
                    }
                    // The dot is removed, whatever follows.
                    _ => *self = Self::Inside { after_cr: false },
                },
                Self::LfLineStart if *next == b'.' => (*self, at) = (Self::LfDot, at + 1),
                Self::LfLineStart => *self = Self::Inside { after_cr: false },
                Self::LfDot => {
                    take(b".");
                    at += usize::from(*next == b'.');
                    *self = Self::Inside { after_cr: false };
                }
                Self::Inside { after_cr } => {
                    let rest = &input[at..];
                    // Line ends matter only where a dot may start a line.
                    let piece = memmem::find(rest, b"\n.").map_or(rest, |end| &rest[..=end]);
                    take(piece);
                    at += piece.len();
                    let before_end = piece.len().checked_sub(2).map(|at| piece[at]);
                    let ends_with_crlf = before_end.map_or(after_cr, |byte| byte == b'\r');
                    *self = match piece.last() {
                        Some(b'\n') if ends_with_crlf => Self::LineStart,
                        Some(b'\n') => Self::LfLineStart,
                        last => Self::Inside { after_cr: last == Some(&b'\r') },
                    };
                }
            }
        }
        None
    }
}

/// Checks a message in pieces of any size, and converts bare LF to CRLF if the listener allows it. The first
/// flaw counts, independent of how the pieces were cut.
#[derive(Debug)]
pub(super) struct ContentCheck {
    flaw: Option<DropCause>,
    bytes: u64,
    bytes_max: u64,
    /// Bytes of the current line.
    line_bytes: usize,
    line_bytes_max: usize,
    after_cr: bool,
    nul_refused: bool,
    bare_lf: BareLf,
}

impl ContentCheck {
    pub(super) fn new(config: &ServerConfig) -> Self {
        Self {
            flaw: None,
            bytes: 0,
            bytes_max: config.limits.message_bytes_max,
            line_bytes: 0,
            line_bytes_max: config.limits.text_line_bytes_max,
            after_cr: false,
            nul_refused: config.nul_refused,
            bare_lf: config.bare_lf,
        }
    }

    pub(super) fn flaw(&self) -> Option<DropCause> {
        self.flaw
    }

    /// Takes note that a chunk of this size follows. If the message would become too large, its flaw is `TooLarge`.
    pub(super) fn announce(&mut self, size: u64) {
        if self.flaw.is_none() && self.bytes.saturating_add(size) > self.bytes_max {
            self.flaw = Some(DropCause::TooLarge);
        }
    }

    /// Checks the piece, and appends it to `out` unless a flaw was found.
    pub(super) fn take(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if self.bare_lf == BareLf::Refused || is_crlf_piece(piece, self.after_cr) {
            return self.take_crlf(piece, out);
        }
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            let follows_cr = |text: &[u8]| text.last().map_or(self.after_cr, |byte| *byte == b'\r');
            match line.strip_suffix(b"\n").filter(|text| !follows_cr(text)) {
                Some(text) => {
                    self.take_crlf(text, out);
                    self.take_crlf(b"\r\n", out);
                }
                None => self.take_crlf(line, out),
            }
        }
    }

    fn take_crlf(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if self.flaw.is_some() {
            return;
        }
        let room = usize::try_from(self.bytes_max - self.bytes).unwrap_or(usize::MAX);
        let (within, beyond) = piece.split_at(room.min(piece.len()));
        self.bytes += within.len() as u64;
        let flaw = self.check_piece(within).err();
        self.flaw = flaw.or((!beyond.is_empty()).then_some(DropCause::TooLarge));
        if self.flaw.is_none() {
            out.extend_from_slice(piece);
        }
    }

    /// Ends the check: a CR at the end of the message is a bare one.
    pub(super) fn end(&mut self) {
        if self.flaw.is_none() && self.after_cr {
            self.flaw = Some(DropCause::BareNewline);
        }
    }

    fn check_piece(&mut self, piece: &[u8]) -> Result<(), DropCause> {
        if !self.passes_fast_check(piece) {
            return self.check_piece_byte_by_byte(piece);
        }
        if let Some(last) = piece.last() {
            let line = memchr::memrchr(b'\n', piece).map(|end| &piece[end + 1..]);
            self.after_cr = *last == b'\r';
            let before = if line.is_some() { 0 } else { self.line_bytes };
            self.line_bytes = before + line.unwrap_or(piece).len() - usize::from(self.after_cr);
        }
        Ok(())
    }

    /// Fast check that suffices for almost every piece: no NUL, no bare CR or LF, no overlong line.
    fn passes_fast_check(&self, piece: &[u8]) -> bool {
        if !is_crlf_piece(piece, self.after_cr) || memchr::memchr(0, piece).is_some() {
            return false;
        }
        let (mut line_start, mut bytes_before) = (0, self.line_bytes);
        for end in memchr::memchr_iter(b'\n', piece) {
            // The line counts without its CR, which may have come before this piece.
            if bytes_before + (end - line_start).saturating_sub(1) > self.line_bytes_max {
                return false;
            }
            (line_start, bytes_before) = (end + 1, 0);
        }
        bytes_before + piece.len() - line_start <= self.line_bytes_max
    }

    fn check_piece_byte_by_byte(&mut self, piece: &[u8]) -> Result<(), DropCause> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.after_cr && piece[0] != b'\n' {
            return Err(DropCause::BareNewline);
        }
        let mut start = 0;
        for at in memchr::memchr3_iter(b'\r', b'\n', 0, piece) {
            self.lengthen_line(at - start)?;
            start = at + 1;
            match piece[at] {
                b'\r' if piece.get(at + 1).is_some_and(|next| *next != b'\n') => {
                    return Err(DropCause::BareNewline);
                }
                b'\r' => {}
                b'\n' => {
                    let follows_cr = at.checked_sub(1).map_or(self.after_cr, |before| piece[before] == b'\r');
                    if !follows_cr {
                        return Err(DropCause::BareNewline);
                    }
                    self.line_bytes = 0;
                }
                _ if self.nul_refused => return Err(DropCause::Nul),
                _ => self.lengthen_line(1)?,
            }
        }
        self.after_cr = piece.last() == Some(&b'\r');
        self.lengthen_line(piece.len() - start)
    }

    fn lengthen_line(&mut self, count: usize) -> Result<(), DropCause> {
        self.line_bytes += count;
        if self.line_bytes > self.line_bytes_max { Err(DropCause::LineTooLong) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content_check(nul_refused: bool, bare_lf: BareLf) -> ContentCheck {
        ContentCheck {
            flaw: None,
            bytes: 0,
            bytes_max: 1_000,
            line_bytes: 0,
            line_bytes_max: 3,
            after_cr: false,
            nul_refused,
            bare_lf,
        }
    }

    proptest! {
        #[test]
        fn the_fast_check_and_the_check_byte_by_byte_agree(
            words in prop::collection::vec(prop::sample::select(vec!["a", "aa", "\r\n", "\r", "\n", "\0", "."]), 0..12),
            cuts in prop::collection::vec(0_usize..30, 0..4),
            nul_refused in any::<bool>(),
        ) {
            let text = words.concat();
            let mut fast = content_check(nul_refused, BareLf::Refused);
            let mut byte_by_byte = content_check(nul_refused, BareLf::Refused);
            for piece in pieces(&text, cuts) {
                let (found, wanted) = (fast.check_piece(piece), byte_by_byte.check_piece_byte_by_byte(piece));
                prop_assert_eq!(found, wanted, "{:?} of {:?}", piece, text);
                if wanted.is_err() {
                    return Ok(());
                }
                prop_assert_eq!((fast.after_cr, fast.line_bytes), (byte_by_byte.after_cr, byte_by_byte.line_bytes));
            }
        }

        #[test]
        fn bare_lf_becomes_crlf_and_nothing_else_changes(
            words in prop::collection::vec(prop::sample::select(vec!["a", "aa", "\r\n", "\r", "\n", "."]), 0..12),
            cuts in prop::collection::vec(0_usize..30, 0..4),
            bytes_max in 5_u64..30,
        ) {
            let text = words.concat();
            let wanted = text.replace("\r\n", "\n").replace('\n', "\r\n");
            let mut direct = ContentCheck { bytes_max, ..content_check(true, BareLf::Refused) };
            let mut wanted_out = Vec::new();
            direct.take(wanted.as_bytes(), &mut wanted_out);
            direct.end();
            let mut content = ContentCheck { bytes_max, ..content_check(true, BareLf::Normalised) };
            let mut out = Vec::new();
            pieces(&text, cuts).for_each(|piece| content.take(piece, &mut out));
            content.end();
            prop_assert_eq!(content.flaw, direct.flaw, "{:?}", text);
            if content.flaw.is_none() {
                prop_assert_eq!(out, wanted.into_bytes());
            }
        }
    }

    fn pieces(text: &str, mut cuts: Vec<usize>) -> impl Iterator<Item = &[u8]> {
        for cut in &mut cuts {
            *cut = (*cut).min(text.len());
        }
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        (1..cuts.len()).map(move |at| &text.as_bytes()[cuts[at - 1]..cuts[at]])
    }
}
