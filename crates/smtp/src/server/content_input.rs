//! Receives the content of a message: DATA up to its dot, BDAT chunk by chunk (RFC 3030). A flaw is reported to the
//! driver at once, and to the client at the end of DATA or of each chunk; the bytes until then are discarded, never
//! tried as commands.

use bytes::Bytes;

use super::content::{ContentCheck, DotReader};
use super::event::Event;
use super::replies::StandardReply;
use super::transaction::Transaction;
use super::{Question, ServerSession, State};

/// Content of one BDAT.
pub(super) struct Chunk {
    bytes_left: u64,
    is_last: bool,
    /// Reply at the end of the chunk, if the chunk belongs to no message.
    refusal: Option<StandardReply>,
}

impl ServerSession {
    pub(super) fn on_data(&mut self) {
        match self.begin_content() {
            Ok(()) => {
                self.say_standard(StandardReply::SendMessage);
                self.state = State::Data(DotReader::LineStart);
            }
            Err(problem) => self.say_and_count_error(problem),
        }
    }

    pub(super) fn on_bdat(&mut self, size: u64, is_last: bool) {
        let refusal = if self.config.extensions.chunking {
            match self.begin_content() {
                Ok(()) | Err(StandardReply::ChunksBegun) => None,
                Err(problem) => Some(problem),
            }
        } else {
            Some(StandardReply::NotImplemented)
        };
        self.state = State::Chunk(Chunk { bytes_left: size, is_last, refusal });
        if refusal.is_none() {
            self.check_content(|content| content.announce(size));
        }
    }

    /// Processes input of DATA; false if there is none.
    pub(super) fn take_data(&mut self) -> bool {
        let (State::Data(reader), Transaction::Content(content)) = (&mut self.state, &mut self.transaction)
        else {
            return false;
        };
        if self.input.is_empty() {
            return false;
        }
        let was_flawed = content.flaw().is_some();
        let mut data = Vec::with_capacity(self.input.len());
        let end = reader.read(self.input.bytes(), |piece| content.take(piece, &mut data));
        self.input.skip(end.unwrap_or(self.input.len()));
        self.pass_on(was_flawed, data);
        if end.is_some() {
            self.end_message();
        }
        true
    }

    /// Processes input of a chunk, or its end; false if there is no input.
    pub(super) fn take_chunk(&mut self) -> bool {
        let State::Chunk(chunk) = &mut self.state else { return false };
        if chunk.bytes_left == 0 {
            let (is_last, refusal) = (chunk.is_last, chunk.refusal);
            self.end_chunk(is_last, refusal);
            return true;
        }
        if self.input.is_empty() {
            return false;
        }
        let count = usize::try_from(chunk.bytes_left).unwrap_or(usize::MAX).min(self.input.len());
        chunk.bytes_left -= count as u64;
        if let (None, Transaction::Content(content)) = (chunk.refusal, &mut self.transaction) {
            let was_flawed = content.flaw().is_some();
            let piece = &self.input.bytes()[..count];
            let mut data = Vec::with_capacity(count);
            content.take(piece, &mut data);
            self.pass_on(was_flawed, data);
        }
        self.input.skip(count);
        true
    }

    fn end_chunk(&mut self, is_last: bool, refusal: Option<StandardReply>) {
        self.state = State::Command;
        match refusal {
            Some(refusal) => self.say_and_count_error(refusal),
            None if is_last => {
                self.check_content(ContentCheck::end);
                self.end_message();
            }
            // RFC 3030 2: each chunk gets a reply. A flaw stays until LAST or RSET.
            None => self.say_standard(self.flaw_reply().unwrap_or(StandardReply::ChunkOk)),
        }
    }

    fn end_message(&mut self) {
        self.state = State::Command;
        match self.flaw_reply() {
            Some(refusal) => {
                self.transaction = Transaction::None;
                self.say_standard(refusal);
            }
            None => self.ask(Question::EndOfData, Event::EndOfData),
        }
    }

    /// Passes data to the driver until a flaw is found. The flaw is reported once.
    fn pass_on(&mut self, was_flawed: bool, data: Vec<u8>) {
        match self.flaw() {
            Some(flaw) if !was_flawed => self.events.push_back(Event::Dropped(flaw)),
            None if !data.is_empty() => self.events.push_back(Event::Data(Bytes::from(data))),
            _ => {}
        }
    }

    /// Runs a check on the content and reports a flaw that it finds.
    fn check_content(&mut self, check: impl FnOnce(&mut ContentCheck)) {
        let was_flawed = self.flaw().is_some();
        if let Transaction::Content(content) = &mut self.transaction {
            check(content);
        }
        self.pass_on(was_flawed, Vec::new());
    }

    fn flaw(&self) -> Option<super::DropCause> {
        match &self.transaction {
            Transaction::Content(content) => content.flaw(),
            _ => None,
        }
    }

    fn flaw_reply(&self) -> Option<StandardReply> {
        self.flaw().map(super::DropCause::reply)
    }
}
