//! Finds messages of any server by id, token or Message-ID, for the operator.
//!
//! An id is looked up by index, once for each server. A Message-ID that was made here names the server, so finding its
//! messages costs the same however many servers there are. A token or any other Message-ID is searched in every server,
//! servers with the newest mail first, until the time is up.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postroad_model::{MessageId, ServerId};
use postroad_store::{FilterTerm, Matcher, MessageName, SearchFilter, StoreError};

use crate::App;
use crate::access::{Operation, Subject, permit};
use crate::accounts::{AccountRefusal, Requester};
use crate::send::stored_message_filter;

/// Maximum number of messages found by one Message-ID.
const FOUND_MAX: usize = 20;
/// Time limit of a search by a Message-ID that names the server.
const SERVER_TIME_MAX: Duration = Duration::from_secs(10);
/// Time limit of a search from the operator's page.
const PAGE_TIME_MAX: Duration = Duration::from_secs(8);
/// Number of servers whose messages outside the index are read in one statement. Usually each server has a few thousand
/// such messages at most.
const SERVERS_PER_STATEMENT: usize = 32;

/// Messages that a text names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LocatedMessages {
    /// Newest first within a server.
    pub found: Vec<(ServerId, MessageId)>,
    /// Whether the time was up before everything was searched.
    pub is_cut: bool,
}

impl LocatedMessages {
    fn of_server(server_id: ServerId, ids: impl Iterator<Item = MessageId>) -> Self {
        Self { found: ids.map(|id| (server_id, id)).collect(), is_cut: false }
    }
}

impl App {
    /// Like `locate_messages`, for a page of the operator: checks the permission, and limits the time.
    pub async fn locate_messages_as(
        &self,
        by: &Requester,
        text: &str,
    ) -> Result<LocatedMessages, AccountRefusal> {
        permit(&by.actor, Operation::InstallationStatus, Subject::Installation)
            .map_err(AccountRefusal::Denied)?;
        let _permit = self.inner.long_reads.permit_for_operators().await;
        Ok(self.locate_messages(text, PAGE_TIME_MAX).await?)
    }

    /// Finds messages by id, token or Message-ID. `time_max` limits searches, but not the look-up of an id.
    pub async fn locate_messages(
        &self,
        text: &str,
        time_max: Duration,
    ) -> Result<LocatedMessages, StoreError> {
        let store = &self.inner.store;
        if let Ok(id) = text.parse::<i64>() {
            let id = MessageId(id);
            let server_id = store.locate_message(id).await?;
            return Ok(server_id.map_or_else(LocatedMessages::default, |server_id| {
                LocatedMessages::of_server(server_id, std::iter::once(id))
            }));
        }
        let bare = text.trim_start_matches('<').trim_end_matches('>').to_owned();
        let own = self.inner.message_id_key.get().and_then(|key| key.parse(&bare));
        if let Some(own) = own {
            let filter = Arc::new(stored_message_filter(own, bare.to_ascii_lowercase()));
            let server_time_max = SERVER_TIME_MAX.min(time_max);
            let page = store.search(own.server_id, &filter, None, FOUND_MAX, server_time_max).await?;
            let is_cut = page.next.is_some() && page.items.len() < FOUND_MAX;
            let located = LocatedMessages::of_server(own.server_id, page.items.iter().map(|item| item.id));
            return Ok(LocatedMessages { is_cut, ..located });
        }
        if bare.contains('@') {
            self.search_all_servers(MessageName::MessageId(bare), FOUND_MAX, time_max).await
        } else {
            self.search_all_servers(MessageName::Token(bare), 1, time_max).await
        }
    }

    /// Searches all servers: first the messages that are not indexed yet, then the indexes.
    async fn search_all_servers(
        &self,
        name: MessageName,
        found_max: usize,
        time_max: Duration,
    ) -> Result<LocatedMessages, StoreError> {
        let (store, started_at) = (&self.inner.store, Instant::now());
        let time_left = || Some(time_max.saturating_sub(started_at.elapsed())).filter(|left| !left.is_zero());
        let mut servers = store.list_newest_messages().await?;
        servers.sort_unstable_by_key(|(_, newest)| Reverse(*newest));
        let servers: Vec<ServerId> = servers.into_iter().map(|(server_id, _)| server_id).collect();
        let mut located = LocatedMessages::default();
        for group in servers.chunks(SERVERS_PER_STATEMENT) {
            if located.found.len() < found_max {
                if time_left().is_none() {
                    located.is_cut = true;
                    return Ok(located);
                }
                located.found.extend(store.locate_unindexed(name.clone(), group, found_max).await?);
            }
        }
        let matcher = match name {
            MessageName::Token(token) => Matcher::Token(token),
            MessageName::MessageId(id) => Matcher::MessageIdHeader(id),
        };
        let terms = vec![FilterTerm { matcher, is_negated: false }];
        let filter = Arc::new(SearchFilter { terms, ..SearchFilter::default() });
        let indexed = store.list_indexed_servers().await?;
        for server_id in servers.into_iter().filter(|id| indexed.binary_search(id).is_ok()) {
            if located.found.len() >= found_max {
                break;
            }
            let Some(left) = time_left() else {
                located.is_cut = true;
                break;
            };
            let page = store.search(server_id, &filter, None, found_max, left).await?;
            located.is_cut |= page.next.is_some() && page.items.len() < found_max;
            located.found.extend(page.items.iter().map(|item| (server_id, item.id)));
        }
        located.found.sort_unstable_by_key(|(server_id, id)| (*server_id, Reverse(*id)));
        located.found.dedup();
        located.found.truncate(FOUND_MAX);
        Ok(located)
    }
}

#[cfg(test)]
mod tests {
    use postroad_model::{DomainName, Limits, SystemClock};
    use postroad_store::{Database, Role, Settings, Store};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_search_of_all_servers_ends_when_its_time_is_up() {
        let folder = tempfile::TempDir::new().unwrap();
        let settings = Settings::small(Database::Sqlite(folder.path().join("postroad.db")));
        let role = Role::Node { identity: "test".into() };
        let store = Store::open(settings, role, Arc::new(SystemClock)).await.unwrap();
        let host = DomainName::parse("mail.example.test").unwrap();
        let app = App::new(store, Arc::new(SystemClock), Limits::default(), host);
        let locate = async |time_max| app.locate_messages("abcdefghijklmnop", time_max).await.unwrap();
        assert_eq!(locate(Duration::ZERO).await, LocatedMessages::default(), "there is no server to look at");
        app.dev_setup().await.unwrap();
        assert!(locate(Duration::ZERO).await.is_cut);
        assert_eq!(locate(Duration::from_mins(1)).await, LocatedMessages::default());
    }
}
