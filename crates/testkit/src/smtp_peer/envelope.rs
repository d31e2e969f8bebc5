//! Message being received: its envelope, and the chunks so far.

use std::time::Instant;

pub(super) struct Envelope {
    pub(super) mail_from: String,
    pub(super) mail_parameters: String,
    pub(super) rcpt_to: Vec<String>,
    pub(super) begun_at: Instant,
    pub(super) chunked: Vec<u8>,
    pub(super) chunks: Vec<usize>,
}
