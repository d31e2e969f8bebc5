//! Finds the message that a complaint is about. Anybody can write a complaint, so only identifiers with our MAC count.

use std::sync::Arc;
use std::time::Duration;

use postroad_mail::{OwnMessageId, Returned};
use postroad_store::Message;

use super::{ReturnReceiver, ReturnRefusal};
use crate::send::stored_message_filter;

/// Time limit of the search by Message-ID.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(10);
/// Two matches are enough to know that the match is not unique.
const FOUND_MAX: usize = 2;

impl ReturnReceiver {
    /// The message that the enclosed original identifies: by a header that Postroad added or by its return path, else
    /// by its Message-ID.
    /// `ComplaintAboutOtherMail` if none of these identifiers was issued here, several recipients share the Message-ID,
    /// or the message no longer exists. `Busy` if the search took too long.
    pub(super) async fn find_original(&self, returned: &Returned) -> Result<Message, ReturnRefusal> {
        let ids = returned.original_ids.iter().find_map(|id| self.addresses.key.parse(id));
        if let Some((server_id, message_id)) = ids {
            let found = self.app.inner.store.find_message(server_id, message_id).await?;
            return found.ok_or(ReturnRefusal::ComplaintAboutOtherMail);
        }
        let message_id = returned.original_message_id.as_deref().unwrap_or_default();
        let Some(own) = self.message_id_key.parse(message_id) else {
            tracing::info!("complaint has no identifier of our messages; nobody is suppressed");
            return Err(ReturnRefusal::ComplaintAboutOtherMail);
        };
        self.find_by_message_id(own, message_id.to_ascii_lowercase()).await
    }

    /// All recipients of a send share its Message-ID, so the Message-ID identifies a message only if the send has one
    /// recipient.
    async fn find_by_message_id(
        &self,
        own: OwnMessageId,
        message_id: String,
    ) -> Result<Message, ReturnRefusal> {
        let filter = Arc::new(stored_message_filter(own, message_id));
        let store = &self.app.inner.store;
        let page = store.search(own.server_id, &filter, None, FOUND_MAX, SEARCH_TIME_MAX).await?;
        match page.items.as_slice() {
            [_, _, ..] => {
                tracing::info!(
                    "complaint names only a Message-ID that several recipients share; nobody is suppressed"
                );
                Err(ReturnRefusal::ComplaintAboutOtherMail)
            }
            // The time limit was reached before the whole range was read.
            _ if page.next.is_some() => Err(ReturnRefusal::Busy),
            [one] => {
                let found = store.find_message(own.server_id, one.id).await?;
                found.ok_or(ReturnRefusal::ComplaintAboutOtherMail)
            }
            // Removed meanwhile, for example by retention.
            [] => Err(ReturnRefusal::ComplaintAboutOtherMail),
        }
    }
}
