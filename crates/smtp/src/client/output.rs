//! Output of a client session in segments, each with the reply it waits for.

use crate::body::BodyCursor;
use crate::phase::Phase;
use crate::stuffing::StuffedBody;

/// A reply that the session waits for, named by what it replies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    Banner,
    Ehlo {
        is_again: bool,
    },
    Helo,
    StartTls,
    AuthPlain,
    /// Reply to `AUTH LOGIN`: the user name is next.
    AuthLogin,
    AuthUsername,
    AuthPassword,
    MailFrom,
    RcptTo,
    Data,
    Chunk {
        is_last: bool,
    },
    Final,
    /// Reply to the dot that ends an unwanted DATA.
    LoneDot,
    Rset,
    Quit,
}

impl Awaited {
    pub(super) fn phase(self) -> Phase {
        match self {
            Self::Banner => Phase::Banner,
            Self::Ehlo { is_again: false } => Phase::Ehlo,
            Self::Ehlo { is_again: true } => Phase::EhloAgain,
            Self::Helo => Phase::Helo,
            Self::StartTls => Phase::StartTls,
            Self::AuthPlain | Self::AuthLogin | Self::AuthUsername | Self::AuthPassword => Phase::Auth,
            Self::MailFrom => Phase::MailFrom,
            Self::RcptTo => Phase::RcptTo,
            Self::Data => Phase::Data,
            Self::Chunk { is_last: false } => Phase::Body,
            Self::Chunk { is_last: true } | Self::Final => Phase::Final,
            Self::LoneDot | Self::Rset => Phase::Rset,
            Self::Quit => Phase::Quit,
        }
    }

    /// Phase while the bytes that request the reply are not completely handed out.
    fn phase_before(self) -> Phase {
        match self {
            Self::Chunk { .. } | Self::Final => Phase::Body,
            other => other.phase(),
        }
    }
}

pub(super) struct Segment {
    content: Content,
    /// Reply awaited once the last byte is handed out.
    pub(super) awaited: Option<Awaited>,
    /// Whether the last byte of the segment is the last byte of the message.
    pub(super) ends_message: bool,
    /// Text for the transcript.
    pub(super) transcript_text: Option<String>,
}

enum Content {
    Line { bytes: Vec<u8>, written: usize },
    Stuffed(StuffedBody),
    Chunk { cursor: BodyCursor, bytes_left: usize },
}

impl Segment {
    /// Command; `line` has no CRLF.
    pub(super) fn line(line: &str, awaited: Awaited) -> Self {
        Self::masked(line, line, awaited)
    }

    /// Line with a secret; the transcript gets `transcript_text` instead.
    pub(super) fn masked(line: &str, transcript_text: &str, awaited: Awaited) -> Self {
        let bytes = [line.as_bytes(), b"\r\n"].concat();
        Self::new(Content::Line { bytes, written: 0 }, Some(awaited), Some(transcript_text.to_owned()))
    }

    /// BDAT line of a chunk. The line itself awaits no reply: the server replies after the chunk.
    pub(super) fn announcement(line: &str) -> Self {
        let bytes = [line.as_bytes(), b"\r\n"].concat();
        Self::new(Content::Line { bytes, written: 0 }, None, Some(line.to_owned()))
    }

    pub(super) fn terminator(bytes: &[u8], awaited: Awaited) -> Self {
        let content = Content::Line { bytes: bytes.to_vec(), written: 0 };
        Self::new(content, Some(awaited), Some(".".to_owned()))
    }

    pub(super) fn stuffed(body: StuffedBody, size: u64) -> Self {
        Self::new(Content::Stuffed(body), None, Some(message_transcript_text(size)))
    }

    pub(super) fn chunk(cursor: BodyCursor, size: usize, awaited: Awaited) -> Self {
        let transcript_text = message_transcript_text(size as u64);
        Self::new(Content::Chunk { cursor, bytes_left: size }, Some(awaited), Some(transcript_text))
    }

    pub(super) fn ending_message(mut self) -> Self {
        self.ends_message = true;
        self
    }

    fn new(content: Content, awaited: Option<Awaited>, transcript_text: Option<String>) -> Self {
        Self { content, awaited, ends_message: false, transcript_text }
    }

    /// Appends at most `room` bytes.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, room: usize) {
        match &mut self.content {
            Content::Line { bytes, written } => {
                let count = room.min(bytes.len() - *written);
                out.extend_from_slice(&bytes[*written..*written + count]);
                *written += count;
            }
            Content::Stuffed(body) => body.write(out, room),
            Content::Chunk { cursor, bytes_left } => {
                let mut count = room.min(*bytes_left);
                *bytes_left -= count;
                while count > 0 {
                    let rest = cursor.rest();
                    let step = rest.len().min(count);
                    out.extend_from_slice(&rest[..step]);
                    cursor.advance(step);
                    count -= step;
                }
            }
        }
    }

    pub(super) fn is_done(&mut self) -> bool {
        match &mut self.content {
            Content::Line { bytes, written } => *written == bytes.len(),
            Content::Stuffed(body) => body.is_done(),
            Content::Chunk { bytes_left, .. } => *bytes_left == 0,
        }
    }

    /// Whether `room` is enough for the remaining bytes.
    pub(super) fn fits(&self, room: usize) -> bool {
        match &self.content {
            Content::Line { bytes, written } => bytes.len() - written <= room,
            Content::Chunk { bytes_left, .. } => *bytes_left <= room,
            // A terminator always follows, so this never ends a message.
            Content::Stuffed(_) => false,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.awaited.map_or(Phase::Body, Awaited::phase_before)
    }
}

fn message_transcript_text(size: u64) -> String {
    format!("[{size} bytes of the message]")
}
