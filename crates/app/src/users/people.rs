//! Operations on the people of an account: list, change and remove people, and end their sessions. The operator can
//! also create people, and reset their passwords and second factors.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, LimitedObject, UserId, UserRole, UserSessionId};
use postroad_store::{AuditSubject, NewUser, User, UserChange, UserFilter, UserSession, UserUpdateResult};

use super::invitations::{PEOPLE_MAX, can_grant_operator, check_role, highest_grantable_role};
use super::{UserRefusal, parse_email, parse_person_name};
use crate::App;
use crate::access::{Actor, Operation, Subject, permit, permit_any};
use crate::accounts::{AccountRefusal, ObjectKind, Requester, page};

/// Request for a new person. Without a password, the person sets one with a link.
#[derive(Clone)]
pub struct NewPersonRequest {
    pub account: AccountId,
    pub email: String,
    pub name: String,
    pub role: UserRole,
    pub operator: bool,
    pub password: Option<String>,
}

impl std::fmt::Debug for NewPersonRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewPersonRequest").field("role", &self.role).finish_non_exhaustive()
    }
}

/// Requested changes of a person; `None` keeps a value.
#[derive(Debug, Clone, Default)]
pub struct UserChangeRequest {
    /// The version that the caller has seen.
    pub if_version: Option<i64>,
    pub name: Option<String>,
    pub role: Option<UserRole>,
    pub operator: Option<bool>,
}

#[boxed_futures]
impl App {
    /// Returns a page ordered by id, and whether there are more.
    pub async fn list_users(
        &self,
        by: &Requester,
        filter: UserFilter,
        after: Option<UserId>,
        limit: usize,
    ) -> Result<(Vec<User>, bool), AccountRefusal> {
        let account_id = self.listed_account(by, Operation::UsersList, filter.account_id).await?;
        let email = filter.email.as_deref().map(parse_email).transpose()?;
        let email = email.map(|email| email.as_str().to_owned());
        let filter = UserFilter { account_id, email, ..filter };
        Ok(page(self.inner.store.list_users(filter, after, limit + 1).await?, limit))
    }

    pub async fn update_user(
        &self,
        by: &Requester,
        id: UserId,
        request: UserChangeRequest,
    ) -> Result<User, AccountRefusal> {
        let operation = Operation::UsersUpdate;
        let user = self.changeable_user(by, operation, id).await?;
        check_role(by, request.role.unwrap_or(user.role), request.operator.unwrap_or(false))?;
        if request.operator.is_some() && !can_grant_operator(&by.actor) {
            return Err(AccountRefusal::problem(
                "operator",
                "can be set only by the operator of the service",
            ));
        }
        let name = request.name.as_deref().map(parse_person_name).transpose()?;
        let change = UserChange { name, role: request.role, operator: request.operator };
        let store = self.audited_store(by, operation, AuditSubject::User(id));
        let changed = store.update_user(id, request.if_version, change).await;
        into_user(changed.map_err(AccountRefusal::from_store_error_on(ObjectKind::User))?)
    }

    /// Removes a person and ends all their sessions. Only the operator can remove the last owner.
    pub async fn remove_user(&self, by: &Requester, id: UserId) -> Result<User, AccountRefusal> {
        let operation = Operation::UsersRemove;
        self.changeable_user(by, operation, id).await?;
        let store = self.audited_store(by, operation, AuditSubject::User(id));
        let removed = store.remove_user(id, by.actor.is_operator()).await;
        into_user(removed.map_err(AccountRefusal::from_store_error_on(ObjectKind::User))?)
    }

    /// Returns a page of a person's sessions, newest first, and whether there are more.
    pub async fn list_sessions_of(
        &self,
        by: &Requester,
        id: UserId,
        before: Option<UserSessionId>,
        limit: usize,
    ) -> Result<(Vec<UserSession>, bool), AccountRefusal> {
        self.permitted_user(by, Operation::UsersSessions, id).await?;
        let found = self.inner.store.list_user_sessions(id, self.idle_cutoff(), before, limit + 1).await?;
        Ok(page(found, limit))
    }

    /// Ends one session of the person, or all of them.
    pub async fn revoke_sessions_of(
        &self,
        by: &Requester,
        id: UserId,
        session: Option<UserSessionId>,
    ) -> Result<u64, AccountRefusal> {
        let operation = Operation::UsersRevokeSession;
        self.changeable_user(by, operation, id).await?;
        let store = self.audited_store(by, operation, AuditSubject::User(id));
        match session {
            Some(session) => {
                let ended = store.end_user_session(id, session).await;
                ended.map_err(AccountRefusal::from_store_error_on(ObjectKind::Session)).map(|()| 1)
            }
            None => Ok(store.end_user_sessions(id, None).await?),
        }
    }

    /// Creates a person; for the operator. A person without a password sets one with the link from `reset_link_of`.
    pub async fn create_user(&self, by: &Requester, request: NewPersonRequest) -> Result<User, UserRefusal> {
        let operation = Operation::UsersCreate;
        let subject = self.account_subject(by, operation, request.account).await?;
        permit(&by.actor, operation, subject).map_err(AccountRefusal::from_denial_on(ObjectKind::Account))?;
        let email = parse_email(&request.email)?.as_str().to_owned();
        if self.inner.store.count_objects(request.account, LimitedObject::Users).await? >= PEOPLE_MAX {
            return Err(AccountRefusal::problem("account", "has the maximum number of people").into());
        }
        let password_hash = match &request.password {
            Some(password) => Some(self.hash_new_password(password, &email).await?),
            None => None,
        };
        let new = NewUser {
            account_id: request.account,
            email: email.clone(),
            name: parse_person_name(&request.name)?,
            role: request.role,
            operator: request.operator,
            password_hash,
        };
        let store = self.audited_store(by, operation, AuditSubject::NewUser(email));
        Ok(store.create_user(new).await.map_err(AccountRefusal::from_store_error_on(ObjectKind::User))?)
    }

    /// A link with which the person sets a password; the operator passes it on.
    pub async fn reset_link_of(&self, by: &Requester, id: UserId) -> Result<String, UserRefusal> {
        let operation = Operation::UsersResetPassword;
        let user = self.permitted_user(by, operation, id).await?;
        self.new_reset_link(&self.audited_store(by, operation, AuditSubject::User(id)), &user).await
    }

    /// Removes the second factor of a person who has lost the authenticator app and the recovery codes.
    pub async fn disable_totp_of(&self, by: &Requester, id: UserId) -> Result<(), UserRefusal> {
        let operation = Operation::UsersDisableTotp;
        self.permitted_user(by, operation, id).await?;
        match self.audited_store(by, operation, AuditSubject::User(id)).disable_totp(id).await {
            Err(postroad_store::StoreError::NotFound) => Err(UserRefusal::TotpDisabled),
            done => Ok(done?),
        }
    }

    /// Finds a person on whom `by` may perform `operation`.
    async fn permitted_user(
        &self,
        by: &Requester,
        operation: Operation,
        id: UserId,
    ) -> Result<User, AccountRefusal> {
        permit_any(&by.actor, operation).map_err(AccountRefusal::Denied)?;
        let found = self.inner.store.find_user(id).await?;
        let subject = match &found {
            Some(user) => self.account_subject(by, operation, user.account_id).await?,
            None => Subject::Absent,
        };
        permit(&by.actor, operation, subject).map_err(AccountRefusal::from_denial_on(ObjectKind::User))?;
        found.ok_or(AccountRefusal::NotFound(ObjectKind::User))
    }

    /// A person whom the actor may change. People may change themselves; otherwise nobody can change people of a higher
    /// role, and only the operator can change operators.
    async fn changeable_user(
        &self,
        by: &Requester,
        operation: Operation,
        id: UserId,
    ) -> Result<User, AccountRefusal> {
        let user = self.permitted_user(by, operation, id).await?;
        if !may_change_user(&by.actor, &user) {
            return Err(AccountRefusal::problem("id", "is a person with more rights than the caller"));
        }
        Ok(user)
    }
}

/// Whether the actor has at least the rights of a person, or is that person.
pub fn may_change_user(actor: &Actor, user: &User) -> bool {
    let is_self = matches!(actor, Actor::User { id: own, .. } if *own == user.id);
    let is_above = !highest_grantable_role(actor).covers(user.role);
    is_self || !(is_above || (user.operator && !can_grant_operator(actor)))
}

/// The roles that the actor can grant.
pub fn grantable_roles(actor: &Actor) -> Vec<UserRole> {
    UserRole::ALL.into_iter().filter(|role| highest_grantable_role(actor).covers(*role)).collect()
}

fn into_user(changed: UserUpdateResult) -> Result<User, AccountRefusal> {
    match changed {
        UserUpdateResult::Done(user) => Ok(*user),
        UserUpdateResult::LastOwner => Err(AccountRefusal::LastOwner),
        UserUpdateResult::OtherVersion(version) => Err(AccountRefusal::OtherVersion(version)),
    }
}
