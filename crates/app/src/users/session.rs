//! Sessions: created by signing in, identified by a token that only the person's browser has.

use std::net::IpAddr;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{Timestamp, client_network};
use postroad_store::{AuditSubject, NewUserSession, User, UserSession};

use super::UserRefusal;
use super::visitor::Visitor;
use crate::App;
use crate::access::{Actor, Operation};
use crate::accounts::Requester;
use crate::secrets::{hash, new_key};

/// A session that is not used ends after this long.
const SESSION_IDLE_MAX: Duration = Duration::from_hours(24);
/// Every session ends after this long.
const SESSION_AGE_MAX: Duration = Duration::from_hours(14 * 24);
/// Resolution at which the last use is stored.
const LAST_SEEN_RESOLUTION: Duration = Duration::from_mins(1);
const USER_AGENT_CHARS_MAX: usize = 300;

/// A new session. The token goes into the browser's cookie; the store has only its hash.
#[derive(Clone)]
pub struct NewSession {
    pub token: String,
    pub expires_at: Timestamp,
    pub user: User,
}

impl std::fmt::Debug for NewSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSession").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A person with a session.
#[derive(Debug, Clone)]
pub struct SignedInPerson {
    pub session: UserSession,
    pub user: User,
    /// Address of this request; the session may have begun at another address.
    pub address: IpAddr,
}

impl SignedInPerson {
    pub fn actor(&self) -> Actor {
        let User { id, account_id, role, operator, .. } = self.user;
        Actor::User { id, account_id, role, operator }
    }

    /// The person as a requester, who calls from the address of this request.
    pub fn requester(&self) -> Requester {
        Requester { actor: self.actor(), address: Some(self.address) }
    }
}

#[boxed_futures]
impl App {
    /// The person of a session token that came from `address`; `None` if the session has ended or the account is
    /// suspended.
    pub async fn find_session(
        &self,
        token: &str,
        address: IpAddr,
    ) -> Result<Option<SignedInPerson>, UserRefusal> {
        let now = self.inner.clock.now();
        let found = self.inner.store.find_user_session(hash(token), self.idle_cutoff()).await?;
        let Some((session, user)) = found.filter(|(_, user)| user.suspended_reason.is_none()) else {
            return Ok(None);
        };
        if now.since(session.last_seen_at) >= LAST_SEEN_RESOLUTION {
            self.inner.used_sessions.record(session.id, now);
        }
        Ok(Some(SignedInPerson { session, user, address }))
    }

    /// Ends a session; no error if it already ended.
    pub async fn sign_out(&self, token: &str, address: IpAddr) -> Result<(), UserRefusal> {
        if let Some(signed_in) = self.find_session(token, address).await? {
            let (user_id, id) = (signed_in.user.id, signed_in.session.id);
            let by = signed_in.requester();
            let store = self.audited_store(&by, Operation::PersonSignOut, AuditSubject::User(user_id));
            match store.end_user_session(user_id, id).await {
                Ok(()) | Err(postroad_store::StoreError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Begins a session with a new token, and ends the browser's previous session.
    pub(super) async fn begin_session(
        &self,
        user: User,
        visitor: &Visitor,
    ) -> Result<NewSession, UserRefusal> {
        if let Some(previous) = &visitor.previous_token {
            self.sign_out(previous, visitor.address).await?;
        }
        let token = new_key();
        let expires_at = self.inner.clock.now().plus(SESSION_AGE_MAX);
        let printable = visitor.user_agent.chars().filter(|c| !c.is_control());
        let new = NewUserSession {
            user_id: user.id,
            token_hash: hash(&token),
            address: Some(client_network(visitor.address).to_string()),
            user_agent: printable.take(USER_AGENT_CHARS_MAX).collect(),
            expires_at,
        };
        let User { id, account_id, role, operator, .. } = user;
        let actor = Actor::User { id, account_id, role, operator };
        let by = Requester { actor, address: Some(visitor.address) };
        let store = self.audited_store(&by, Operation::PersonSignIn, AuditSubject::User(id));
        store.create_user_session(new).await?;
        tracing::info!(user.id = %user.id, "person signed in");
        Ok(NewSession { token, expires_at, user })
    }

    /// Sessions that were last used before this time have ended.
    pub(super) fn idle_cutoff(&self) -> Timestamp {
        self.inner.clock.now().minus(SESSION_IDLE_MAX)
    }
}
