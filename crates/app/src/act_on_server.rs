//! Lets people work on one server: they can do what the server's own key can, limited by their role.

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use crate::access::{Effect, Operation};
use crate::accounts::{AccountRefusal, Requester};
use crate::{App, Caller, FieldProblem, Peer, Refusal};

#[boxed_futures]
impl App {
    /// Checks that `by` may perform `operation` on a server, and returns the caller for it. On a suspended
    /// server, operations with `Effect::Send` are refused, even the cancellation of scheduled mail.
    pub async fn act_on_server(
        &self,
        by: &Requester,
        peer: Peer,
        id: ServerId,
        operation: Operation,
    ) -> Result<Caller, AccountRefusal> {
        let server = self.server_of(by, operation, id).await?;
        if server.suspended_reason.is_some() && operation.effect() == Effect::Send {
            let text = "The server is suspended: it sends nothing until it is resumed";
            return Err(Refusal::Validation(vec![FieldProblem::new("/server", text)]).into());
        }
        Ok(Caller {
            server_id: id,
            account_id: server.account_id,
            credential_id: None,
            actor: by.actor.clone(),
            mode: server.mode,
            hold: false,
            test: false,
            hourly_limit: server.hourly_limit,
            account_limits: server.account_limits(),
            tracking: server.tracking,
            peer,
            any_from: self.inner.dev.takes_any_from(),
        })
    }
}
