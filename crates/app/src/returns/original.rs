//! Finds the message that a complaint is about. Strangers write complaints, so only identifiers with our MAC count.

use std::sync::Arc;
use std::time::Duration;

use postroad_mail::{OwnMessageId, Returned};
use postroad_model::idgen;
use postroad_store::{FilterTerm, Matcher, Message, SearchFilter};

use super::{ReturnReceiver, ReturnRefusal};

/// A Message-ID is made at most this long before its message is stored, or after it by another node's clock.
const STORED_WITHIN: Duration = Duration::from_mins(10);
/// Time to look for a message that is not in the search index yet.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(10);
/// Two are enough to see that it is not one.
const FOUND_MAX: usize = 2;

impl ReturnReceiver {
    /// The message that the enclosed original names: by our header or its return path, else by its Message-ID.
    /// `ForeignComplaint` if none of them was made here, or the message no longer exists.
    pub(super) async fn find_original(&self, returned: &Returned) -> Result<Message, ReturnRefusal> {
        let of_copy = returned.original_ids.iter().find_map(|id| self.addresses.key.parse(id));
        if let Some((server_id, message_id)) = of_copy {
            let found = self.app.inner.store.find_message(server_id, message_id).await?;
            return found.ok_or(ReturnRefusal::ForeignComplaint);
        }
        let message_id = returned.original_message_id.as_deref().unwrap_or_default();
        let Some(own) = self.message_id_key.parse(message_id) else {
            tracing::info!("complaint without an identifier of a message of ours; nobody is suppressed");
            return Err(ReturnRefusal::ForeignComplaint);
        };
        self.find_by_message_id(own, message_id.to_ascii_lowercase()).await
    }

    /// All recipients of a send know its Message-ID, so it says which copy is meant only if there is one.
    async fn find_by_message_id(
        &self,
        own: OwnMessageId,
        message_id: String,
    ) -> Result<Message, ReturnRefusal> {
        let made_at = idgen::moment_of(own.number);
        let filter = Arc::new(SearchFilter {
            since: Some(made_at.minus(STORED_WITHIN)),
            until: Some(made_at.plus(STORED_WITHIN)),
            terms: vec![FilterTerm { matcher: Matcher::MessageId(message_id), is_negated: false }],
            ..SearchFilter::default()
        });
        let store = &self.app.inner.store;
        let page = store.search(own.server_id, &filter, None, FOUND_MAX, SEARCH_TIME_MAX).await?;
        match page.items.as_slice() {
            [_, _, ..] => {
                tracing::info!(
                    "complaint by a Message-ID that several recipients share; nobody is suppressed"
                );
                Err(ReturnRefusal::ForeignComplaint)
            }
            // The time was up before the whole range was read.
            _ if page.next.is_some() => Err(ReturnRefusal::Busy),
            [one] => {
                let found = store.find_message(own.server_id, one.id).await?;
                found.ok_or(ReturnRefusal::ForeignComplaint)
            }
            // Removed by retention.
            [] => Err(ReturnRefusal::ForeignComplaint),
        }
    }
}
