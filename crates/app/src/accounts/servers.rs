//! Operations on the servers of an account.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, Change, LimitedObject, PoolId, ServerId, ServerMode};
use postroad_store::{
    AuditSubject, Ceiling, CeilingsChange, NewServer, Pool, PoolMove, Server, ServerFilter,
    ServerUpdateResult, SetBy, StoreError,
};

use super::recording::{Created, CreationKey};
use super::{AccountRefusal, ObjectKind, Requester, page};
use crate::access::{Operation, permit, permit_any};
use crate::server_settings::{ceiling_problem, check};
use crate::{App, FieldProblem, Refusal, ServerChangeRequest, names};

/// How long a deleted server can be restored.
const RESTORE_TIME: Duration = Duration::from_hours(7 * 24);
/// Maximum number of servers of one account.
const SERVERS_MAX: usize = 10_000;

#[derive(Debug, Clone)]
pub struct NewServerRequest {
    pub account: Option<AccountId>,
    pub name: String,
    pub mode: ServerMode,
    /// The pool that the server's mail leaves from; `None` for the shared one.
    pub pool: Option<PoolId>,
    pub idempotency_key: Option<CreationKey>,
}

#[derive(Debug, Clone)]
pub struct ServerUpdateRequest {
    /// The version that the caller has seen.
    pub if_version: Option<i64>,
    pub change: ServerChangeRequest,
    /// The pool that the server's mail leaves from; `Clear` for the shared one.
    pub pool: Change<PoolId>,
    /// Ceilings to set: the operator's or the account's, depending on the requester. The name and the tracking settings
    /// have no ceilings.
    pub ceilings: ServerChangeRequest,
}

#[boxed_futures]
impl App {
    pub async fn create_server_as(
        &self,
        by: &Requester,
        request: NewServerRequest,
    ) -> Result<Created<Server>, AccountRefusal> {
        let operation = Operation::ServersCreate;
        let account_id = self.permitted_account_id(by, operation, request.account).await?;
        // Count before looking up the idempotency key. If the count includes the server of a concurrent call with the
        // same key, the look-up finds that server, so this call is not refused for the maximum number of servers.
        let servers = self.inner.store.count_objects(account_id, LimitedObject::Servers).await?;
        if let Some(id) = self.find_created_id(Some(account_id), request.idempotency_key.as_ref()).await? {
            let value = self.permitted_server(by, operation, ServerId(id)).await?;
            return Ok(Created { value, is_replay: true });
        }
        if let Some(problem) = names::find_problem(&request.name) {
            return Err(AccountRefusal::problem("name", problem));
        }
        if servers >= SERVERS_MAX {
            return Err(AccountRefusal::problem("account", "has the maximum number of servers"));
        }
        if let Some(pool) = request.pool {
            self.check_pool_for(by, account_id, pool).await?;
        }
        let name = request.name.trim().to_owned();
        let subject = AuditSubject::NewServer(account_id, name.clone());
        let store = self.audited_store_for_creation(
            by,
            operation,
            subject,
            request.idempotency_key.as_ref().map(|key| (account_id, key)),
        );
        let new = NewServer { account_id, name, mode: request.mode, pool_id: request.pool };
        let created = store.create_server_by(origin_of(by), new).await;
        // A concurrent call with the same idempotency key may have created the server. Then the name exists, or the
        // ceiling is reached, because of that call.
        if matches!(created, Err(StoreError::Conflict | StoreError::CeilingReached { .. }))
            && let Some(id) = self.find_created_id(Some(account_id), request.idempotency_key.as_ref()).await?
        {
            let value = self.permitted_server(by, operation, ServerId(id)).await?;
            return Ok(Created { value, is_replay: true });
        }
        let value = created.map_err(AccountRefusal::from_store_error_on(ObjectKind::Server))?;
        Ok(Created { value, is_replay: false })
    }

    /// Returns a page ordered by id, and whether there are more.
    pub async fn list_servers_as(
        &self,
        by: &Requester,
        filter: ServerFilter,
        after: Option<ServerId>,
        limit: usize,
    ) -> Result<(Vec<Server>, bool), AccountRefusal> {
        let account_id = self.listed_account(by, Operation::ServersList, filter.account_id).await?;
        let filter = ServerFilter { account_id, ..filter };
        let found = self.inner.store.list_servers_page(filter, after, limit + 1).await?;
        Ok(page(found, limit))
    }

    pub async fn find_server_as(&self, by: &Requester, id: ServerId) -> Result<Server, AccountRefusal> {
        self.permitted_server(by, Operation::ServersGet, id).await
    }

    /// Applies all changes, or none if any is invalid or above a ceiling.
    pub async fn update_server_as(
        &self,
        by: &Requester,
        id: ServerId,
        request: ServerUpdateRequest,
    ) -> Result<Server, AccountRefusal> {
        let operation = Operation::ServersUpdate;
        let server = self.permitted_server(by, operation, id).await?;
        let mut change = check(request.change, &self.inner.retention).map_err(Refusal::Validation)?;
        change.pool = self.check_pool_move(by, &server, request.pool).await?;
        let missing = if change.pool.is_some() { ObjectKind::IpPool } else { ObjectKind::Server };
        let ceilings = (origin_of(by), self.check_ceilings(request.ceilings)?);
        // If this is true, a mode that exceeds a ceiling comes from `request.ceilings`, not from `request.change`.
        let only_lifts_ceiling =
            ceilings.1.mode == Some(ServerMode::Live) && change.mode != Some(ServerMode::Live);
        let store = self.audited_store(by, operation, AuditSubject::Server(id));
        let updated = store.update_server_with_ceilings(id, request.if_version, ceilings, change).await;
        self.forget_setup();
        match updated.map_err(|error| match error {
            // The pool or the server was deleted at the same moment.
            StoreError::NotFound => AccountRefusal::NotFound(missing),
            other => AccountRefusal::from_store_error_on(ObjectKind::Server)(other),
        })? {
            ServerUpdateResult::Done(server) => Ok(*server),
            ServerUpdateResult::Exceeds(ceilings) => {
                let problem = |(ceiling, owner)| {
                    let problem = ceiling_problem((ceiling, owner));
                    let is_in_ceilings = only_lifts_ceiling && matches!(ceiling, Ceiling::Mode(_));
                    if is_in_ceilings { in_ceilings(problem) } else { problem }
                };
                Err(Refusal::CeilingExceeded(ceilings.into_iter().map(problem).collect()).into())
            }
            ServerUpdateResult::OtherVersion(version) => Err(AccountRefusal::OtherVersion(version)),
        }
    }

    /// Suspends the server if there is a `reason`; otherwise resumes it. An account cannot change a suspension by the
    /// operator.
    pub async fn set_server_suspension_as(
        &self,
        by: &Requester,
        id: ServerId,
        reason: Option<String>,
    ) -> Result<Server, AccountRefusal> {
        let operation = if reason.is_some() { Operation::ServersSuspend } else { Operation::ServersResume };
        self.permitted_server(by, operation, id).await?;
        if let Some(problem) = reason.as_deref().and_then(names::find_reason_problem) {
            return Err(AccountRefusal::problem("reason", problem));
        }
        let store = self.audited_store(by, operation, AuditSubject::Server(id));
        let is_changed = store.set_server_suspended_by(origin_of(by), id, reason).await;
        self.forget_setup();
        if !is_changed.map_err(AccountRefusal::from_store_error_on(ObjectKind::Server))? {
            return Err(AccountRefusal::SetByOperator);
        }
        self.permitted_server(by, operation, id).await
    }

    /// Deletes a server. Its keys stop working at once, on other nodes within two seconds. Its data stays for seven
    /// days, during which the server can be restored.
    pub async fn delete_server(&self, by: &Requester, id: ServerId) -> Result<Server, AccountRefusal> {
        let operation = Operation::ServersDelete;
        self.permitted_server(by, operation, id).await?;
        if self.find_service_account().await?.is_some_and(|(server_id, _)| server_id == id) {
            return Err(AccountRefusal::problem(
                "id",
                "is the server of the service's own mail, which stays",
            ));
        }
        let delete_at = self.inner.clock.now().plus(RESTORE_TIME);
        let store = self.audited_store(by, operation, AuditSubject::Server(id));
        let deleted = store.set_server_deleted(id, Some(delete_at)).await;
        self.forget_setup();
        deleted.map_err(AccountRefusal::from_store_error_on(ObjectKind::Server))
    }

    pub async fn restore_server(&self, by: &Requester, id: ServerId) -> Result<Server, AccountRefusal> {
        let operation = Operation::ServersRestore;
        self.permitted_server_or_deleted(by, operation, id).await?;
        let store = self.audited_store(by, operation, AuditSubject::Server(id));
        let restored = store.set_server_deleted(id, None).await;
        self.forget_setup();
        restored.map_err(AccountRefusal::from_store_error_on(ObjectKind::Server))
    }

    /// An account may give its servers its own pools and the shared one. Only the operator takes a server out of any
    /// other pool.
    async fn check_pool_move(
        &self,
        by: &Requester,
        server: &Server,
        request: Change<PoolId>,
    ) -> Result<Option<PoolMove>, AccountRefusal> {
        let (from, to) = (server.pool_id, request.into_value());
        if request.is_keep() || from == to {
            return Ok(None);
        }
        if let Some(pool) = to {
            self.check_pool_for(by, server.account_id, pool).await?;
        }
        if let Some(pool) = from
            && !self.is_pool_for(by, server.account_id, pool).await?
        {
            return Err(AccountRefusal::problem("ip_pool", "is set by the operator of the service"));
        }
        Ok(Some(PoolMove { from, to }))
    }

    async fn check_pool_for(
        &self,
        by: &Requester,
        account_id: AccountId,
        pool: PoolId,
    ) -> Result<(), AccountRefusal> {
        let is_allowed = self.is_pool_for(by, account_id, pool).await?;
        if is_allowed { Ok(()) } else { Err(AccountRefusal::NotFound(ObjectKind::IpPool)) }
    }

    /// Whether the requester may give the pool to a server of the account, and take the pool from a server.
    async fn is_pool_for(
        &self,
        by: &Requester,
        account_id: AccountId,
        pool: PoolId,
    ) -> Result<bool, AccountRefusal> {
        let found = self.inner.store.list_pools().await?.into_iter().find(|found| found.id == pool);
        let is_shared_or_own = |pool: &Pool| pool.shared || pool.account_id == Some(account_id);
        Ok(found.is_some_and(|pool| by.actor.is_operator() || is_shared_or_own(&pool)))
    }

    fn check_ceilings(&self, request: ServerChangeRequest) -> Result<CeilingsChange, AccountRefusal> {
        let checked = check(request, &self.inner.retention)
            .map_err(|problems| Refusal::Validation(problems.into_iter().map(in_ceilings).collect()))?;
        Ok(CeilingsChange {
            mode: checked.mode,
            send_rate: checked.send_rate,
            hourly_limit: checked.hourly_limit,
            bodies_days: checked.bodies_days,
            messages_days: checked.messages_days,
        })
    }

    /// A server that is not deleted and on which the actor may perform `operation`.
    pub(crate) async fn permitted_server(
        &self,
        by: &Requester,
        operation: Operation,
        id: ServerId,
    ) -> Result<Server, AccountRefusal> {
        let server = self.permitted_server_or_deleted(by, operation, id).await?;
        if server.delete_at.is_some() {
            Err(AccountRefusal::NotFound(ObjectKind::Server))
        } else {
            Ok(server)
        }
    }

    async fn permitted_server_or_deleted(
        &self,
        by: &Requester,
        operation: Operation,
        id: ServerId,
    ) -> Result<Server, AccountRefusal> {
        permit_any(&by.actor, operation).map_err(AccountRefusal::Denied)?;
        let found = self.inner.store.find_server(id).await?;
        let subject = self.server_subject(by, operation, found.as_ref()).await?;
        permit(&by.actor, operation, subject).map_err(AccountRefusal::from_denial_on(ObjectKind::Server))?;
        found.ok_or(AccountRefusal::NotFound(ObjectKind::Server))
    }
}

/// Moves the problem's pointer below `/ceilings`.
fn in_ceilings(problem: FieldProblem) -> FieldProblem {
    FieldProblem { pointer: format!("/ceilings{}", problem.pointer), ..problem }
}

/// Origin to record for values that this requester sets: the operator or the account.
pub(crate) fn origin_of(by: &Requester) -> SetBy {
    if by.actor.is_operator() { SetBy::Operator } else { SetBy::Account }
}
