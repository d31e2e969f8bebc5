//! Message rows for searches.

use std::collections::BTreeMap;

use postroad_model::{MessageId, MessageToken, ServerId, Status, Timestamp};
use serde::Deserialize;

use super::statements;
use crate::Result;
use crate::error::StoreError;
use crate::sql::{Row, Sql, Value, to_json};

/// A message that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchItem {
    pub id: MessageId,
    pub token: MessageToken,
    pub status: Status,
    pub rcpt_to: String,
    pub mail_from: String,
    pub subject: String,
    /// The Message-ID header without its angle brackets.
    pub message_id: String,
    pub tag: Option<String>,
    pub template: Option<String>,
    pub created_at: Timestamp,
    /// Time of sending that the caller chose.
    pub send_at: Option<Timestamp>,
    pub size: u64,
    pub test: bool,
    /// Why a held message is held.
    pub held_reason: Option<String>,
}

/// The columns of a message that search conditions and `SearchItem` use.
#[derive(Debug)]
pub(super) struct SearchRow {
    pub(super) id: i64,
    pub(super) token: String,
    pub(super) rcpt_to: String,
    pub(super) status: Status,
    pub(super) message_id: String,
    pub(super) mail_from: String,
    pub(super) from_domain: String,
    pub(super) subject: String,
    pub(super) tag: Option<String>,
    pub(super) metadata: String,
    pub(super) options: String,
    pub(super) size: i64,
    pub(super) test: bool,
    pub(super) created_at: Timestamp,
    /// Send time to which the message was rescheduled.
    pub(super) send_at: Option<Timestamp>,
}

/// The options of a send that searches use.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SearchedOptions {
    pub(super) template: Option<String>,
    pub(super) attachment: bool,
    pub(super) send_at: Option<Timestamp>,
}

impl SearchRow {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.int(0)?,
            token: row.text(1)?,
            rcpt_to: row.text(2)?,
            status: row.parsed(3, Status::parse)?,
            message_id: row.text(4)?,
            mail_from: row.text(5)?,
            from_domain: row.text(6)?,
            subject: row.text(7)?,
            tag: row.text_opt(8)?,
            metadata: row.text(9)?,
            options: row.text(10)?,
            size: row.int(11)?,
            test: row.flag(12)?,
            created_at: row.time(13)?,
            send_at: row.time_opt(14)?,
        })
    }

    pub(super) fn options(&self) -> Result<SearchedOptions> {
        if self.options == "{}" {
            return Ok(SearchedOptions::default());
        }
        serde_json::from_str(&self.options)
            .map_err(|_| StoreError::Internal("the options of a send cannot be read".into()))
    }

    pub(super) fn metadata(&self) -> Result<BTreeMap<String, String>> {
        if self.metadata == "{}" {
            return Ok(BTreeMap::new());
        }
        serde_json::from_str(&self.metadata)
            .map_err(|_| StoreError::Internal("the metadata of a send cannot be read".into()))
    }

    pub(super) fn into_item(self) -> Result<SearchItem> {
        let SearchedOptions { template, send_at, .. } = self.options()?;
        Ok(SearchItem {
            id: MessageId(self.id),
            token: MessageToken(self.token),
            status: self.status,
            rcpt_to: self.rcpt_to,
            mail_from: self.mail_from,
            subject: self.subject,
            message_id: self.message_id,
            tag: self.tag,
            template,
            created_at: self.created_at,
            send_at: self.send_at.or(send_at),
            size: self.size as u64,
            test: self.test,
            held_reason: None,
        })
    }
}

/// Outgoing messages with ids from `first_id` to below `before`, newest first. Fewer rows than `limit` mean that there
/// are no more.
pub(super) async fn scan_down(
    sql: &Sql<'_>,
    server_id: ServerId,
    first_id: i64,
    before: i64,
    limit: i64,
) -> Result<Vec<SearchRow>> {
    let params = [server_id.0.into(), first_id.into(), before.into(), limit.into()];
    sql.query(statements::SCAN_DOWN, &params).await?.iter().map(SearchRow::read).collect()
}

/// Outgoing messages with ids from `first` to below `before`, oldest first; for building the index.
pub(super) async fn scan_up(
    sql: &Sql<'_>,
    server_id: ServerId,
    first: i64,
    before: i64,
    limit: i64,
) -> Result<Vec<SearchRow>> {
    let params = [server_id.0.into(), first.into(), before.into(), limit.into()];
    sql.query(statements::SCAN_UP, &params).await?.iter().map(SearchRow::read).collect()
}

/// The messages with these ids that still exist, in no particular order.
pub(super) async fn read_by_ids(sql: &Sql<'_>, server_id: ServerId, ids: &[i64]) -> Result<Vec<SearchRow>> {
    let text = if sql.is_sqlite() { statements::MESSAGES_SQLITE } else { statements::MESSAGES_POSTGRES };
    let params: [Value; 2] = [server_id.0.into(), to_json(&ids).into()];
    sql.query(text, &params).await?.iter().map(SearchRow::read).collect()
}

/// Fills in why held messages are held.
pub(super) async fn add_held_reasons(
    sql: &Sql<'_>,
    server_id: ServerId,
    items: &mut [SearchItem],
) -> Result<()> {
    let held: Vec<i64> =
        items.iter().filter(|item| item.status == Status::Held).map(|item| item.id.0).collect();
    if held.is_empty() {
        return Ok(());
    }
    let text = if sql.is_sqlite() { statements::HOLDS_SQLITE } else { statements::HOLDS_POSTGRES };
    let mut reasons: BTreeMap<i64, String> = BTreeMap::new();
    for row in sql.query(text, &[server_id.0.into(), to_json(&held).into()]).await? {
        let data: serde_json::Value = row.json(1)?;
        if let Some(reason) = data.get("reason").and_then(serde_json::Value::as_str) {
            reasons.insert(row.int(0)?, reason.to_owned());
        }
    }
    for item in items.iter_mut().filter(|item| item.status == Status::Held) {
        item.held_reason = reasons.remove(&item.id.0);
    }
    Ok(())
}
