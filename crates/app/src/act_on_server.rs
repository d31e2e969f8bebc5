//! Lets people work on one server: they can do what the server's own key can, limited by their role.

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use crate::access::{Effect, Operation};
use crate::accounts::{AccountRefusal, Requester};
use crate::{App, Caller, FieldProblem, Peer, Refusal};

#[boxed_futures]
impl App {
    /// Checks that `by` may perform `operation` on a server, and returns a `Caller` for that server. On a suspended
    /// server, operations with `Effect::Send` are refused, except the cancellation of scheduled mail.
    pub async fn act_on_server(
        &self,
        by: &Requester,
        peer: Peer,
        id: ServerId,
        operation: Operation,
    ) -> Result<Caller, AccountRefusal> {
        let server = self.permitted_server(by, operation, id).await?;
        let sends = operation.effect() == Effect::Send && operation != Operation::SendCancel;
        if server.suspended_reason.is_some() && sends {
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
            any_from: self.inner.dev.accepts_any_from(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use postroad_model::{DomainName, Limits, SystemClock};
    use postroad_store::{Database, Role, Settings, Store};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn mail_of_a_suspended_server_can_be_cancelled_but_neither_rescheduled_nor_sent() {
        let folder = tempfile::TempDir::new().unwrap();
        let settings = Settings::small(Database::Sqlite(folder.path().join("postroad.db")));
        let role = Role::Node { identity: "test".into() };
        let store = Store::open(settings, role, Arc::new(SystemClock)).await.unwrap();
        let host = DomainName::parse("mail.example.test").unwrap();
        let app = App::new(store.clone(), Arc::new(SystemClock), Limits::default(), host);
        app.dev_setup().await.unwrap();
        let id = store.list_servers().await.unwrap().remove(0).id;
        app.suspend_server("dev", Some("abuse".into())).await.unwrap();
        let (by, peer) = (Requester::command_line(), Peer { address: Ipv4Addr::LOCALHOST.into(), tls: true });
        let act = async |operation| app.act_on_server(&by, peer, id, operation).await.is_ok();
        assert!(act(Operation::SendCancel).await);
        assert!(act(Operation::MessagesCancel).await);
        assert!(!act(Operation::SendReschedule).await);
        assert!(!act(Operation::SendMessage).await);
    }
}
