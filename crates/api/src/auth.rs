//! Authenticates the keys in the request's headers, before the body is read.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::HeaderMap;
use postroad_app::access::{Actor, Operation};
use postroad_app::accounts::Requester;
use postroad_app::{App, AuthFailure, Caller, KeyKind, Peer, PresentedKeys};

use crate::failure::{Failure, Reason};
use crate::request_info::LoggedCaller;
use crate::tenant::Tenant;

const X_SERVER_API_KEY: &str = "x-server-api-key";
const X_ACCOUNT_API_KEY: &str = "x-account-api-key";
const X_OPERATOR_API_KEY: &str = "x-operator-api-key";

/// Maximum number of characters of an invalid key that the answer echoes; real keys are much shorter.
const ECHOED_KEY_CHARS_MAX: usize = 1_000;

/// Refusal of a caller, with the delay before it is answered.
#[derive(Debug)]
pub(crate) struct AuthRejection {
    pub(crate) failure: Failure,
    pub(crate) delay: Duration,
}

impl<F: Into<Failure>> From<F> for AuthRejection {
    fn from(failure: F) -> Self {
        Self { failure: failure.into(), delay: Duration::ZERO }
    }
}

/// A caller that an endpoint accepts: `Caller` by the key of a server, `Requester` by any key.
pub(crate) trait Authenticate: Send + Sized + 'static {
    fn authenticate(
        app: &App,
        headers: &HeaderMap,
        peer: Peer,
        operation: Operation,
    ) -> impl Future<Output = Result<Self, AuthRejection>> + Send;

    /// The tenant whose shares of threads, memory and permits the caller's calls use.
    fn tenant(&self) -> Tenant;

    fn logged_caller(&self) -> LoggedCaller;
}

impl Authenticate for Caller {
    async fn authenticate(
        app: &App,
        headers: &HeaderMap,
        peer: Peer,
        operation: Operation,
    ) -> Result<Self, AuthRejection> {
        let key = read_api_key(headers, X_SERVER_API_KEY);
        let authenticated = app.authenticate(key.as_deref(), peer, operation).await;
        authenticated.map_err(|failure| rejection_of(failure, headers))
    }

    fn tenant(&self) -> Tenant {
        self.server_id.into()
    }

    fn logged_caller(&self) -> LoggedCaller {
        LoggedCaller {
            server: Some(self.server_id),
            credential: self.credential_id,
            ..LoggedCaller::default()
        }
    }
}

impl Authenticate for Requester {
    async fn authenticate(
        app: &App,
        headers: &HeaderMap,
        peer: Peer,
        operation: Operation,
    ) -> Result<Self, AuthRejection> {
        let keys =
            [X_OPERATOR_API_KEY, X_ACCOUNT_API_KEY, X_SERVER_API_KEY].map(|name| read_api_key(headers, name));
        let [operator, account, server] = keys.each_ref().map(Option::as_deref);
        let authenticated =
            app.authenticate_actor(PresentedKeys { operator, account, server }, peer, operation).await;
        authenticated.map_err(|failure| rejection_of(failure, headers))
    }

    fn tenant(&self) -> Tenant {
        match &self.actor {
            Actor::ServerKey { server_id, .. } => Tenant::Server(*server_id),
            Actor::AccountKey { account_id, .. } | Actor::User { account_id, .. } => {
                Tenant::Account(*account_id)
            }
            Actor::OperatorKey { .. } | Actor::CommandLine => Tenant::Operator,
        }
    }

    fn logged_caller(&self) -> LoggedCaller {
        let mut logged = LoggedCaller { account: self.actor.account_id(), ..LoggedCaller::default() };
        match &self.actor {
            Actor::ServerKey { id, server_id, .. } => {
                (logged.server, logged.credential) = (Some(*server_id), Some(*id));
            }
            Actor::AccountKey { id, .. } | Actor::OperatorKey { id, .. } => logged.account_key = Some(*id),
            Actor::User { .. } | Actor::CommandLine => {}
        }
        logged
    }
}

/// The key in a header. Bytes that are not UTF-8 never match a key; they are echoed with replacement characters.
fn read_api_key<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()))
}

fn rejection_of(failure: AuthFailure, headers: &HeaderMap) -> AuthRejection {
    let (reason, delay) = match failure {
        AuthFailure::Missing { kind, delay } => (Reason::KeyMissing(kind), delay),
        AuthFailure::Invalid { kind, delay } => {
            let name = match kind {
                KeyKind::Server => X_SERVER_API_KEY,
                KeyKind::Account => X_ACCOUNT_API_KEY,
                KeyKind::Operator => X_OPERATOR_API_KEY,
            };
            let token =
                read_api_key(headers, name).unwrap_or_default().chars().take(ECHOED_KEY_CHARS_MAX).collect();
            (Reason::KeyInvalid { kind, token }, delay)
        }
        AuthFailure::Suspended => return Reason::ServerSuspended.into(),
        AuthFailure::AccountSuspended => return Reason::AccountSuspended.into(),
        AuthFailure::Denied(denial) => return Reason::Denied(denial).into(),
        AuthFailure::Store(error) => return error.into(),
    };
    AuthRejection { failure: reason.into(), delay }
}
