//! Limits on the size of requests and messages. The fields of `Limits` are configurable, its constants are not.
//!
//! The limits keep one rule: **a request takes at most three times its own bytes of memory, plus 1 MB**. A batch takes
//! four times its bytes (five on PostgreSQL), because all its messages are kept with their compressed forms. Code that
//! splits, decodes or collects client bytes stops at a limit while it reads, not afterwards. The limits are small
//! enough that headers, addresses and error texts together fit into the 1 MB. Only bodies and attachments are copied,
//! and at most two copies exist at a time: a large request is freed once it is read, and its draft once the message is
//! composed. A batch may take 8 kB more for each of its messages. The `memory` test binaries measure this for every
//! field.

/// Configurable limits; sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub request_bytes_max: usize,
    /// Request of send/batch. The messages composed from it may take twice as much in memory.
    pub batch_bytes_max: usize,
    pub message_bytes_max: usize,
    pub attachments_max: usize,
    pub subject_bytes_max: usize,
    pub tag_bytes_max: usize,
    pub header_value_bytes_max: usize,
    pub custom_headers_max: usize,
}

impl Limits {
    /// Addresses in each of to, cc and bcc, as in Postal's API.
    pub const ADDRESSES_PER_LIST_MAX: usize = 50;
    /// Recipients of one raw message, or of one SMTP transaction.
    pub const RAW_RECIPIENTS_MAX: usize = 1_000;
    /// Messages in one batch.
    pub const BATCH_MESSAGES_MAX: usize = 500;
    /// Recipients of all messages of a batch: one transaction writes them, and other requests wait for that
    /// transaction.
    pub const BATCH_RECIPIENTS_MAX: usize = 5_000;
    pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 256;
    pub const METADATA_PAIRS_MAX: usize = 10;
    pub const METADATA_KEY_BYTES_MAX: usize = 64;
    pub const METADATA_VALUE_BYTES_MAX: usize = 1_024;
    pub const SEND_AT_DAYS_MAX: u64 = 30;
    pub const HEADER_NAME_BYTES_MAX: usize = 76;
    pub const FILE_NAME_BYTES_MAX: usize = 255;
    /// Mailbox with its display name.
    pub const MAILBOX_BYTES_MAX: usize = 2_048;
    /// Header section of a pre-built message. A `To` with 1,000 recipients fits.
    pub const HEADER_SECTION_BYTES_MAX: usize = 256 << 10;
    /// Fields in the header section of a pre-built message.
    pub const HEADER_FIELDS_MAX: usize = 1_000;
    /// Length of a line without the line ending (RFC 5322 2.1.1).
    pub const LINE_BYTES_MAX: usize = 998;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes_max: 40 << 20,
            batch_bytes_max: 50 << 20,
            message_bytes_max: 25 << 20,
            attachments_max: 100,
            subject_bytes_max: 998,
            tag_bytes_max: 255,
            header_value_bytes_max: 8 << 10,
            custom_headers_max: 200,
        }
    }
}
