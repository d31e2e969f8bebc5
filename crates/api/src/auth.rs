//! Authenticates the key in the request header, before anything else of the request is read.

use std::time::Duration;

use axum::http::HeaderMap;
use postroad_app::access::Operation;
use postroad_app::{App, AuthFailure, Caller, Peer};

use crate::failure::{Failure, Reason};

const X_SERVER_API_KEY: &str = "x-server-api-key";

/// Longest key that is echoed; real keys are much shorter.
const TOKEN_CHARS_MAX: usize = 1_000;

/// Refusal of a caller, with the delay before it is answered.
#[derive(Debug)]
pub(crate) struct NotAdmitted {
    pub(crate) failure: Failure,
    pub(crate) delay: Duration,
}

impl<F: Into<Failure>> From<F> for NotAdmitted {
    fn from(failure: F) -> Self {
        Self { failure: failure.into(), delay: Duration::ZERO }
    }
}

pub(crate) async fn authenticate(
    app: &App,
    headers: &HeaderMap,
    peer: Peer,
    operation: Operation,
) -> Result<Caller, NotAdmitted> {
    // Bytes that are not UTF-8 never match a key; they are echoed with replacement characters.
    let token = headers.get(X_SERVER_API_KEY).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let (reason, delay) = match app.authenticate(token.as_deref(), peer, operation).await {
        Ok(caller) => return Ok(caller),
        Err(AuthFailure::Missing { delay }) => (Reason::KeyMissing, delay),
        Err(AuthFailure::Invalid { delay }) => {
            let token = token.unwrap_or_default().chars().take(TOKEN_CHARS_MAX).collect();
            (Reason::KeyInvalid { token }, delay)
        }
        Err(AuthFailure::Suspended) => return Err(Reason::ServerSuspended.into()),
        Err(AuthFailure::Denied(denial)) => return Err(Reason::Denied(denial).into()),
        Err(AuthFailure::Store(error)) => return Err(error.into()),
    };
    Err(NotAdmitted { failure: reason.into(), delay })
}
