//! The bytes of a message: where DATA ends, and whether they may be in a message at all.

use super::config::ServerConfig;
use super::event::DropCause;

/// Finds the end of DATA and takes the stuffed dots out (RFC 5321 4.5.2).
///
/// CRLF.CRLF ends a message and nothing else does: a line begins behind CRLF only. Every other reading of bare CR and
/// LF would let somebody smuggle a message past hosts that read them as this one does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DotReader {
    LineStart,
    /// Behind a dot that begins a line.
    Dot,
    /// Behind such a dot and CR.
    DotCr,
    Inside {
        after_cr: bool,
    },
}

impl DotReader {
    /// Hands the message's bytes to `take`. How many bytes of `input` belong to it, if the end is in them.
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
                    // The dot is gone, whatever comes behind it.
                    _ => *self = Self::Inside { after_cr: false },
                },
                Self::Inside { after_cr } => {
                    let rest = &input[at..];
                    let end = memchr::memchr(b'\n', rest);
                    let piece = end.map_or(rest, |end| &rest[..=end]);
                    take(piece);
                    at += piece.len();
                    let before_end = piece.len().checked_sub(2).map(|at| piece[at]);
                    let is_line_end = end.is_some() && before_end.map_or(after_cr, |byte| byte == b'\r');
                    let after_cr = piece.last() == Some(&b'\r');
                    *self = if is_line_end { Self::LineStart } else { Self::Inside { after_cr } };
                }
            }
        }
        None
    }
}

/// Watches a message go by, in pieces of any size. The first flaw counts, wherever the pieces were cut.
#[derive(Debug)]
pub(super) struct ContentCheck {
    flaw: Option<DropCause>,
    bytes: u64,
    bytes_max: u64,
    /// Of the line under way.
    line_bytes: usize,
    line_bytes_max: usize,
    after_cr: bool,
    nul_refused: bool,
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
        }
    }

    pub(super) fn flaw(&self) -> Option<DropCause> {
        self.flaw
    }

    /// A chunk of that size is announced.
    pub(super) fn announce(&mut self, size: u64) {
        if self.flaw.is_none() && self.bytes.saturating_add(size) > self.bytes_max {
            self.flaw = Some(DropCause::TooLarge);
        }
    }

    pub(super) fn take(&mut self, piece: &[u8]) {
        if self.flaw.is_some() {
            return;
        }
        let room = usize::try_from(self.bytes_max - self.bytes).unwrap_or(usize::MAX);
        let (within, beyond) = piece.split_at(room.min(piece.len()));
        self.bytes += within.len() as u64;
        let flaw = self.look_at(within).err();
        self.flaw = flaw.or((!beyond.is_empty()).then_some(DropCause::TooLarge));
    }

    /// The message is all here: a CR at its end is a bare one.
    pub(super) fn end(&mut self) {
        if self.flaw.is_none() && self.after_cr {
            self.flaw = Some(DropCause::BareNewline);
        }
    }

    fn look_at(&mut self, piece: &[u8]) -> Result<(), DropCause> {
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
