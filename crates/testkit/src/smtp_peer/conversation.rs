//! One connection of the peer, from the banner to its end.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::Shared;
use super::answer::{AfterAnswer, Answer, RuleContext, Stage};
use super::envelope::Envelope;
use super::script::Script;
use super::wire::{Stream, Wire, hold_open};

pub(super) struct Conversation {
    pub(super) wire: Wire,
    pub(super) client: IpAddr,
    pub(super) number: u32,
    pub(super) shared: Arc<Shared>,
    pub(super) is_encrypted: bool,
    pub(super) messages_begun: u32,
    pub(super) envelope: Option<Envelope>,
}

impl Conversation {
    pub(super) fn new(stream: TcpStream, client: IpAddr, number: u32, shared: Arc<Shared>) -> Self {
        let wire = Wire::new(Box::new(stream));
        Self { wire, client, number, shared, is_encrypted: false, messages_begun: 0, envelope: None }
    }

    pub(super) async fn run(mut self) -> io::Result<()> {
        let script = self.shared.script();
        if script.is_tls_implicit {
            self = self.tls_handshake(&script).await?;
        }
        self.answer(Stage::Banner, "", "220 peer.test ESMTP").await?;
        loop {
            let script = self.shared.script();
            let Some(line) = self.wire.read_line(script.close_after_received_bytes).await? else {
                return Ok(());
            };
            let line = String::from_utf8_lossy(&line).into_owned();
            let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
            let (number, is_pipelining) = (self.number, verb != "BDAT" && self.wire.has_unread());
            let is_early = is_pipelining && (verb == "DATA" || !script.offers("PIPELINING"));
            self.shared.change_record(|record| {
                let connection = record.connection(number);
                connection.commands.push(line.clone());
                if is_early {
                    connection.violations.push(format!("{verb} did not wait for its reply"));
                }
            });
            match verb.as_str() {
                "EHLO" => self.ehlo(&script, &line).await?,
                "HELO" => self.answer(Stage::Helo, &line, "250 peer.test").await.map(drop)?,
                "STARTTLS" => self = self.starttls(&script, &line).await?,
                "AUTH" => self.auth(&script, &line).await?,
                "MAIL" => self.mail(&line).await?,
                "RCPT" => self.rcpt(&line).await?,
                "DATA" => self.data(&script, &line).await?,
                "BDAT" => self.bdat(&script, &line).await?,
                "RSET" => {
                    self.envelope = None;
                    self.answer(Stage::Rset, &line, "250 2.0.0 flushed").await?;
                }
                "QUIT" => {
                    self.answer(Stage::Quit, &line, "221 2.0.0 bye").await?;
                    self.shared.record_closed(self.number);
                    self.wire.close().await;
                    return Ok(());
                }
                _ => self.answer(Stage::Other, &line, "500 5.5.2 unknown").await.map(drop)?,
            }
        }
    }

    async fn ehlo(&mut self, script: &Script, line: &str) -> io::Result<()> {
        let mut reply = "250-peer.test\n".to_owned();
        for extension in &script.extensions {
            reply.extend(["250-", extension, "\n"]);
        }
        if script.tls.is_some() && !self.is_encrypted {
            reply.push_str("250-STARTTLS\n");
        }
        reply.push_str("250 HELP");
        self.answer(Stage::Ehlo, line, &reply).await.map(drop)
    }

    async fn starttls(mut self, script: &Script, line: &str) -> io::Result<Self> {
        let default = if script.tls.is_some() { "220 go ahead" } else { "502 5.5.1 no TLS here" };
        let reply = self.answer(Stage::StartTls, line, default).await?;
        if is_positive(&reply) { self.tls_handshake(script).await } else { Ok(self) }
    }

    async fn tls_handshake(mut self, script: &Script) -> io::Result<Self> {
        let Some(tls) = &script.tls else { return Ok(self) };
        // The TLS stream takes over the old stream.
        let placeholder: Box<dyn Stream> = Box::new(tokio::io::empty());
        let plain = std::mem::replace(&mut self.wire.stream, placeholder);
        self.wire = self.wire.with_stream(tls.accept(plain).await?);
        self.is_encrypted = true;
        self.envelope = None;
        let number = self.number;
        self.shared.change_record(|record| record.connection(number).is_encrypted = true);
        Ok(self)
    }

    async fn auth(&mut self, script: &Script, line: &str) -> io::Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let challenges: &[&str] =
            match words.get(1).map(|mechanism| mechanism.to_ascii_uppercase()).as_deref() {
                Some("PLAIN") if words.len() == 2 => &["334 "],
                Some("LOGIN") => &["334 VXNlcm5hbWU6", "334 UGFzc3dvcmQ6"],
                _ => &[],
            };
        for challenge in challenges {
            self.send_answer(&Answer::reply(challenge)).await?;
            let Some(line) = self.wire.read_line(script.close_after_received_bytes).await? else {
                return Ok(());
            };
            let (line, number) = (String::from_utf8_lossy(&line).into_owned(), self.number);
            self.shared.change_record(|record| record.connection(number).commands.push(line));
        }
        self.answer(Stage::Auth, line, "235 2.7.0 welcome").await.map(drop)
    }

    /// Answers as the script says, or with `default`; returns the reply.
    pub(super) async fn answer(&mut self, stage: Stage, line: &str, default: &str) -> io::Result<String> {
        let envelope = self.envelope.as_ref();
        let context = RuleContext {
            stage,
            client: self.client,
            connection: self.number,
            message: self.messages_begun,
            line,
            mail_from: envelope.map_or("", |envelope| &envelope.mail_from),
            rcpt_to: envelope.map_or(&[], |envelope| &envelope.rcpt_to),
        };
        let answer = self.shared.script().answer(&context, default).unwrap_or_else(|| Answer::reply(default));
        self.send_answer(&answer).await?;
        Ok(String::from_utf8_lossy(&answer.bytes).trim_end().to_owned())
    }

    async fn send_answer(&mut self, answer: &Answer) -> io::Result<()> {
        if !answer.delay.is_zero() {
            tokio::time::sleep(answer.delay).await;
        }
        let limit = self.shared.script().close_after_sent_bytes;
        if !answer.bytes.is_empty() {
            self.wire.write(&answer.bytes, limit).await?;
        }
        match answer.then {
            AfterAnswer::Continue => return Ok(()),
            AfterAnswer::Close if answer.bytes.is_empty() => {}
            AfterAnswer::Close => self.wire.close().await,
            AfterAnswer::Stall => hold_open(&mut self.wire.stream).await,
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

pub(super) fn is_positive(reply: &str) -> bool {
    reply.starts_with('2')
}
