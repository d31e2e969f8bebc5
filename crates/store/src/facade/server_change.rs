//! A server's settings, several at once.

use postroad_model::ServerId;

use crate::records::{Server, ServerChange};
use crate::verbs::server_change;
use crate::{Result, Store};

impl Store {
    /// Changes all of it or nothing; returns the server as it is then. `Conflict` if another server of the account
    /// has the name.
    pub async fn update_server(&self, id: ServerId, change: ServerChange) -> Result<Server> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(server_change::update(sql, id, change, now))).await
    }
}
