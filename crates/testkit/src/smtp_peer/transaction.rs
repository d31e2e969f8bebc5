//! SMTP transactions of a conversation: MAIL, RCPT, and the message by DATA or BDAT.

use std::io;
use std::time::Instant;

use bytes::Bytes;

use super::answer::Stage;
use super::conversation::{Conversation, is_positive};
use super::envelope::Envelope;
use super::record::{ReceivedMessage, Transfer};
use super::script::Script;

impl Conversation {
    pub(super) async fn mail(&mut self, line: &str) -> io::Result<()> {
        self.messages_begun += 1;
        let number = self.number;
        self.shared.change_record(|record| record.connection(number).messages_begun += 1);
        let (mail_from, mail_parameters) = split_path(line);
        let begun_at = Instant::now();
        let reply = self.answer(Stage::MailFrom, line, "250 2.1.0 ok").await?;
        if is_positive(&reply) {
            let (rcpt_to, chunked, chunks) = (Vec::new(), Vec::new(), Vec::new());
            let envelope = Envelope { mail_from, mail_parameters, rcpt_to, begun_at, chunked, chunks };
            self.envelope = Some(envelope);
        }
        Ok(())
    }

    pub(super) async fn rcpt(&mut self, line: &str) -> io::Result<()> {
        let default = if self.envelope.is_some() { "250 2.1.5 ok" } else { "503 5.5.1 MAIL first" };
        let reply = self.answer(Stage::RcptTo, line, default).await?;
        if is_positive(&reply)
            && let Some(envelope) = &mut self.envelope
        {
            envelope.rcpt_to.push(split_path(line).0);
        }
        Ok(())
    }

    fn has_recipients(&self) -> bool {
        self.envelope.as_ref().is_some_and(|envelope| !envelope.rcpt_to.is_empty())
    }

    pub(super) async fn data(&mut self, script: &Script, line: &str) -> io::Result<()> {
        let default = if self.has_recipients() { "354 go ahead" } else { "503 5.5.1 RCPT first" };
        let reply = self.answer(Stage::Data, line, default).await?;
        if !reply.starts_with('3') {
            return Ok(());
        }
        let bytes = self.wire.read_message(script.close_after_received_bytes).await?;
        self.finish(line, bytes, Transfer::Data).await
    }

    pub(super) async fn bdat(&mut self, script: &Script, line: &str) -> io::Result<()> {
        let mut words = line.split(' ').skip(1);
        let size = words.next().and_then(|size| size.parse().ok()).unwrap_or(0);
        let is_last = words.next().is_some_and(|word| word.eq_ignore_ascii_case("LAST"));
        // RFC 3030 2: read the chunk even if it is refused.
        let bytes = self.wire.read_exact(size, script.close_after_received_bytes).await?;
        if !script.offers("CHUNKING") || !self.has_recipients() {
            return self.answer(Stage::Chunk, line, "503 5.5.1 not now").await.map(drop);
        }
        if let Some(envelope) = &mut self.envelope {
            envelope.chunked.extend_from_slice(&bytes);
            envelope.chunks.push(size);
        }
        if !is_last {
            return self.answer(Stage::Chunk, line, "250 2.0.0 more").await.map(drop);
        }
        let envelope = self.envelope.as_mut();
        let (bytes, chunks) = envelope
            .map(|envelope| (std::mem::take(&mut envelope.chunked), std::mem::take(&mut envelope.chunks)))
            .unwrap_or_default();
        self.finish(line, bytes, Transfer::Chunks(chunks)).await
    }

    /// Records the message before replying, because the reply may never be sent.
    async fn finish(&mut self, line: &str, bytes: Vec<u8>, transfer: Transfer) -> io::Result<()> {
        let Some(envelope) = self.envelope.as_ref().filter(|envelope| !envelope.rcpt_to.is_empty()) else {
            self.envelope = None;
            return self.answer(Stage::Message, line, "554 5.5.1 no valid recipients").await.map(drop);
        };
        let message = ReceivedMessage {
            connection: self.number,
            is_encrypted: self.is_encrypted,
            mail_from: envelope.mail_from.clone(),
            mail_parameters: envelope.mail_parameters.clone(),
            rcpt_to: envelope.rcpt_to.clone(),
            bytes: Bytes::from(bytes),
            transfer,
            begun_at: envelope.begun_at,
            at: Instant::now(),
            reply: None,
        };
        let index = self.shared.change_record(|record| record.receive(message));
        let reply = self.answer(Stage::Message, line, "250 2.0.0 taken").await?;
        self.envelope = None;
        self.shared.change_record(|record| record.messages[index].reply = Some(reply));
        Ok(())
    }
}

/// Splits `MAIL FROM:<a@b> SIZE=1` into `a@b` and `SIZE=1`.
fn split_path(line: &str) -> (String, String) {
    let (_, path) = line.split_once('<').unwrap_or_default();
    let (path, parameters) = path.rsplit_once('>').unwrap_or((path, ""));
    (path.to_owned(), parameters.trim().to_owned())
}
