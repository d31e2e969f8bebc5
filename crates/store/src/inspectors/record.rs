//! Records of inspectors and of requests to them.

use postroad_model::{AccountId, ServerId, Timestamp};

use crate::Result;
use crate::setup::KeyHash;
use crate::sql::Row;

#[derive(Debug, Clone)]
pub struct NewInspector {
    pub server_id: ServerId,
    pub account_id: AccountId,
    /// Hash of the token in the URL.
    pub token_hash: KeyHash,
    /// The token, sealed by the caller.
    pub sealed_token: Vec<u8>,
    pub expires_at: Timestamp,
    /// A sealed token that cannot be unsealed: the open inspector that has it is replaced.
    pub unreadable_token: Option<Vec<u8>>,
}

/// An inspector that has not expired, for its page.
#[derive(Debug, Clone)]
pub struct Inspector {
    pub sealed_token: Vec<u8>,
    pub expires_at: Timestamp,
    /// Newest first.
    pub requests: Vec<InspectorRequest>,
}

/// A request that arrives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewInspectorRequest {
    pub method: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// Whether `body` is only the beginning of the request's body.
    pub is_cut: bool,
    /// The HTTP status of our answer.
    pub status: u16,
}

/// A stored request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectorRequest {
    /// 1, 2, 3 … for each inspector.
    pub number: u64,
    pub at: Timestamp,
    pub request: NewInspectorRequest,
}

impl NewInspectorRequest {
    /// Number of bytes of query, headers and body.
    pub fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.body.len() + self.query.len() + headers
    }
}

impl InspectorRequest {
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            number: row.int(0)? as u64,
            at: row.time(1)?,
            request: NewInspectorRequest {
                method: row.text(2)?,
                status: row.int(3)? as u16,
                is_cut: row.flag(4)?,
                query: row.text(5)?,
                headers: row.json(6)?,
                body: row.text(7)?,
            },
        })
    }
}
