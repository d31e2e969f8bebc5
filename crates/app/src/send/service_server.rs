//! The server under which the service's own mail is stored, such as mail with links to set a password.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, ServerId};
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

    /// The service server and its account. Neither can be deleted: a restored server would no longer be known as the
    /// service's own, and the links in its mail could be read.
    pub(crate) async fn find_service_account(&self) -> Result<Option<(ServerId, AccountId)>, StoreError> {
        let Some(id) = self.inner.store.find_service_server().await? else { return Ok(None) };
        let server = self.inner.store.find_server(id).await?;
        Ok(server.map(|server| (id, server.account_id)))
    }

    /// The service server; created with the first message.
    pub(super) async fn find_or_create_service_server(&self) -> Result<ServerId, StoreError> {
        let start = self.inner.service_server.start_read();
        let id = self.inner.store.find_or_create_service_server().await?;
        self.inner.service_server.put((), Some(id), start);
        Ok(id)
    }
}
