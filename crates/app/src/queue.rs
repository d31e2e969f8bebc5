//! The queue as people see it, and the gates that people set: an account on its own servers, the operator on any scope.
//! Delivery applies a gate within seconds; the messages are not changed.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainName, GateAction, GateScope, MessageId, ServerId, Timestamp};
use postroad_store::{
    AuditSubject, Gate, NewGate, Pool, QueueEntry, QueueFilter, ServerQueue, SetBy, Store, StoreError,
};

use crate::access::{Operation, Subject, permit};
use crate::accounts::{AccountRefusal, Requester, origin_of, page};
use crate::{App, Caller, names};

/// Longest time for which a gate can be set; a gate without an end stays until it is lifted.
const GATE_TIME_MAX: Duration = Duration::from_hours(30 * 24);

/// Request for a suspension or slow-down.
#[derive(Debug, Clone)]
pub struct GateRequest {
    pub action: GateAction,
    pub reason: String,
    /// Duration of the gate; `None` if the gate stays until it is lifted.
    pub time: Option<Duration>,
}

#[boxed_futures]
impl App {
    /// Waiting messages of the caller's server to one domain or to all, in the order they are due, and whether there
    /// are more.
    pub async fn list_queue_as(
        &self,
        caller: &Caller,
        domain: Option<DomainName>,
        after: Option<(Timestamp, MessageId)>,
        limit: usize,
    ) -> Result<(Vec<QueueEntry>, bool), StoreError> {
        let filter = QueueFilter { server_id: Some(caller.server_id), domain };
        Ok(page(self.inner.store.list_queue_page(filter, after, limit + 1).await?, limit))
    }

    /// Waiting messages of all servers, for the operator.
    pub async fn list_installation_queue(
        &self,
        by: &Requester,
        domain: Option<DomainName>,
        after: Option<(Timestamp, MessageId)>,
        limit: usize,
    ) -> Result<(Vec<QueueEntry>, bool), AccountRefusal> {
        permit(&by.actor, Operation::InstallationStatus, Subject::Installation)
            .map_err(AccountRefusal::Denied)?;
        let filter = QueueFilter { server_id: None, domain };
        Ok(page(self.inner.store.list_queue_page(filter, after, limit + 1).await?, limit))
    }

    pub async fn count_queue_as(&self, caller: &Caller) -> Result<ServerQueue, StoreError> {
        self.inner.store.count_queue_of_server(caller.server_id).await
    }

    /// Gates that may affect mail of the caller's server from its default pool. Gates on single addresses and paths are
    /// left out; `list_all_gates` shows them to the operator.
    pub async fn list_gates_as(&self, caller: &Caller) -> Result<Vec<Gate>, StoreError> {
        let mut gates = self.inner.store.list_gates().await?;
        if gates.is_empty() {
            return Ok(gates);
        }
        let own_pool =
            self.inner.store.find_server(caller.server_id).await?.and_then(|server| server.pool_id);
        let pools = self.inner.store.list_pools().await?;
        let is_used = |pool: &Pool| own_pool.map_or(pool.shared, |own| pool.id == own);
        gates.retain(|gate| match &gate.scope {
            GateScope::Everything | GateScope::Domain(_) | GateScope::Provider(_) => true,
            GateScope::Server(id) => *id == caller.server_id,
            GateScope::Pool(name) | GateScope::Lane { pool: name, .. } => {
                // `default` names the pool of an installation without pools.
                pools.iter().any(|pool| pool.name == *name && is_used(pool))
                    || pools.is_empty() && name == "default"
            }
            GateScope::Path { .. } | GateScope::SourceProvider { .. } => false,
        });
        Ok(gates)
    }

    /// Stops or slows the sending of a server. The server's keys keep working: messages are accepted and wait. An
    /// account cannot replace a gate of the operator.
    pub async fn suspend_queue_as(
        &self,
        by: &Requester,
        id: ServerId,
        request: GateRequest,
    ) -> Result<(), AccountRefusal> {
        let operation = Operation::QueueSuspend;
        self.permitted_server(by, operation, id).await?;
        self.set_gate(by, operation, GateScope::Server(id), request).await
    }

    /// Lifts the gate of a server. An account cannot lift a gate of the operator.
    pub async fn resume_queue_as(&self, by: &Requester, id: ServerId) -> Result<(), AccountRefusal> {
        let operation = Operation::QueueResume;
        self.permitted_server(by, operation, id).await?;
        let scope = GateScope::Server(id);
        let store = self.gate_store(by, operation, scope.clone());
        let is_lifted = match origin_of(by) {
            SetBy::Operator => store.remove_gate(scope).await.map(|_| true)?,
            SetBy::Account => store.remove_gate_of_account(scope).await?,
        };
        if is_lifted { Ok(()) } else { Err(AccountRefusal::SetByOperator) }
    }

    /// All gates of the installation.
    pub async fn list_all_gates(&self, by: &Requester) -> Result<Vec<Gate>, AccountRefusal> {
        permit(&by.actor, Operation::InstallationStatus, Subject::Installation)
            .map_err(AccountRefusal::Denied)?;
        Ok(self.inner.store.list_gates().await?)
    }

    /// Sets a gate on any scope.
    pub async fn set_gate_as(
        &self,
        by: &Requester,
        scope: &str,
        request: GateRequest,
    ) -> Result<(), AccountRefusal> {
        let operation = Operation::InstallationSuspend;
        permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)?;
        let scope = parse_scope(scope)?;
        if let GateScope::Pool(name) | GateScope::Lane { pool: name, .. } = &scope {
            let pools = self.inner.store.list_pools().await?;
            let is_there = |pool: &Pool| pool.name == *name;
            // `default` names the pool of an installation without pools.
            if !(pools.iter().any(is_there) || pools.is_empty() && name == "default") {
                return Err(AccountRefusal::problem("scope", "names a pool that does not exist"));
            }
        }
        self.set_gate(by, operation, scope, request).await
    }

    /// Lifts a gate, whether a person or Postroad itself set it.
    pub async fn lift_gate_as(&self, by: &Requester, scope: &str) -> Result<(), AccountRefusal> {
        let operation = Operation::InstallationResume;
        permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)?;
        let scope = parse_scope(scope)?;
        self.gate_store(by, operation, scope.clone()).remove_gate(scope).await?;
        Ok(())
    }

    async fn set_gate(
        &self,
        by: &Requester,
        operation: Operation,
        scope: GateScope,
        request: GateRequest,
    ) -> Result<(), AccountRefusal> {
        let reason = request.reason.trim().to_owned();
        if let Some(problem) = names::find_reason_problem(&reason) {
            return Err(AccountRefusal::problem("reason", problem));
        }
        if request.action == (GateAction::Slow { per_minute: 0 }) {
            return Err(AccountRefusal::problem("per_minute", "should be at least 1"));
        }
        if request.time.is_some_and(|time| time > GATE_TIME_MAX || time.is_zero()) {
            return Err(AccountRefusal::problem("time", "should be from 1 second to 30 days"));
        }
        let ends_at = request.time.map(|time| self.inner.clock.now().plus(time));
        let new = NewGate { scope: scope.clone(), action: request.action, reason, automatic: false, ends_at };
        let is_set = self.gate_store(by, operation, scope).set_gate_by(origin_of(by), new).await?;
        if is_set { Ok(()) } else { Err(AccountRefusal::SetByOperator) }
    }

    fn gate_store(&self, by: &Requester, operation: Operation, scope: GateScope) -> Store {
        self.audited_store(by, operation, AuditSubject::Gate(scope))
    }
}

fn parse_scope(text: &str) -> Result<GateScope, AccountRefusal> {
    GateScope::parse(text.trim()).ok_or_else(|| {
        AccountRefusal::problem(
            "scope",
            "should be everything, pool:NAME, server:ID, domain:NAME, lane:POOL/DOMAIN, provider:NAME, \
             path:SOURCE/SITE or source-provider:SOURCE/PROVIDER",
        )
    })
}
