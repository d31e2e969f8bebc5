//! Message-IDs of messages that come without one: a UUID at the domain of return paths (contract 3).

use postroad_mail::{MessageIdKey, OwnMessageId};
use postroad_model::ServerId;
use uuid::Uuid;

use crate::App;

impl App {
    /// Sets the key by which Message-IDs are recognised in complaints. Call once, before anything is accepted.
    pub fn set_message_id_key(&self, secret: &[u8; 32]) {
        // The installation has one: the first stays.
        let _ = self.inner.message_id_key.set(MessageIdKey::new(secret));
    }

    /// Message-ID by which a complaint about a message of this server is recognised.
    pub(super) fn new_message_id(&self, server_id: ServerId) -> String {
        let own = || {
            let number = self.inner.store.ids().ok()?.next();
            self.inner.message_id_key.get()?.uuid(OwnMessageId { server_id, number })
        };
        self.message_id_of(own().unwrap_or_else(Uuid::new_v4))
    }

    /// Message-ID for mail that is not of a server: nobody complains about it here.
    pub(super) fn random_message_id(&self) -> String {
        self.message_id_of(Uuid::new_v4())
    }

    fn message_id_of(&self, uuid: Uuid) -> String {
        format!("{uuid}@rp.{}", self.inner.hostname)
    }
}
