//! Finds messages of any server by token or Message-ID. Messages that are not indexed are read for many servers in one
//! statement, because most servers are small and have no index.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{MessageId, ServerId};

use super::statements;
use crate::sql::{Row, to_json};
use crate::{Result, Store};

/// Identifier by which an operator looks for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageName {
    Token(String),
    /// The header without its angle brackets. All messages of a send share this header.
    MessageId(String),
}

#[boxed_futures]
impl Store {
    /// Messages of these servers with this name that are not indexed, at most `limit`. Reads all messages of these
    /// servers that are not indexed.
    pub async fn locate_unindexed(
        &self,
        name: MessageName,
        servers: &[ServerId],
        limit: usize,
    ) -> Result<Vec<(ServerId, MessageId)>> {
        let (text, value) = match (name, self.is_sqlite()) {
            (MessageName::Token(token), true) => (statements::UNINDEXED_TOKEN_SQLITE, token),
            (MessageName::Token(token), false) => (statements::UNINDEXED_TOKEN_POSTGRES, token),
            (MessageName::MessageId(id), true) => (statements::UNINDEXED_MESSAGE_ID_SQLITE, id),
            (MessageName::MessageId(id), false) => (statements::UNINDEXED_MESSAGE_ID_POSTGRES, id),
        };
        let read = |row: &Row| Ok((ServerId(row.int(0)?), MessageId(row.int(1)?)));
        let servers = to_json(&servers.iter().map(|id| id.0).collect::<Vec<i64>>());
        self.fetch_all(text, vec![value.into(), (limit as i64).into(), servers.into()], read).await
    }

    /// Servers with messages in the index.
    pub async fn list_indexed_servers(&self) -> Result<Vec<ServerId>> {
        let text = "SELECT DISTINCT server_id FROM search_blocks ORDER BY server_id";
        self.fetch_all(text, Vec::new(), |row| Ok(ServerId(row.int(0)?))).await
    }
}
