//! The server under which the service's own mail is stored, such as links to set a password.

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;
use postroad_store::StoreError;

use crate::App;

#[boxed_futures]
impl App {
    /// Whether the messages of a server are the service's own mail.
    pub(crate) async fn is_service_server(&self, id: ServerId) -> Result<bool, StoreError> {
        if let Some(known) = self.inner.service_server.find(&()) {
            return Ok(known == Some(id));
        }
        let start = self.inner.service_server.start_read();
        let own = self.inner.store.find_service_server().await?;
        self.inner.service_server.put((), own, start);
        Ok(own == Some(id))
    }

    /// Created with the first message.
    pub(super) async fn service_server(&self) -> Result<ServerId, StoreError> {
        let start = self.inner.service_server.start_read();
        let id = self.inner.store.find_or_create_service_server().await?;
        self.inner.service_server.put((), Some(id), start);
        Ok(id)
    }
}
