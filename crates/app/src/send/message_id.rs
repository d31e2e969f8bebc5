//! Makes Message-IDs for messages without one (a UUID at `rp.<hostname>`), and finds the message that a return path
//! names.

use std::time::Duration;

use postroad_mail::{MessageIdKey, OwnMessageId, ReturnPathKey};
use postroad_model::{MessageId, ServerId, idgen};
use postroad_store::{FilterTerm, Matcher, SearchFilter};
use uuid::Uuid;

use crate::App;

/// Maximum difference between the time in a Message-ID and the time at which its message was accepted.
const ACCEPT_TIME_DIFFERENCE_MAX: Duration = Duration::from_mins(10);

/// Search filter for the messages that have this Message-ID, which was made here.
pub(crate) fn stored_message_filter(own: OwnMessageId, message_id: String) -> SearchFilter {
    let made_at = idgen::second_of_id(own.number);
    SearchFilter {
        since: Some(made_at.minus(ACCEPT_TIME_DIFFERENCE_MAX)),
        until: Some(made_at.plus(ACCEPT_TIME_DIFFERENCE_MAX)),
        terms: vec![FilterTerm { matcher: Matcher::MessageIdHeader(message_id), is_negated: false }],
        ..SearchFilter::default()
    }
}

impl App {
    /// Sets the secret by which our Message-IDs and return paths are recognised. Call once, before anything is
    /// accepted.
    pub fn set_message_id_key(&self, secret: &[u8; 32]) {
        // The installation has only one key: keep the first.
        let _ = self.inner.message_id_key.set(MessageIdKey::new(secret));
        let _ = self.inner.return_path_key.set(ReturnPathKey::new(secret));
    }

    /// Message whose mail has this envelope sender; `None` if the address is not a return path that was made here.
    /// Checks no permission: that happens when the caller looks up the message.
    pub fn message_of_return_path(&self, address: &str) -> Option<(ServerId, MessageId)> {
        let (local_part, _) = address.rsplit_once('@')?;
        self.inner.return_path_key.get()?.parse(local_part)
    }

    /// Message-ID by which a complaint about a message of this server is recognised. Random, and not recognised, until
    /// the installation's secret is known.
    pub(super) fn new_message_id(&self, server_id: ServerId) -> String {
        let own = || {
            let number = self.inner.store.ids().ok()?.next();
            self.inner.message_id_key.get()?.uuid(OwnMessageId { server_id, number })
        };
        self.message_id_of(own().unwrap_or_else(Uuid::new_v4))
    }

    /// Random Message-ID, for forwarded mail: complaints are not recognised by it.
    pub(super) fn random_message_id(&self) -> String {
        self.message_id_of(Uuid::new_v4())
    }

    fn message_id_of(&self, uuid: Uuid) -> String {
        format!("{uuid}@rp.{}", self.inner.hostname)
    }
}
