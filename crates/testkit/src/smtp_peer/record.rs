//! Record of what the peer received, when, and on which connection.

use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;

#[derive(Debug, Clone, Default)]
pub struct Record {
    pub messages: Vec<ReceivedMessage>,
    /// Oldest first; number 1 is at index 0.
    pub connections: Vec<ConnectionRecord>,
    pub open_now: usize,
    pub open_max: usize,
}

/// One complete message.
#[derive(Debug, Clone)]
pub struct ReceivedMessage {
    /// Number of its connection, from 1.
    pub connection: u32,
    pub is_encrypted: bool,
    /// Sender as in the command, without angle brackets; empty for the null path.
    pub mail_from: String,
    /// Parameters after the sender, such as `SIZE=100 BODY=8BITMIME`.
    pub mail_parameters: String,
    /// Accepted recipients.
    pub rcpt_to: Vec<String>,
    /// Content after dot-unstuffing, without the final dot.
    pub bytes: Bytes,
    pub transfer: Transfer,
    /// Time of its MAIL command.
    pub begun_at: Instant,
    /// Time of its last byte.
    pub at: Instant,
    /// Reply, once it was written; `None` if the connection broke first, or the script was silent.
    pub reply: Option<String>,
}

impl ReceivedMessage {
    /// Whether the client could know that the message was accepted.
    pub fn is_acknowledged(&self) -> bool {
        self.reply.as_deref().is_some_and(|reply| reply.starts_with('2'))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transfer {
    Data,
    /// Sent by BDAT, with the size of each chunk.
    Chunks(Vec<usize>),
}

#[derive(Debug, Clone)]
pub struct ConnectionRecord {
    /// Address of the client.
    pub client: SocketAddr,
    pub opened_at: Instant,
    pub closed_at: Option<Instant>,
    pub is_encrypted: bool,
    /// Commands as received, including AUTH; without message contents.
    pub commands: Vec<String>,
    /// MAIL commands.
    pub messages_begun: u32,
    /// Protocol violations of the client, such as pipelining where it is not offered.
    pub violations: Vec<String>,
}

impl Record {
    /// Records a new connection and returns its number.
    pub(super) fn open(&mut self, client: SocketAddr) -> u32 {
        self.open_now += 1;
        self.open_max = self.open_max.max(self.open_now);
        self.connections.push(ConnectionRecord {
            client,
            opened_at: Instant::now(),
            closed_at: None,
            is_encrypted: false,
            commands: Vec::new(),
            messages_begun: 0,
            violations: Vec::new(),
        });
        self.connections.len() as u32
    }

    /// Records the end; only the first call counts.
    pub(super) fn close(&mut self, number: u32) {
        if self.connection(number).closed_at.is_none() {
            self.connection(number).closed_at = Some(Instant::now());
            self.open_now -= 1;
        }
    }

    pub(super) fn connection(&mut self, number: u32) -> &mut ConnectionRecord {
        &mut self.connections[number as usize - 1]
    }

    /// Records a message; returns its index, for the reply.
    pub(super) fn receive(&mut self, message: ReceivedMessage) -> usize {
        self.messages.push(message);
        self.messages.len() - 1
    }
}
