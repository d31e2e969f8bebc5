//! Panel that waits for the first message that is accepted after the panel was created. Only the newest messages are
//! searched for it.

use postroad_app::access::Operation;
use postroad_app::{Caller, LookupError, MessageDetail, SearchRequest};
use postroad_model::{CredentialId, MessageId};
use postroad_store::SearchItem;

use crate::display::StatusBadge;
use crate::messages::newest_rows::NewestRows;
use crate::messages::{TimelineRow, rows};
use crate::problem::Problem;
use crate::query::query;
use crate::visit::Visit;

/// Number of newest messages that are searched for the awaited one.
const SEARCHED_MAX: usize = 20;

/// Describes the message that a panel waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AwaitedMessage {
    /// The newest message when the panel was created; 0 for none.
    since: MessageId,
    /// The key that sends the awaited message; `None` for any key.
    key: Option<CredentialId>,
}

impl AwaitedMessage {
    /// A message accepted from now on.
    pub(crate) async fn from_now(
        visit: &Visit,
        caller: &Caller,
        key: Option<CredentialId>,
    ) -> Result<Self, Problem> {
        let newest = newest(visit, caller, 1).await?;
        Ok(Self { since: newest.first().map_or(MessageId(0), |item| item.id), key })
    }

    /// Reads the page's query; `None` without `since`.
    pub(super) fn of_query(visit: &Visit) -> Option<Self> {
        let since = visit.query.number("since").map(MessageId)?;
        Some(Self { since, key: visit.query.number("key").map(CredentialId) })
    }

    /// A message accepted after the message with the id `since`; `None` without an id.
    pub(super) fn after_id(since: Option<i64>) -> Option<Self> {
        since.map(|since| Self { since: MessageId(since), key: None })
    }

    pub(super) fn since(self) -> i64 {
        self.since.0
    }

    /// Path and query of the page with the panel.
    pub(crate) fn page(self, server: i64) -> String {
        let key = self.key.map(|key| key.0.to_string()).unwrap_or_default();
        let query = query(&[("since", &self.since.0.to_string()), ("key", &key)]);
        format!("/servers/{server}/first_message{query}")
    }

    fn words(self) -> &'static str {
        match (self.since.0, self.key) {
            (0, _) => "your first message",
            (_, Some(_)) => "a message that is sent with this key",
            _ => "a new message",
        }
    }
}

/// The panel as a page shows it.
pub(crate) struct ArrivalPanel {
    /// The awaited message, in words.
    pub(crate) awaited: &'static str,
    /// Path and query of the page with the panel; the script loads it to update the panel.
    pub(crate) page: String,
    pub(crate) message: Option<ArrivedMessage>,
    pub(crate) timeline: NewestRows<TimelineRow>,
}

pub(crate) struct ArrivedMessage {
    pub(crate) id: i64,
    pub(crate) to: String,
    pub(crate) subject: String,
    pub(crate) status: StatusBadge,
}

impl ArrivalPanel {
    /// The panel before its message arrives.
    pub(crate) fn waiting(server: i64, awaited: AwaitedMessage) -> Self {
        let timeline = NewestRows::default();
        Self { awaited: awaited.words(), page: awaited.page(server), message: None, timeline }
    }

    /// The panel, with its message if that was accepted.
    pub(super) async fn find(visit: &Visit, server: i64, awaited: AwaitedMessage) -> Result<Self, Problem> {
        let caller = visit.caller(server, Operation::MessagesTimeline).await?;
        let mut arrival = Self::waiting(server, awaited);
        let mut newer = newest(visit, &caller, SEARCHED_MAX).await?;
        newer.retain(|item| item.id > awaited.since);
        for item in newer.into_iter().rev() {
            if !is_sent_with(visit, &caller, item.id, awaited.key).await? {
                continue;
            }
            arrival.timeline = rows(visit.app().message_timeline(caller.server_id, item.id).await?.items, 0);
            arrival.message = Some(ArrivedMessage {
                id: item.id.0,
                to: item.rcpt_to,
                subject: item.subject,
                status: StatusBadge(item.status),
            });
            break;
        }
        Ok(arrival)
    }
}

async fn newest(visit: &Visit, caller: &Caller, limit: usize) -> Result<Vec<SearchItem>, Problem> {
    let filter = SearchRequest::default()
        .filter()
        .map_err(|_| Problem::Internal("the empty search is invalid".to_owned()))?;
    Ok(visit.app().search_messages(caller, filter, None, limit).await?.items)
}

/// Whether the message was sent with the key. False for a message that was removed meanwhile.
async fn is_sent_with(
    visit: &Visit,
    caller: &Caller,
    id: MessageId,
    key: Option<CredentialId>,
) -> Result<bool, Problem> {
    let Some(key) = key else { return Ok(true) };
    match visit.app().find_message(caller, id, MessageDetail::Record).await {
        Ok(found) => Ok(found.record.is_some_and(|record| record.send.credential_id == Some(key))),
        Err(LookupError::NotFound) => Ok(false),
        Err(LookupError::Store(error)) => Err(error.into()),
    }
}
