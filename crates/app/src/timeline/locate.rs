//! Finds messages of any server by id, token or Message-ID, for the operator.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{MessageId, ServerId};
use postroad_store::{FilterTerm, Matcher, MessageName, SearchFilter, StoreError};

use crate::App;

/// Messages of one send that are shown.
const FOUND_MAX: usize = 20;
/// Time for one server.
const SERVER_TIME_MAX: Duration = Duration::from_secs(10);

impl App {
    /// Messages that this text names; newest first within a server.
    pub async fn locate_messages(&self, text: &str) -> Result<Vec<(ServerId, MessageId)>, StoreError> {
        let store = &self.inner.store;
        if let Ok(id) = text.parse::<i64>() {
            let id = MessageId(id);
            return Ok(store.locate_message(id).await?.map(|server| (server, id)).into_iter().collect());
        }
        let bare = text.trim_start_matches('<').trim_end_matches('>').to_owned();
        let (name, matcher) = if bare.contains('@') {
            (MessageName::MessageId(bare.clone()), Matcher::MessageId(bare))
        } else {
            (MessageName::Token(bare.clone()), Matcher::Token(bare))
        };
        let mut found = store.locate_unindexed(name, FOUND_MAX).await?;
        let filter = Arc::new(SearchFilter {
            terms: vec![FilterTerm { matcher, is_negated: false }],
            ..SearchFilter::default()
        });
        for server_id in store.list_indexed_servers().await? {
            if found.len() >= FOUND_MAX {
                break;
            }
            let page = store.search(server_id, &filter, None, FOUND_MAX, SERVER_TIME_MAX).await?;
            found.extend(page.items.iter().map(|item| (server_id, item.id)));
        }
        found.sort_unstable_by_key(|(server_id, id)| (*server_id, std::cmp::Reverse(*id)));
        found.dedup();
        found.truncate(FOUND_MAX);
        Ok(found)
    }
}
